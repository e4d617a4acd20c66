//! The harness's own evidence of what its model has read.

pub use bindings::exports::relay::adapter::evidence::{HandedOver, Judgement, Occurrence, Verdict};

use crate::Error;
use crate::hooks::Call;

/// What wit-bindgen makes of `world gives-evidence`. Public only because the export macro names it.
#[doc(hidden)]
pub mod bindings {
    #![allow(missing_docs, reason = "wit-bindgen documents what the WIT documents and nothing else")]
    #![allow(unsafe_code, reason = "generated code crosses the component boundary by raw pointers")]
    #![allow(clippy::all, reason = "generated code")]

    wit_bindgen::generate!({
        path: "wit",
        world: "relay:adapter/gives-evidence",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "relay_mesh_sdk::optional::evidence::bindings",
        additional_derives: [PartialEq],
        with: { "relay:adapter/types@0.1.0": crate::bindings::relay::adapter::types },
    });
}

impl Occurrence {
    /// The hook as it was called, without its process.
    pub fn call(&self) -> Call {
        Call { environment: self.environment.clone(), ..Call::new(self.name.clone(), self.payload.clone()) }
    }
}

/// Says whether a model request held the mail that answers of hooks carried. An adapter exports this with
/// [`export!(Toad, [evidence], manifest = …)`](crate::export). If your harness keeps no record that shows it, leave
/// it out: then the natural end of a turn counts.
///
/// ```
/// use relay_mesh_sdk::Error;
/// use relay_mesh_sdk::files::Root;
/// use relay_mesh_sdk::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, Verdict};
///
/// struct Toad;
///
/// impl Evidence for Toad {
///     fn look(_: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error> {
///         let requests = Root::open("config")?.read_end("requests.log", 64 * 1024)?.unwrap_or_default();
///         let requests = String::from_utf8_lossy(&requests);
///         let shown = handed.iter().filter(|handed| requests.contains(&handed.id));
///         Ok(shown.map(|handed| Judgement { id: handed.id.clone(), verdict: Verdict::Shown }).collect())
///     }
/// }
/// ```
pub trait Evidence {
    /// What became of these messages. Leave out those of which it is not known yet: the host asks again at the next
    /// hook of the session.
    fn look(call: &Occurrence, handed: &[HandedOver]) -> Result<Vec<Judgement>, Error>;
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_evidence {
    ($adapter:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::optional::evidence::{Evidence, HandedOver, Judgement, Occurrence, bindings};

            struct Component;

            impl bindings::exports::relay::adapter::evidence::Guest for Component {
                fn look(call: Occurrence, handed: Vec<HandedOver>) -> Result<Vec<Judgement>, $crate::Error> {
                    <$adapter as Evidence>::look(&call, &handed)
                }
            }

    $crate::optional::evidence::bindings::export_component!(Component with_types_in $crate::optional::evidence::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = {
            fn gives_evidence<A: $crate::optional::evidence::Evidence>() {}
            gives_evidence::<$adapter>
        };
    };
}
#[doc(hidden)]
pub use crate::__export_evidence as export;
