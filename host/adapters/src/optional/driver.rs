//! `driver`: giving a live agent turns.

mod bounds;
mod convert;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mesh::ports::driver::{Action, DrivenAgent, DriverConnection, Exchange, HarnessDriver, JoinCommand};
use mesh::ports::harness::HarnessError;
use serde_json::Value;

use crate::adapter::Adapter;
use crate::bindings::relay::adapter::types::Error;
use crate::convert::from_guest;

use bindings::exports::relay::adapter::driver;

pub(super) use bindings::DrivesAgentsIndices as Indices;

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "relay:adapter/drives-agents",
        exports: { default: async },
        with: { "relay:adapter/types": crate::bindings::relay::adapter::types },
    });
}

/// The most frames, and bytes of them, that one call of an adapter reads: it bounds the call's time.
const FRAMES_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 512 * 1024;

#[async_trait]
impl HarnessDriver for Adapter {
    async fn connections(
        &self,
        agent: &DrivenAgent,
        resume: Option<&str>,
        files: &Path,
    ) -> Result<Vec<DriverConnection>, HarnessError> {
        let (indices, resume) = (self.driver_indices()?, resume.map(str::to_owned));
        let agent = convert::agent(agent, &self.host_side().surroundings.own);
        let offered = self.ask("connections", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_driver().call_connections(store, &agent, resume.as_ref()).await
            })
        });
        bounds::connections(offered.await?)
            .map_err(|what| self.at_fault(&what))?
            .into_iter()
            .map(|connection| self.connection(connection, files))
            .collect()
    }

    async fn connect(&self, connection: &str) -> Result<Exchange, HarnessError> {
        let (indices, connection) = (self.driver_indices()?, connection.to_owned());
        let begun = self.ask("connect", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_driver().call_connect(store, &connection).await
            })
        });
        self.exchange(begun.await?)
    }

    async fn act(&self, memory: Option<&Value>, action: &Action) -> Result<Exchange, HarnessError> {
        let (indices, memory) = (self.driver_indices()?, memory.map(Value::to_string));
        let action = convert::action(action, &self.host_side().surroundings.own);
        let done = self.ask("act", |store, component| {
            Box::pin(async move {
                let exports = indices.load(&mut *store, component.raw())?;
                exports.relay_adapter_driver().call_act(store, memory.as_ref(), &action).await
            })
        });
        self.exchange(done.await?)
    }

    async fn receive(&self, memory: Option<&Value>, frames: &[String]) -> Result<Exchange, HarnessError> {
        let mut all = Exchange { memory: memory.cloned(), ..Exchange::default() };
        for portion in portions(frames) {
            let (indices, before) = (self.driver_indices()?, all.memory.as_ref().map(Value::to_string));
            let portion = portion.to_vec();
            let received = self.ask("receive", |store, component| {
                Box::pin(async move {
                    let exports = indices.load(&mut *store, component.raw())?;
                    exports.relay_adapter_driver().call_receive(store, before.as_ref(), &portion).await
                })
            });
            let received = self.exchange(received.await?)?;
            all.memory = received.memory;
            all.frames.extend(received.frames);
            all.events.extend(received.events);
        }
        Ok(all)
    }
}

impl Adapter {
    fn driver_indices(&self) -> Result<Arc<Indices>, HarnessError> {
        let none = || HarnessError::Unsupported(format!("the adapter `{}` drives no agents", self.name()));
        self.exported.driver.clone().ok_or_else(none)
    }

    fn connection(&self, offered: driver::Connection, files: &Path) -> Result<DriverConnection, HarnessError> {
        let host_side = self.host_side();
        let name = offered.start.run.clone();
        let drive = host_side.grants.drive(&name).map_err(Error::from).map_err(from_guest::error)?;
        let launch = self.launched(&drive.run, offered.start, files)?;
        let program = launch.command.first().cloned().into_iter();
        let join = drive.join.iter().flatten().cloned();
        Ok(DriverConnection {
            name: offered.name,
            join: drive.join.is_some().then(|| JoinCommand(program.chain(join).collect())),
            launch,
            framing: drive.framing,
            able: convert::abilities(offered.abilities),
            proves: convert::status(offered.proves),
        })
    }

    fn exchange(&self, exchange: driver::Exchange) -> Result<Exchange, HarnessError> {
        bounds::exchange(&exchange).map_err(|what| self.at_fault(&what))?;
        convert::exchange(exchange).map_err(|what| self.at_fault(&what))
    }

    fn at_fault(&self, what: &str) -> HarnessError {
        HarnessError::Failed(format!("the adapter `{}` is at fault: {what}", self.name()))
    }
}

/// Frames in portions that one call can read. A frame is never divided.
fn portions(frames: &[String]) -> Vec<&[String]> {
    let (mut portions, mut begin, mut size) = (Vec::new(), 0, 0);
    for (at, frame) in frames.iter().enumerate() {
        if at > begin && (size + frame.len() > BYTES_AT_ONCE || at - begin == FRAMES_AT_ONCE) {
            portions.push(&frames[begin..at]);
            (begin, size) = (at, 0);
        }
        size += frame.len();
    }
    if begin < frames.len() {
        portions.push(&frames[begin..]);
    }
    portions
}
