//! Why a registry gives or takes nothing.

use crate::{Digest, FetchError};

/// A registry did not give or take an artifact.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It gave something else than what its name says.
    #[error("{registry} gave something else than {wanted}: its digest is {found}")]
    Changed { registry: String, wanted: Digest, found: Digest },
    #[error("what {registry} answered is no {what}: {why}")]
    Malformed { registry: String, what: &'static str, why: String },
    /// A well-formed artifact of another kind.
    #[error("it holds no adapter: {0}")]
    NoAdapter(String),
    #[error("the component has {length} bytes, and at most {longest} are taken")]
    TooLarge { length: u64, longest: u64 },
    #[error("{registry} wants a login{}", .used.as_deref().map(|user| format!(", and does not let `{user}` do this")).unwrap_or_default())]
    Denied {
        registry: String,
        /// The user of the login that was shown.
        used: Option<String>,
    },
    #[error("the login for {registry} cannot be read: {why}")]
    Login { registry: String, why: String },
    #[error("{registry} asks for a login by a way that is not known here: {challenge}")]
    Challenge { registry: String, challenge: String },
    #[error("{0} is there already, with another digest: {1}")]
    Taken(String, String),
}

impl RegistryError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            RegistryError::Fetch(error) => error.hint(),
            RegistryError::Changed { .. } => "ask its author which digest is right, and who runs the registry",
            RegistryError::Malformed { .. } => "see that the address is that of an OCI registry",
            RegistryError::NoAdapter(_) => {
                "an adapter is pushed by `relay-mesh plugin push`, or by `wkg oci push`, as one layer of application/wasm"
            }
            RegistryError::TooLarge { .. } => "ask its author for one without debug information",
            RegistryError::Denied { .. } => {
                "log in by `docker login REGISTRY` or `podman login REGISTRY`; their logins are used here"
            }
            RegistryError::Login { .. } => {
                "log in again by `docker login REGISTRY`, or take the entry out of its config.json"
            }
            RegistryError::Challenge { .. } => "use a registry with a token or a basic login",
            RegistryError::Taken(..) => {
                "push the new one under a tag of its own; `--replace` puts it in the place of what others may have pinned"
            }
        }
    }
}
