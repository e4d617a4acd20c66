//! Reading a harness's output: lines to events, through its adapter, while it is written or afterwards.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use mesh::ports::harness::HarnessError;
use mesh::ports::runner::{HarnessRunner, OutputLine, OutputReading, ProcessExit, RunEvent, RunOutcome, Task};
use processes::{LineReader, ReadLine};
use serde_json::Value;

use crate::unix;

/// A longer line is cut, in bytes.
const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// Lines and bytes that an adapter is given at once.
const BATCH: (usize, usize) = (512, 1024 * 1024);

/// The output of one start of a harness.
pub(crate) struct Reading<'a> {
    runner: &'a dyn HarnessRunner,
    task: &'a Task,
    lines: LineReader,
    waiting: Vec<OutputLine>,
    bytes: usize,
    memory: Option<Value>,
    /// What the adapter could not do, once it failed. The rest is not read then.
    failed: Option<HarnessError>,
}

impl<'a> Reading<'a> {
    pub(crate) fn open(runner: &'a dyn HarnessRunner, task: &'a Task, path: &Path) -> io::Result<Reading<'a>> {
        let lines = LineReader::open(path, LONGEST_LINE)?;
        Ok(Reading { runner, task, lines, waiting: Vec::new(), bytes: 0, memory: None, failed: None })
    }

    /// The events of what was written since, at most those of one chunk. None if nothing was.
    pub(crate) async fn more(&mut self) -> io::Result<Option<Vec<RunEvent>>> {
        let Some(lines) = self.lines.more()? else { return Ok(None) };
        let mut events = Vec::new();
        for line in lines {
            self.take(line, &mut events).await;
        }
        self.give(&mut events).await;
        Ok(Some(events))
    }

    /// The events of everything that is left, once the program has ended.
    pub(crate) async fn rest(&mut self) -> io::Result<Vec<RunEvent>> {
        let mut events = Vec::new();
        while let Some(more) = self.more().await? {
            events.extend(more);
        }
        if let Some(line) = self.lines.last() {
            self.take(line, &mut events).await;
        }
        self.give(&mut events).await;
        Ok(events)
    }

    /// What came of it, after [`Reading::rest`].
    pub(crate) async fn conclude(mut self, exit: &ProcessExit) -> Result<RunOutcome, HarnessError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.runner.conclude(self.task, self.memory.as_ref(), exit).await,
        }
    }

    async fn take(&mut self, line: ReadLine, events: &mut Vec<RunEvent>) {
        self.bytes += line.text.len();
        self.waiting.push(OutputLine { text: line.text, cut: line.cut });
        if self.waiting.len() >= BATCH.0 || self.bytes >= BATCH.1 {
            self.give(events).await;
        }
    }

    async fn give(&mut self, events: &mut Vec<RunEvent>) {
        let lines = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        if lines.is_empty() || self.failed.is_some() {
            return;
        }
        match self.runner.read(self.task, self.memory.as_ref(), &lines).await {
            Ok(OutputReading { memory, events: new }) => {
                self.memory = memory;
                events.extend(new);
            }
            Err(error) => self.failed = Some(error),
        }
    }
}

/// The file with what a run has reported.
pub(super) struct EventLog {
    file: Option<BufWriter<File>>,
    /// Why nothing more is written, as on a full disk. The run goes on.
    pub(super) failed: Option<String>,
}

impl EventLog {
    pub(super) fn open(path: &Path) -> EventLog {
        match unix::append_to_private_file(path) {
            Ok(file) => EventLog { file: Some(BufWriter::new(file)), failed: None },
            Err(error) => EventLog { file: None, failed: Some(error.to_string()) },
        }
    }

    pub(super) fn write(&mut self, events: &[RunEvent]) {
        let Some(file) = &mut self.file else { return };
        let mut write = || {
            for event in events {
                serde_json::to_writer(&mut *file, event)?;
                file.write_all(b"\n")?;
            }
            file.flush()
        };
        if let Err(error) = write() {
            self.failed = Some(error.to_string());
            self.file = None;
        }
    }
}
