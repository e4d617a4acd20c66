//! Write a relay-mesh adapter: the piece that teaches the mesh about one harness.
//!
//! An adapter is a WebAssembly component for one harness (the agent's client: Claude Code, Codex …). It
//! says which session makes a call ([`Sessions`]), what an agent is told about the mesh ([`Context`]), how
//! a message reaches a session ([`Push`]), which files set the harness up ([`Install`]) and what the
//! harness's own hooks mean ([`Hooks`]). Each of these traits has defaults, so you write only what is
//! special about your harness. [`optional`] holds further interfaces, such as running slash commands.
//!
//! - [`export!`] makes the component and embeds its manifest: `cargo build --target wasm32-wasip2`.
//! - [`files`], [`state`], [`http`], [`programs`], [`channels`], [`notices`], [`clock`] and the log
//!   macros call the host's functions, with the names that your manifest gives to each resource.
//! - [`edit`] changes settings files and keeps what others wrote in them, [`plan`] makes an
//!   install plan of such changes, [`servers`] keeps our entry in a list of MCP servers,
//!   [`hook_settings`] our hooks in a list by event, and [`checklist`] collects what a check finds.
//! - [`payload`] reads a hook's payload, [`dated_state`] and [`turns`] remember what a later call needs,
//!   and [`hook_groups`] and [`hook_output`] are for harnesses whose hooks have Claude Code's shape.
//! - [`words`] holds the texts that agents of every harness get.
//! - [`testing`] fakes all host functions, so you test an adapter with plain `cargo test`.
//!
//! A hook that shows waiting mail after each tool, and its test:
//!
//! ```
//! use relay_mesh_sdk::hooks::{Call, Findings, Reading, Reply};
//! use relay_mesh_sdk::payload::Fields;
//! use relay_mesh_sdk::testing::{hook, mail, nothing_found};
//! use relay_mesh_sdk::{Error, Hooks, Session};
//!
//! struct Toad;
//!
//! impl Hooks for Toad {
//!     fn read(call: &Call) -> Result<Reading, Error> {
//!         let fields = Fields::of(call)?;
//!         let session = Session::new(fields.required("session")?, fields.required("cwd")?);
//!         Ok(Reading { speaker: Some(session), max_bytes: 6_000, ..Reading::nothing() })
//!     }
//!
//!     fn answer(_: &Call, found: Findings) -> Result<Reply, Error> {
//!         Ok(match found.mail {
//!             Some(mail) => Reply::stdout(mail.text).showing(true),
//!             None => Reply::silent(),
//!         })
//!     }
//! }
//!
//! let payload = r#"{"session": "s1", "cwd": "/home/u/app"}"#.to_owned();
//! let call = Call::new("after-tool", payload);
//! let waiting = Findings { mail: Some(mail("<mail>")), ..nothing_found() };
//! let (reading, reply) = hook::<Toad>(&call, |_| waiting)?;
//! assert_eq!(reading.speaker.map(|session| session.id).as_deref(), Some("s1"));
//! assert_eq!((reply.stdout.as_deref(), reply.shows_mail), (Some("<mail>"), true));
//! # Ok::<(), Error>(())
//! ```
//!
//! Authors of a component in another language need only `wit/v0.1`; this crate adds nothing that the
//! interface does not allow.
#![deny(missing_docs)]

#[doc(hidden)]
pub mod bindings;
pub mod checklist;
pub mod context;
pub mod dated_state;
pub mod edit;
mod export;
pub mod hook_groups;
pub mod hook_output;
pub mod hook_settings;
pub mod hooks;
mod host_functions;
pub mod identity;
pub mod install;
pub mod launch;
pub mod optional;
pub mod payload;
pub mod plan;
pub mod push;
pub mod servers;
pub mod sessions;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod turns;
pub mod words;

pub use bindings::relay::adapter::types::{Activity, Error, Mail, Occasion, Priority, Session};
pub use context::Context;
pub use hooks::Hooks;
pub use host_functions::{channels, clock, files, http, log, notices, programs, state};
pub use identity::{About, Identity};
pub use install::Install;
pub use push::Push;
pub use sessions::Sessions;

/// A type that implements all six traits of an adapter.
pub trait Adapter: Identity + Sessions + Context + Push + Install + Hooks {}

impl<A: Identity + Sessions + Context + Push + Install + Hooks> Adapter for A {}

/// The value of a variable; none if it is missing or empty.
///
/// ```
/// let environment = vec![("SESSION".to_owned(), "s1".to_owned()), ("EMPTY".to_owned(), String::new())];
/// assert_eq!(relay_mesh_sdk::variable(&environment, "SESSION"), Some("s1"));
/// assert_eq!(relay_mesh_sdk::variable(&environment, "EMPTY"), None);
/// ```
pub fn variable<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    environment.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
}

impl Session {
    /// A root session with only its id and folder.
    pub fn new(id: impl Into<String>, workdir: impl Into<String>) -> Session {
        Session { id: id.into(), parent: None, workdir: workdir.into(), process: None, route_hint: None }
    }
}
