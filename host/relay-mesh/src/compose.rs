//! Composition: the one place that puts store, machine, adapters and mesh together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapters::Adapters;
use mesh::{Mesh, Parts};
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store, StoreError};

use crate::config::Durable;
use crate::context::Context;
use crate::machine::{MachineError, ThisMachine};

/// Whose environment the harnesses may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// This process was started by the harness or by a person's shell.
    ThisProcess,
    /// This process serves many, and its own environment belongs to none of them.
    Nobody,
}

/// Everything that a command works with.
pub(crate) struct Open {
    /// The data folder's store: shared and machine-local in one, where the mesh is a folder.
    pub(crate) store: Arc<dyn Store>,
    /// This machine.
    pub(crate) machine: Arc<ThisMachine>,
    /// The adapters. None is loaded before it is asked for.
    pub(crate) adapters: Arc<Adapters>,
    /// The mesh.
    pub(crate) mesh: Arc<Mesh>,
}

/// Why the mesh cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The data folder is not one that this process can use.
    #[error("the data folder `{}` cannot be used", dir.display())]
    Store {
        /// The folder.
        dir: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// The machine has no name.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Opens what the settings name.
pub(crate) fn open(context: &Context, client: Client) -> Result<Open, OpenError> {
    let settings = &context.settings;
    let dir = settings.dir.value.clone();
    let store: Arc<dyn Store> = match FilesStore::open(&dir, options(settings.durability.value)) {
        Ok(store) => Arc::new(store),
        Err(source) => return Err(OpenError::Store { dir, source }),
    };
    let machine = Arc::new(ThisMachine::named_in(&dir)?);
    let adapters = Arc::new(adapters(context, client, Arc::clone(&store)));
    let mesh = Arc::new(Mesh::new(Parts {
        shared: Arc::clone(&store),
        local: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::machine::Machine>,
        harnesses: Arc::clone(&adapters) as Arc<dyn mesh::harness::Harnesses>,
        limits: settings.limits(),
    }));
    Ok(Open { store, machine, adapters, mesh })
}
