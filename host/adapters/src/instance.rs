//! One instance of a component, for one call or for the two steps of a hook.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use wasmtime::Store;

use crate::bindings::relay::adapter::types;
use crate::bindings::{Adapter as Required, AdapterPre};
use crate::guest::Guest;
use crate::ticker::Meter;

pub(crate) struct Instance {
    pub(crate) store: Store<Guest>,
    pub(crate) component: Component,
    pub(crate) meter: Arc<Meter>,
}

/// The exports of an instance. Those that every adapter has are bound at once, an optional interface when it is called.
pub(crate) struct Component {
    required: Required,
    raw: wasmtime::component::Instance,
}

impl Component {
    /// Instantiates a component. Guest code may run here already.
    pub(crate) async fn of(pre: &AdapterPre<Guest>, store: &mut Store<Guest>) -> wasmtime::Result<Component> {
        let raw = pre.instance_pre().instantiate_async(&mut *store).await?;
        Ok(Component { required: Required::new(store, &raw)?, raw })
    }

    /// The instance itself, in which an optional interface is looked up.
    pub(crate) fn raw(&self) -> &wasmtime::component::Instance {
        &self.raw
    }
}

impl Deref for Component {
    type Target = Required;

    fn deref(&self) -> &Required {
        &self.required
    }
}

impl Instance {
    /// One bounded call.
    pub(crate) async fn call<T>(
        &mut self,
        call: impl for<'i> FnOnce(
            &'i mut Store<Guest>,
            &'i Component,
        ) -> BoxFuture<'i, wasmtime::Result<Result<T, types::Error>>>,
    ) -> wasmtime::Result<Result<T, types::Error>> {
        self.meter.reset();
        let longest = self.store.data().host_side.settings.longest_call;
        bounded(&self.meter, longest, call(&mut self.store, &self.component)).await
    }
}

/// Bounds a call twice: the meter bounds the guest's own time, the clock bounds the whole call with its waits.
pub(crate) async fn bounded<T>(
    meter: &Meter,
    longest: Duration,
    call: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    match tokio::time::timeout(longest, meter.watch(call)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(wasmtime::Error::msg(format!("it waited for more than {} ms", longest.as_millis()))),
    }
}
