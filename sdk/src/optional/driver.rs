//! Driving a live agent: the host starts the harness and gives it turns for as long as it lives.
//!
//! [`rpc`] has what a protocol of JSON-RPC needs between calls that may each run on a fresh instance, and [`acp`] is the
//! whole adapter's side of the Agent Client Protocol.

pub mod acp;
pub mod rpc;

pub use bindings::exports::relay::adapter::driver::{
    Abilities, Action, Agent, Answer, Approvals, ChoiceOffered, Connection, Event as AgentEvent, Exchange, Failure,
    Item, Operation, Prompt, PromptStatus, Question, Reply, SessionEvent, Tokens, TurnEnd,
};

pub use crate::launch::{Extensions, Installation, Launch, Reach, StopSignal};
pub use crate::optional::runner::reading::Memory;

use crate::Error;
use crate::optional::runner::{Start, Task};

/// What wit-bindgen makes of `world drives-agents`. Public only because the export macro names it.
#[doc(hidden)]
pub mod bindings {
    #![allow(missing_docs, reason = "wit-bindgen documents what the WIT documents and nothing else")]
    #![allow(unsafe_code, reason = "generated code crosses the component boundary by raw pointers")]
    #![allow(clippy::all, reason = "generated code")]

    wit_bindgen::generate!({
        path: "wit",
        world: "relay:adapter/drives-agents",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "relay_mesh_sdk::optional::driver::bindings",
        additional_derives: [PartialEq],
        with: { "relay:adapter/types@0.1.0": crate::bindings::relay::adapter::types },
    });
}

/// The most bytes of an item's detail.
const LONGEST_DETAIL: usize = 4 * 1024;

/// Drives agents of the harness. An adapter exports this with
/// [`export!(Toad, [driver], manifest = …)`](crate::export).
///
/// The host starts the program by the manifest's `[drives.NAME]` and carries frames between it and the adapter. Every
/// call may run on a fresh instance: `memory` is what the call before returned.
///
/// For a harness that speaks the Agent Client Protocol, [`acp`] does all of it:
///
/// ```
/// use relay_mesh_sdk::Error;
/// use relay_mesh_sdk::optional::driver::{acp::Acp, *};
///
/// struct Toad;
///
/// /// The manifest has `[drives.acp]` with `program = "toad"` and `words = ["--acp"]`.
/// const ACP: Acp = Acp { name: "acp" };
///
/// impl Driver for Toad {
///     fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
///         Ok(vec![ACP.connection(Launch::of("acp").option_if("model", agent.model.as_deref()))])
///     }
///     fn connect(_: &str) -> Result<Exchange, Error> {
///         ACP.connect()
///     }
///     fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
///         ACP.act(memory, action)
///     }
///     fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
///         ACP.receive(memory, frames)
///     }
/// }
///
/// let greeting = Toad::connect("acp")?;
/// assert!(greeting.frames[0].contains(r#""method":"initialize""#));
/// # Ok::<(), Error>(())
/// ```
pub trait Driver {
    /// The ways of reaching such an agent, the best first. Nothing happens yet. Return `unsupported` with the reason if
    /// a promise of `agent` cannot be kept; never take a wider reach than the agent's.
    fn connections(agent: &Agent, resume: Option<&str>) -> Result<Vec<Connection>, Error>;

    /// The first frames of a new connection.
    fn connect(connection: &str) -> Result<Exchange, Error>;

    /// Frames that make the agent do something.
    fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error>;

    /// What frames mean that came. Every request of the harness gets an answer, also one that is not known.
    fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error>;
}

impl Agent {
    /// The agent as a task, for an adapter whose [`Runner`](crate::optional::runner::Runner) words the command line: who
    /// is driven and who is run have the same guards.
    pub fn task(&self, resume: Option<&str>) -> Task {
        Task {
            id: self.id.clone(),
            folder: self.folder.clone(),
            start: resume.map_or_else(|| Start::Fresh(self.id.clone()), |session| Start::Resume(session.to_owned())),
            reach: self.reach,
            extensions: self.extensions,
            installation: self.installation.clone(),
            model: self.model.clone(),
            schema: None,
            guidance: (!self.guidance.is_empty()).then(|| self.guidance.clone()),
            turns: None,
            cost: None,
        }
    }
}

/// What a call sends and says, while it is put together.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Frames to send, in order.
    pub frames: Vec<String>,
    /// What happened, in order.
    pub events: Vec<SessionEvent>,
}

impl Outbox {
    /// Adds a frame of JSON.
    pub fn send(&mut self, frame: &serde_json::Value) {
        self.frames.push(frame.to_string());
    }

    /// Adds an event of a session.
    pub fn say(&mut self, session: &str, event: AgentEvent) {
        self.events.push(SessionEvent { session: Some(session.to_owned()), event });
    }

    /// Adds an event of the whole connection.
    pub fn note(&mut self, event: AgentEvent) {
        self.events.push(SessionEvent { session: None, event });
    }

    /// Adds that the last action about a prompt, a question or a session did nothing.
    pub fn refuse(&mut self, session: Option<&str>, what: &str, why: Error) {
        self.events.push(SessionEvent {
            session: session.map(str::to_owned),
            event: AgentEvent::Refused((what.to_owned(), why)),
        });
    }

    /// The call's result, with what is to be remembered.
    pub fn exchange(self, memory: &impl Memory) -> Result<Exchange, Error> {
        Ok(Exchange { memory: Some(memory.kept()?), frames: self.frames, events: self.events })
    }
}

/// The end of a text, as long as an item's detail may be.
pub fn detail(text: &str) -> Option<String> {
    let from = text.len().saturating_sub(LONGEST_DETAIL);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    (!text.is_empty()).then(|| text[from..].to_owned())
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_driver {
    ($adapter:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::optional::driver::{Action, Agent, Connection, Driver, Exchange, bindings};

            struct Component;

            impl bindings::exports::relay::adapter::driver::Guest for Component {
                fn connections(agent: Agent, resume: Option<String>) -> Result<Vec<Connection>, $crate::Error> {
                    <$adapter as Driver>::connections(&agent, resume.as_deref())
                }
                fn connect(connection: String) -> Result<Exchange, $crate::Error> {
                    <$adapter as Driver>::connect(&connection)
                }
                fn act(memory: Option<String>, action: Action) -> Result<Exchange, $crate::Error> {
                    <$adapter as Driver>::act(memory.as_deref(), action)
                }
                fn receive(memory: Option<String>, frames: Vec<String>) -> Result<Exchange, $crate::Error> {
                    <$adapter as Driver>::receive(memory.as_deref(), &frames)
                }
            }

    $crate::optional::driver::bindings::export_component!(Component with_types_in $crate::optional::driver::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = {
            fn drives_agents<A: $crate::optional::driver::Driver>() {}
            drives_agents::<$adapter>
        };
    };
}
#[doc(hidden)]
pub use crate::__export_driver as export;
