//! Running the harness's own slash commands in a live session.

pub use bindings::exports::relay::adapter::commands::{Command, Means, Progress, Stage as CommandStage};

use crate::{Activity, Error, Session};

/// What wit-bindgen makes of `world runs-commands`. Public only because the export macro names it.
#[doc(hidden)]
pub mod bindings {
    #![allow(missing_docs, reason = "wit-bindgen documents what the WIT documents and nothing else")]
    #![allow(unsafe_code, reason = "generated code crosses the component boundary by raw pointers")]
    #![allow(clippy::all, reason = "generated code")]

    wit_bindgen::generate!({
        path: "wit",
        world: "relay:adapter/runs-commands",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "relay_mesh_sdk::optional::commands::bindings",
        additional_derives: [PartialEq],
        with: { "relay:adapter/types@0.1.0": crate::bindings::relay::adapter::types },
    });
}

/// Runs slash commands for other agents. An adapter exports this with
/// [`export!(Toad, [commands], manifest = …)`](crate::export). If your harness cannot be told to run a
/// command from outside, leave it out: the host then tells the requester so.
///
/// The host asks only for commands that the user has allowed. Refuse a command in `plan`: a refused
/// command waits for the agent or a script to take it, an accepted one is run at most once.
///
/// ```
/// use relay_mesh_sdk::optional::commands::{Command, Commands, Means, Progress};
/// use relay_mesh_sdk::{Error, Session};
///
/// struct Toad;
///
/// impl Commands for Toad {
///     fn plan(_: &Session, command: &Command) -> Result<Means, Error> {
///         match command.name.as_str() {
///             "compact" => Ok(Means::looked_at("toad server")),
///             other => Err(Error::Unsupported(format!("Toad has no command /{other}"))),
///         }
///     }
///
///     fn run(_: &Session, _: &Command) -> Result<Progress, Error> {
///         Ok(Progress::begun("turn-1".to_owned()))
///     }
/// }
/// ```
pub trait Commands {
    /// Says how a command would be run in a session. It must not run anything.
    fn plan(to: &Session, command: &Command) -> Result<Means, Error>;

    /// Starts the command. Return an error only if nothing has started.
    fn run(to: &Session, command: &Command) -> Result<Progress, Error>;

    /// Checks whether the command has ended. The default knows no more than what `run` returned.
    fn watch(to: &Session, command: &Command, begun: Progress) -> Result<Progress, Error> {
        let _ = (to, begun);
        Err(Error::Unsupported(format!("this harness does not report when /{} has ended", command.name)))
    }
}

impl Means {
    /// Means for an idle or busy session. For adapters that ask their harness for the session's activity
    /// in `plan` and answer `busy` themselves, because what the host knows may be out of date.
    pub fn looked_at(name: &str) -> Means {
        Means { name: name.into(), when: vec![Activity::Idle, Activity::Busy] }
    }
}

impl Progress {
    /// The harness has been asked to run the command.
    pub fn begun(evidence: impl Into<Option<String>>) -> Progress {
        Progress { stage: CommandStage::Begun, said: None, evidence: evidence.into() }
    }

    /// The command succeeded; `said` is what came of it.
    pub fn succeeded(self, said: impl Into<String>) -> Progress {
        Progress { stage: CommandStage::Succeeded, said: Some(said.into()), ..self }
    }

    /// The command failed; `said` is the reason.
    pub fn failed(self, said: impl Into<String>) -> Progress {
        Progress { stage: CommandStage::Failed, said: Some(said.into()), ..self }
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_commands {
    ($adapter:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::optional::commands::{Command, Commands, Means, Progress, bindings};

            struct Component;

            impl bindings::exports::relay::adapter::commands::Guest for Component {
                fn plan(to: $crate::Session, command: Command) -> Result<Means, $crate::Error> {
                    <$adapter as Commands>::plan(&to, &command)
                }
                fn run(to: $crate::Session, command: Command) -> Result<Progress, $crate::Error> {
                    <$adapter as Commands>::run(&to, &command)
                }
                fn watch(to: $crate::Session, command: Command, begun: Progress) -> Result<Progress, $crate::Error> {
                    <$adapter as Commands>::watch(&to, &command, begun)
                }
            }

    $crate::optional::commands::bindings::export_component!(Component with_types_in $crate::optional::commands::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = {
            fn runs_commands<A: $crate::optional::commands::Commands>() {}
            runs_commands::<$adapter>
        };
    };
}
#[doc(hidden)]
pub use crate::__export_commands as export;
