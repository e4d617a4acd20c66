//! The current time, as an instant of the mesh.

use crate::bindings::relay::adapter::clock::Host;
use crate::guest::Guest;

impl Host for Guest {
    async fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.host_side.machine.now().0)
    }
}
