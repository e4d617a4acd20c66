//! The one macro that turns an adapter into a component.

/// Exports an adapter as a component of `relay:adapter@0.1.0` and embeds its manifest.
///
/// The type must implement [`Identity`](crate::Identity), [`Sessions`](crate::Sessions),
/// [`Context`](crate::Context), [`Push`](crate::Push), [`Install`](crate::Install) and
/// [`Hooks`](crate::Hooks); an empty `impl` takes every default. The manifest's path is relative to
/// the file that calls the macro. Only a build for wasm exports anything, so the same crate can be
/// tested natively (see [`testing`](crate::testing)).
///
/// To export [optional interfaces](crate::optional) too, list them by name and implement their traits:
/// `export!(Nothing, [commands], manifest = "../adapter.toml")`.
///
/// ```
/// use relay_mesh_sdk::{About, Context, Hooks, Identity, Install, Push, Sessions};
///
/// struct Nothing;
///
/// impl Identity for Nothing {
///     fn describe() -> About {
///         About {
///             harness: "nothing".into(),
///             title: "Nothing".into(),
///             version: "0.1.0".into(),
///             aliases: Vec::new(),
///             connection_per_session: true,
///         }
///     }
/// }
/// impl Sessions for Nothing {}
/// impl Context for Nothing {}
/// impl Push for Nothing {}
/// impl Install for Nothing {}
/// impl Hooks for Nothing {}
/// # // In an adapter: relay_mesh_sdk::export!(Nothing, manifest = "../adapter.toml");
/// # relay_mesh_sdk::export!(Nothing, manifest = "../assets/adapter.toml");
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($adapter:ty, [$($optional:ident),* $(,)?], manifest = $manifest:literal) => {
        $crate::export!($adapter, manifest = $manifest);
        $($crate::optional::$optional::export!($adapter);)*
    };
    ($adapter:ty, manifest = $manifest:literal) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::exports::relay::adapter as exported;
            use $crate::bindings::relay::adapter::types as words;

            struct Component;

            impl exported::identity::Guest for Component {
                fn describe() -> $crate::About {
                    <$adapter as $crate::Identity>::describe()
                }
            }

            impl exported::sessions::Guest for Component {
                fn detect(
                    seen: $crate::sessions::Caller,
                ) -> Result<Option<$crate::sessions::Detection>, $crate::Error> {
                    <$adapter as $crate::Sessions>::detect(&seen)
                }
                fn discover() -> Result<Vec<$crate::Session>, $crate::Error> {
                    <$adapter as $crate::Sessions>::discover()
                }
                fn activity_of(id: words::SessionId) -> Result<$crate::Activity, $crate::Error> {
                    <$adapter as $crate::Sessions>::activity_of(&id)
                }
            }

            impl exported::context::Guest for Component {
                fn protocol(
                    base: String,
                    occasion: $crate::Occasion,
                    agent: Option<String>,
                ) -> Result<Option<String>, $crate::Error> {
                    <$adapter as $crate::Context>::protocol(base, occasion, agent.as_deref())
                }
            }

            impl exported::push::Guest for Component {
                fn routes(to: $crate::Session) -> Result<Vec<$crate::push::Route>, $crate::Error> {
                    <$adapter as $crate::Push>::routes(&to)
                }
                fn deliver(
                    to: $crate::Session,
                    route: String,
                    mail: $crate::Mail,
                ) -> Result<$crate::push::Receipt, $crate::Error> {
                    <$adapter as $crate::Push>::deliver(&to, &route, &mail)
                }
                fn confirm(
                    to: $crate::Session,
                    route: String,
                    sent: $crate::push::Receipt,
                ) -> Result<$crate::push::Receipt, $crate::Error> {
                    <$adapter as $crate::Push>::confirm(&to, &route, sent)
                }
            }

            impl exported::install::Guest for Component {
                fn present() -> Result<Option<String>, $crate::Error> {
                    <$adapter as $crate::Install>::present()
                }
                fn propose(setup: $crate::install::Setup) -> Result<$crate::install::Plan, $crate::Error> {
                    <$adapter as $crate::Install>::propose(&setup)
                }
                fn check(setup: $crate::install::Setup) -> Result<Vec<$crate::install::Finding>, $crate::Error> {
                    <$adapter as $crate::Install>::check(&setup)
                }
            }

            impl exported::hooks::Guest for Component {
                fn read(call: $crate::hooks::Call) -> Result<$crate::hooks::Reading, $crate::Error> {
                    <$adapter as $crate::Hooks>::read(&call)
                }
                fn answer(
                    call: $crate::hooks::Call,
                    found: $crate::hooks::Findings,
                ) -> Result<$crate::hooks::Reply, $crate::Error> {
                    <$adapter as $crate::Hooks>::answer(&call, found)
                }
            }

    $crate::bindings::export_component!(Component with_types_in $crate::bindings);

            /// The manifest, as a custom section of the component, so that one file is enough.
            #[used]
            #[unsafe(link_section = "relay:adapter/manifest")]
            static MANIFEST: [u8; include_bytes!($manifest).len()] = *include_bytes!($manifest);
        };

        // A native build exports nothing, but it checks that the type implements the traits and that the
        // manifest exists at the path given.
        #[cfg(not(target_arch = "wasm32"))]
        const _: (fn(), &[u8]) = {
            fn is_adapter<A: $crate::Adapter>() {}
            (is_adapter::<$adapter>, include_bytes!($manifest))
        };
    };
    ($adapter:ty, [commands], manifest = $manifest:literal) => {
        ::core::compile_error!("optional interfaces are a list: write `[commands]` instead of `commands`");
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "write `export!(TYPE, manifest = \"../adapter.toml\")`, or with optional interfaces \
             `export!(TYPE, [commands], manifest = \"../adapter.toml\")`"
        );
    };
}
