//! Adapters in OCI registries, in the form that the CNCF's working group on WebAssembly gave them: a manifest, a config
//! of `application/vnd.wasm.config.v0+json`, and the component as its one layer of `application/wasm`.

mod artifact;
mod credentials;
mod error;
mod login;
mod reference;
mod registry;

pub use artifact::{About, Artifact};
pub use credentials::Logins;
pub use error::RegistryError;
pub use reference::{InvalidReference, Reference};
pub use registry::{Pulled, Pushed, Registry};
