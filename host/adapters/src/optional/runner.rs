//! `runner`: running the harness for one task, without a user.

mod convert;
mod transcript;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mesh::ports::harness::HarnessError;
use mesh::ports::runner::{
    HarnessRunner, Launch, OutputLine, OutputReading, ProcessExit, Readiness, RunOutcome, Task,
};
use serde_json::Value;

use crate::adapter::Adapter;
use crate::bindings::relay::adapter::types::Error;
use crate::convert::from_guest;

use bindings::exports::relay::adapter::runner;
use transcript::Transcript;

pub(super) use bindings::RunsTasksIndices as Indices;

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "relay:adapter/runs-tasks",
        exports: { default: async },
        with: { "relay:adapter/types": crate::bindings::relay::adapter::types },
    });
}

/// The most output that one call of an adapter reads: it bounds the call's time and what is copied to the guest.
const MOST_AT_ONCE: usize = 512 * 1024;
/// The most that an adapter may want to be given back with the next lines.
const MOST_MEMORY: usize = 64 * 1024;

#[async_trait]
impl HarnessRunner for Adapter {
    async fn ready(&self) -> Result<Readiness, HarnessError> {
        let indices = self.runner_indices()?;
        let ready = self.ask("ready", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_runner().call_ready(store).await
            })
        });
        Ok(convert::readiness(ready.await?))
    }

    async fn prepare(&self, task: &Task, files: &Path) -> Result<Launch, HarnessError> {
        let (indices, task) = (self.runner_indices()?, convert::task(task, &self.host_side().surroundings.own));
        let chosen = self.ask("prepare", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_runner().call_prepare(store, &task).await
            })
        });
        let chosen = chosen.await?;
        let run = self.host_side().grants.run(&chosen.run).map_err(Error::from).map_err(from_guest::error)?;
        self.launched(run, chosen, files)
    }

    async fn read(
        &self,
        task: &Task,
        memory: Option<&Value>,
        lines: &[OutputLine],
    ) -> Result<OutputReading, HarnessError> {
        let task = convert::task(task, &self.host_side().surroundings.own);
        let mut transcript = Transcript::of(memory);
        let mut memory = transcript.guest.take().map(|guest| guest.to_string());
        let mut events = Vec::new();
        for lines in portions(lines) {
            let (indices, task, before) = (self.runner_indices()?, task.clone(), memory.take());
            let lines: Vec<runner::OutputLine> = lines.iter().map(convert::line).collect();
            let read = self.ask("read", |store, component| {
                Box::pin(async move {
                    let exports = indices.load(&mut *store, component.raw())?;
                    exports.relay_adapter_runner().call_read(store, &task, before.as_ref(), &lines).await
                })
            });
            let read = read.await?;
            memory = read.memory;
            for event in read.events {
                transcript.add(event, &mut events);
            }
        }
        transcript.guest = self.remembered(memory)?;
        Ok(OutputReading { memory: Some(transcript.kept()), events })
    }

    async fn conclude(
        &self,
        task: &Task,
        memory: Option<&Value>,
        exit: &ProcessExit,
    ) -> Result<RunOutcome, HarnessError> {
        let (indices, task) = (self.runner_indices()?, convert::task(task, &self.host_side().surroundings.own));
        let mut transcript = Transcript::of(memory);
        let (memory, exit) = (transcript.guest.take().map(|guest| guest.to_string()), convert::exit(exit));
        let outcome = self.ask("conclude", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_runner().call_conclude(store, &task, memory.as_ref(), &exit).await
            })
        });
        let outcome = outcome.await?;
        let output = outcome.output.as_deref().map(serde_json::from_str).transpose();
        let output = output.map_err(|error| self.defect(&format!("its output is no JSON: {error}")))?;
        let outcome = convert::outcome(outcome, output);
        Ok(RunOutcome { answer: outcome.answer.or_else(|| transcript.last_said()), ..outcome })
    }
}

impl Adapter {
    fn runner_indices(&self) -> Result<Arc<Indices>, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` runs no tasks", self.name()));
        self.exported.runner.clone().ok_or_else(none)
    }

    /// What the adapter wants to be given with the next lines.
    fn remembered(&self, memory: Option<String>) -> Result<Option<Value>, HarnessError> {
        let Some(memory) = memory else { return Ok(None) };
        if memory.len() > MOST_MEMORY {
            let what = format!("it wants {} bytes kept between two reads, and {MOST_MEMORY} are the most", memory.len());
            return Err(self.defect(&what));
        }
        let parsed = serde_json::from_str(&memory);
        parsed.map(Some).map_err(|error| self.defect(&format!("what it wants kept between two reads is no JSON: {error}")))
    }

    fn defect(&self, what: &str) -> HarnessError {
        HarnessError::Failed(format!("the adapter `{}` is at fault: {what}", self.name()))
    }
}

/// Lines in portions that one call can read. A line is never divided.
fn portions(lines: &[OutputLine]) -> Vec<&[OutputLine]> {
    let (mut portions, mut begin, mut size) = (Vec::new(), 0, 0);
    for (at, line) in lines.iter().enumerate() {
        if at > begin && size + line.text.len() > MOST_AT_ONCE {
            portions.push(&lines[begin..at]);
            (begin, size) = (at, 0);
        }
        size += line.text.len();
    }
    portions.push(&lines[begin..]);
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_portions_and_none_is_lost() {
        for sizes in [&[][..], &[1], &[MOST_AT_ONCE + 1], &[1, MOST_AT_ONCE, 1], &[MOST_AT_ONCE / 2; 5]] {
            let line = |size: &usize| OutputLine { text: "x".repeat(*size), cut: false };
            let lines: Vec<OutputLine> = sizes.iter().map(line).collect();
            let portions = portions(&lines);
            let bytes = |portion: &&[OutputLine]| portion.iter().map(|line| line.text.len()).sum::<usize>();
            assert!(portions.iter().all(|portion| portion.len() <= 1 || bytes(portion) <= MOST_AT_ONCE), "{sizes:?}");
            assert_eq!(portions.concat(), lines, "{sizes:?}");
        }
    }
}
