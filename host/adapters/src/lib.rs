//! Adapters: sandboxed components that know one harness each. This crate finds them, compiles them, gives them the host
//! functions that were granted, and presents each as a [`mesh::ports::harness::Harness`]. It also applies the plans
//! that they make.
//!
//! Start with [`Adapters`], which the binary makes from [`Settings`]; then [`manifest`] for what an adapter
//! requests, and [`grants`] for what it gets. An interface that only some adapters export has one file in
//! `optional/`.
//!
//! Invariants: creating [`Adapters`] runs nothing. Every call has its own instance. Nothing that a component does
//! reaches the host's memory, another adapter, or a file, a socket or a program that its grants do not name. Only this
//! crate names wasmtime and cap-std.

mod adapter;
mod adapters;
pub mod answers;
pub mod apply;
mod bindings;
mod bounds;
mod cache;
pub mod compiling;
mod convert;
mod departure;
mod digest;
mod engine;
mod examine;
mod faults;
mod foreign_settings;
pub mod grants;
mod guest;
pub mod host_functions;
pub mod installed;
mod instance;
mod launch;
mod loading;
pub mod manifest;
pub mod matching;
mod optional;
mod outline;
mod package;
mod places;
mod retention;
mod roots;
mod section;
mod serving;
mod session_process;
mod signature;
mod sources;
mod states;
pub mod template;
mod ticker;
mod unix;

pub use adapter::{Adapter, Usage};
pub use adapters::{Adapters, Settings};
pub use apply::{Applied, ApplyError};
pub use cache::{CacheCondition, Compilation};
pub use compiling::Compiler;
pub use departure::{Leftover, SetUp};
pub use digest::{Digest, InvalidDigest};
pub use examine::{Audit, Examination, Grantee, Objection};
pub use faults::{Counters, Fault};
pub use grants::{Consent, Consents, Denied, Grant, Grants, NoConsents};
pub use host_functions::notices::OwnNotices;
pub use installed::{InstalledAdapters, InstalledError};
pub use manifest::USERS_COMMAND;
pub use package::{LARGEST, Package, PackageError};
pub use retention::LeftByAdapters;
pub use roots::{RootError, hint_of_link};
pub use section::Excess;
pub use serving::HarnessServer;
pub use signature::{NoKey, PublisherKey, Signed, SigningKey, SigningKeyError};
pub use sources::Source;
pub use states::{AdapterState, Condition, Unused};
pub use template::{OwnInstallation, Surroundings};
pub use unix::socket::connect as connect_unix;

/// The names of the adapters that are part of the program.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    sources::Sources::built_in_names()
}
