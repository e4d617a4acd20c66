//! The interfaces that only some adapters export. A component is probed for them when it is loaded.
//!
//! Each has one file here: its bindings, the conversion of its types, and its calls. To add one, add a file and a line
//! in the list below. The field of [`OptionalInterfaces`] has the same name.

mod launched;

use std::sync::Arc;

use mesh::ports::harness::OptionalInterfaces;
use wasmtime::component::InstancePre;

use crate::adapter::Adapter;
use crate::guest::Guest;

macro_rules! optional_interfaces {
    ($($interface:ident),+ $(,)?) => {
        $(mod $interface;)+

        /// The optional interfaces that one component exports.
        pub(crate) struct Exported {
            $($interface: Option<Arc<$interface::Indices>>,)+
        }

        impl Exported {
            /// Looks for each interface among a component's exports.
            pub(crate) fn probe(component: &InstancePre<Guest>) -> Exported {
                Exported { $($interface: $interface::Indices::new(component).ok().map(Arc::new),)+ }
            }

            /// The mesh's view of them.
            pub(crate) fn of(adapter: &Adapter) -> OptionalInterfaces<'_> {
                OptionalInterfaces {
                    $($interface: if adapter.exported.$interface.is_some() { Some(adapter) } else { None },)+
                }
            }
        }
    };
}

optional_interfaces![commands, driver, evidence, runner];
