//! Running the harness for one task, without a user, to its end.
//!
//! [`reading`] has what most adapters need for it: lines of JSON, a memory between two reads, words about a tool,
//! and the reasons by which servers refuse.

mod json;
pub mod reading;

pub use bindings::exports::relay::adapter::runner::{
    Abilities, Denial, Ending, Event as RunEvent, Login, Outcome, OutputLine, OutputReading, ProcessExit, Readiness,
    Retry, Start, Task, ToolCall, Usage,
};

pub use crate::launch::{Choice, Extensions, Installation, Launch, Reach, RunFile, StopSignal, StopStep};

use crate::Error;

/// What wit-bindgen makes of `world runs-tasks`. Public only because the export macro names it.
#[doc(hidden)]
pub mod bindings {
    #![allow(missing_docs, reason = "wit-bindgen documents what the WIT documents and nothing else")]
    #![allow(unsafe_code, reason = "generated code crosses the component boundary by raw pointers")]
    #![allow(clippy::all, reason = "generated code")]

    wit_bindgen::generate!({
        path: "wit",
        world: "relay:adapter/runs-tasks",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "relay_mesh_sdk::optional::runner::bindings",
        additional_derives: [PartialEq],
        with: { "relay:adapter/types@0.1.0": crate::bindings::relay::adapter::types },
    });
}

/// Runs one task in the harness. An adapter exports this with
/// [`export!(Toad, [runner], manifest = …)`](crate::export).
///
/// The host starts the program and writes the task's text to its standard input, which it then closes. Its standard
/// output is a file; the host gives each line of it once to `read`. The command line is put together from the
/// words that the manifest's `[runs.NAME]` lists.
///
/// ```
/// use relay_mesh_sdk::Error;
/// use relay_mesh_sdk::optional::runner::reading::{Memory, lines, text};
/// use relay_mesh_sdk::optional::runner::*;
/// use serde_json::{Value, json};
///
/// struct Toad;
///
/// impl Runner for Toad {
///     fn ready() -> Result<Readiness, Error> {
///         Ok(Readiness { version: "1.0".into(), login: Login::Unknown, why: None, able: Abilities::LOOK })
///     }
///
///     fn prepare(task: &Task) -> Result<Launch, Error> {
///         match task.reach {
///             Reach::Look => Ok(Launch::of("task").option("read-only", [])),
///             Reach::Edit | Reach::Work | Reach::Unguarded => Err(Error::Unsupported("Toad only reads".into())),
///         }
///     }
///
///     fn read(_: &Task, memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
///         lines(memory, given, |said: &mut Value, line, events| {
///             let answer = text(line, "/answer");
///             if !answer.is_empty() {
///                 *said = json!(true);
///                 events.push(RunEvent::Said(answer.to_owned()));
///             }
///         })
///     }
///
///     fn conclude(_: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
///         let answered = Value::remembered(memory)?.as_bool().unwrap_or_default();
///         Ok(if answered { Outcome::of(Ending::Answered) } else { Outcome::without_last_word(exit, "Toad") })
///     }
/// }
///
/// let line = OutputLine { text: r#"{"answer": "42"}"#.into(), cut: false };
/// let reading = Toad::read(&relay_mesh_sdk::testing::task(), None, &[line])?;
/// assert_eq!(reading.events, [RunEvent::Said("42".into())]);
/// # Ok::<(), Error>(())
/// ```
pub trait Runner {
    /// Says whether a run could begin now. Asks the harness, never its model.
    fn ready() -> Result<Readiness, Error>;

    /// Chooses the command line. Nothing happens yet. Return `unsupported` with the reason if a promise of the task
    /// cannot be kept; never take a wider reach than the task's.
    fn prepare(task: &Task) -> Result<Launch, Error>;

    /// Says what lines of standard output mean. Every call may be on a fresh instance: `memory` is what the call
    /// before returned. Torn, cut and unknown lines are no errors.
    fn read(task: &Task, memory: Option<&str>, lines: &[OutputLine]) -> Result<OutputReading, Error>;

    /// Says what came of the run. Judge by the harness's last event and never by the exit code alone.
    fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error>;
}

impl Outcome {
    /// An outcome with nothing but its ending. The answer is the last event `said`.
    pub fn of(ending: Ending) -> Outcome {
        Outcome {
            ending,
            answer: None,
            output: None,
            session: None,
            usage: None,
            turns: None,
            denials: Vec::new(),
            why: None,
            retry_after_ms: None,
        }
    }

    /// The outcome of a run that ended without the last word that its harness has: it was stopped, or broke off.
    /// `title` is the harness's name.
    pub fn without_last_word(exit: &ProcessExit, title: &str) -> Outcome {
        if exit.asked_to_stop {
            return Outcome { why: Some(format!("{title} was told to stop")), ..Outcome::of(Ending::Stopped) };
        }
        let how = match (exit.code, exit.signal) {
            (_, Some(signal)) => format!("signal {signal} ended {title} in the middle of its work"),
            (Some(code), None) => format!("{title} ended with exit code {code} and without a result"),
            (None, None) => format!("{title} ended without a result"),
        };
        let told = reading::last_words(&exit.stderr_end);
        let why = if told.is_empty() { how } else { format!("{how}: {told}") };
        Outcome { why: Some(why), ..Outcome::of(Ending::BrokeOff) }
    }

    /// The same with a reason for the user.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Outcome {
        Outcome { why: Some(why.into()), ..self }
    }
}

impl Usage {
    /// Nothing used so far, of this run alone.
    pub fn none() -> Usage {
        Usage { input: 0, cached_input: 0, output: 0, reasoning: None, cost: None, whole_session: false }
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_runner {
    ($adapter:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::optional::runner::{
                Launch, Outcome, OutputLine, OutputReading, ProcessExit, Readiness, Runner, Task, bindings,
            };

            struct Component;

            impl bindings::exports::relay::adapter::runner::Guest for Component {
                fn ready() -> Result<Readiness, $crate::Error> {
                    <$adapter as Runner>::ready()
                }
                fn prepare(task: Task) -> Result<Launch, $crate::Error> {
                    <$adapter as Runner>::prepare(&task)
                }
                fn read(
                    task: Task,
                    memory: Option<String>,
                    lines: Vec<OutputLine>,
                ) -> Result<OutputReading, $crate::Error> {
                    <$adapter as Runner>::read(&task, memory.as_deref(), &lines)
                }
                fn conclude(
                    task: Task,
                    memory: Option<String>,
                    exit: ProcessExit,
                ) -> Result<Outcome, $crate::Error> {
                    <$adapter as Runner>::conclude(&task, memory.as_deref(), &exit)
                }
            }

    $crate::optional::runner::bindings::export_component!(Component with_types_in $crate::optional::runner::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = {
            fn runs_tasks<A: $crate::optional::runner::Runner>() {}
            runs_tasks::<$adapter>
        };
    };
}
#[doc(hidden)]
pub use crate::__export_runner as export;
