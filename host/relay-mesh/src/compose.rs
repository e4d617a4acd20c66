//! Composition: the one place that puts store, machine, adapters and mesh together.

use std::path::PathBuf;
use std::sync::Arc;

use adapters::{Adapters, Shelf, Surroundings};
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
    // One folder holds what the person installed and what they gave to it: see docs/adr/0007.
    let shelf = Arc::new(Shelf::new(settings.dir.value.join("plugins")));
    let adapters = Arc::new(Adapters::new(adapters::Settings {
        store: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::machine::Machine>,
        cache: cache(context),
        installs: settings.dir.value.join("installs"),
        shelf: Some(Arc::clone(&shelf)),
        plugin_folders: settings.plugins.value.clone(),
        surroundings: surroundings(context, client),
        consents: shelf,
        lent: adapters::lent::Settings::default(),
    }));
    let mesh = Arc::new(Mesh::new(Parts {
        shared: Arc::clone(&store),
        local: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::machine::Machine>,
        harnesses: Arc::clone(&adapters) as Arc<dyn mesh::harness::Harnesses>,
        limits: settings.limits(),
    }));
    Ok(Open { store, machine, adapters, mesh })
}

fn options(durable: Durable) -> FilesOptions {
    let durability = match durable {
        Durable::Disk => Durability::Synced,
        Durable::Process => Durability::Process,
    };
    FilesOptions { durability, ..FilesOptions::default() }
}

/// Compiled adapters are shared by all data folders of a person. Without a home they lie with the data.
fn cache(context: &Context) -> PathBuf {
    let shared = context.environment.xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("relay-mesh/adapters"));
    shared.unwrap_or_else(|| context.settings.dir.value.join("cache"))
}

/// What adapters' paths and programs are filled from.
fn surroundings(context: &Context, client: Client) -> Surroundings {
    let (project, environment) = match client {
        Client::ThisProcess => (Some(context.workdir.clone()), context.environment.pairs().into_iter().collect()),
        Client::Nobody => (None, context.environment.of_the_person()),
    };
    Surroundings { home: context.environment.home(), project, environment, in_place_of_root: None }
}
