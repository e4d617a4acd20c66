//! Composition: the one place that puts store, machine, adapters and mesh together.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters::{Adapters, InstalledAdapters, Surroundings};
use mesh::machine::Machine as _;
use mesh::{Mesh, Parts};
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store, StoreError};
use store_nats::{NatsAuth, NatsOptions, NatsStore};

use crate::config::{AllowedCommands, Durable, NatsValues, Servers, Shared};
use crate::context::Context;
use crate::errors::{Explain, store::OTHER_FOLDER};
use crate::exit::Exit;
use crate::machine::{MachineError, ThisMachine};
use crate::server::HostError;
use crate::server::nats::{self, ServerRecord};

/// How long a hook waits for an answer of the servers: its harness waits for it, tool for tool.
const HOOKS_PATIENCE: Duration = Duration::from_secs(1);

/// Whose environment the harnesses may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// This process was started by the harness or by a person's shell.
    ThisProcess,
    /// The same, and the harness waits for it: it waits for nobody for long.
    Hook,
    /// This process serves many, and its own environment belongs to none of them.
    Nobody,
}

/// Everything that a command works with.
pub(crate) struct Open {
    /// The servers, where the mesh is on some.
    pub(crate) servers: Option<NatsStore>,
    /// The data folder's store: what is this machine's own, and where the mesh is a folder, everything.
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
    /// The folder is somebody's already, and opening it would shut its other users out.
    #[error("`{}` is no data folder: it holds other things, and others than you may enter it", dir.display())]
    NotOurs {
        /// The folder.
        dir: PathBuf,
    },
    /// The machine has no name.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A file with a secret for the servers cannot be read.
    #[error("`{}`, which `{key}` names, cannot be read", path.display())]
    Secret {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A user of the servers without a password.
    #[error("`nats.user` is set, and no file with a password")]
    NoPassword,
    /// A password of nobody's.
    #[error("`nats.password` is set, and no user")]
    NoUser,
    /// A certificate without its key, or a key without its certificate.
    #[error("`nats.{given}` is set, and no `nats.{missing}`")]
    HalfACertificate {
        /// What is there.
        given: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// The server of this machine's own left no record that can be read.
    #[error(transparent)]
    Server(#[from] HostError),
    /// What would become part of subjects and cannot.
    #[error(transparent)]
    Prefix(#[from] store_nats::InvalidName),
}

impl Explain for OpenError {
    fn exit(&self) -> Exit {
        Exit::Store
    }

    fn hint(&self) -> Option<String> {
        match self {
            OpenError::Store { source, .. } => source.hint(),
            OpenError::NotOurs { dir } => Some(format!(
                "choose a folder of its own, such as `{}`: what is a data folder is made yours alone",
                dir.join("relay-mesh").display()
            )),
            OpenError::Machine(_) => Some(OTHER_FOLDER.to_owned()),
            OpenError::Secret { .. } => Some("name a file that you can read, in `[nats]` of your settings".to_owned()),
            OpenError::NoPassword => {
                Some("set `password` in `[nats]`, or RELAY_NATS_PASSWORD, to a file that holds it".to_owned())
            }
            OpenError::HalfACertificate { .. } => {
                Some("set both `certificate` and `key` in `[nats]`: each is a file in PEM".to_owned())
            }
            OpenError::NoUser => Some("set `user` in `[nats]`, or RELAY_NATS_USER, beside the password".to_owned()),
            OpenError::Server(error) => error.hint(),
            OpenError::Prefix(_) => Some("set `prefix` in `[nats]` to a word such as RELAY".to_owned()),
        }
    }
}

/// Rewrites a data folder of before 0.1 in the words of today, once (docs/adr/0018). A process that is killed in
/// between leaves that to the next one.
pub(crate) async fn upgrade(context: &Context) -> Result<(), OpenError> {
    let dir = &context.settings.dir.value;
    if !ThisMachine::is_of_before(dir) || is_shared_and_not_ours(dir) {
        return Ok(());
    }
    let store = open_folder(dir, options(Durable::Disk))?;
    let failed = |source| OpenError::Store { dir: dir.clone(), source };
    let upgraded = mesh::storage::upgrade::upgrade(&store).await.map_err(failed)?;
    ThisMachine::is_of_today(dir).map_err(|source| MachineError::of(dir, source))?;
    tracing::info!(records = upgraded.records, renamed = upgraded.renamed, "the data folder was upgraded");
    Ok(())
}

/// Opens what the settings name.
pub(crate) fn open(context: &Context, client: Client) -> Result<Open, OpenError> {
    let settings = &context.settings;
    let dir = settings.dir.value.clone();
    let store: Arc<dyn Store> = Arc::new(open_folder(&dir, options(settings.durability.value))?);
    let machine = Arc::new(ThisMachine::named_in(&dir)?);
    // One folder holds what the person installed and what they gave to it: see docs/adr/0007.
    let shelf = Arc::new(InstalledAdapters::new(settings.dir.value.join("plugins")));
    let adapters = Arc::new(Adapters::new(adapters::Settings {
        store: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::machine::Machine>,
        cache: cache(context),
        installs: settings.dir.value.join("installs"),
        installed: Some(Arc::clone(&shelf)),
        plugin_folders: settings.plugins.value.clone(),
        surroundings: surroundings(context, client),
        consents: shelf,
        host_functions: adapters::host_functions::Settings::default(),
    }));
    let servers = match &settings.shared.value {
        Shared::InTheFolder => None,
        Shared::Nats(servers) => {
            let values = with_own_token(servers, &settings.nats, &dir, machine.as_ref())?;
            Some(on_servers(servers, &values, machine.as_ref(), client)?)
        }
    };
    let shared: Arc<dyn Store> = match &servers {
        None => Arc::clone(&store),
        Some(servers) => Arc::new(servers.clone()),
    };
    let mesh = Mesh::new(Parts {
        shared,
        local: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::machine::Machine>,
        harnesses: Arc::clone(&adapters) as Arc<dyn mesh::harness::Harnesses>,
        limits: settings.limits(),
    });
    let mesh = Arc::new(match AllowedCommands::of(settings, &context.environment) {
        Ok(allowed) => mesh.with_consents(Arc::new(allowed)),
        // Without a home nobody can have allowed anything.
        Err(_) => mesh,
    });
    Ok(Open { servers, store, machine, adapters, mesh })
}

/// Opens a folder as a store, which makes it the user's alone. What others share and nobody made for this, such as
/// `/tmp` or a home, is left as it is.
pub(crate) fn open_folder(dir: &Path, options: FilesOptions) -> Result<FilesStore, OpenError> {
    if is_shared_and_not_ours(dir) {
        return Err(OpenError::NotOurs { dir: dir.to_owned() });
    }
    FilesStore::open(dir, options).map_err(|source| OpenError::Store { dir: dir.to_owned(), source })
}

/// Whether others may enter a folder that holds something and was never a data folder. What cannot be looked at
/// is left for the store to say.
fn is_shared_and_not_ours(dir: &Path) -> bool {
    let is_shared = std::fs::metadata(dir).is_ok_and(|found| found.is_dir() && found.mode() & 0o077 != 0);
    is_shared
        && std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
        && !ThisMachine::is_named_in(dir)
}

/// The mesh on servers, on which each machine keeps to its own.
pub(crate) fn on_servers(
    servers: &Servers,
    values: &NatsValues,
    machine: &ThisMachine,
    client: Client,
) -> Result<NatsStore, OpenError> {
    let mut options = nats_options(servers, values, machine)?;
    match client {
        Client::Hook => options.timeout = HOOKS_PATIENCE,
        Client::ThisProcess | Client::Nobody => {}
    }
    Ok(NatsStore::with_homes(options, Arc::new(mesh::Homes)))
}

/// The settings, with the token of the server that `relay-mesh up --nats` started where that one is meant.
pub(crate) fn with_own_token(
    servers: &Servers,
    values: &NatsValues,
    dir: &Path,
    machine: &ThisMachine,
) -> Result<NatsValues, OpenError> {
    let own = if values.names_somebody() { None } else { ServerRecord::find(dir, machine)? };
    let is_own = own.is_some_and(|record| servers.addresses() == [record.url()]);
    let token = is_own.then(|| nats::token_path(dir)).or_else(|| values.token.clone());
    Ok(NatsValues { token, ..values.clone() })
}

/// How the servers are reached. Secrets are read from their files here, and kept nowhere.
fn nats_options(servers: &Servers, values: &NatsValues, machine: &ThisMachine) -> Result<NatsOptions, OpenError> {
    let secret = |key, path: &PathBuf| match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(OpenError::Secret { key, path: path.clone(), source }),
    };
    let auth = match values {
        NatsValues { credentials: Some(file), .. } => NatsAuth::Credentials(file.clone()),
        NatsValues { nkey: Some(file), .. } => NatsAuth::NKey(secret("nats.nkey", file)?),
        NatsValues { user: Some(user), password: Some(file), .. } => {
            NatsAuth::Password { user: user.clone(), password: secret("nats.password", file)? }
        }
        NatsValues { user: Some(_), password: None, .. } => return Err(OpenError::NoPassword),
        NatsValues { token: Some(file), .. } => NatsAuth::Token(secret("nats.token", file)?),
        NatsValues { password: Some(_), .. } => return Err(OpenError::NoUser),
        _ => NatsAuth::Nobody,
    };
    // Whoever uses them later says that a file is missing, and not which.
    for (key, file) in [("nats.ca", &values.ca), ("nats.certificate", &values.certificate), ("nats.key", &values.key)] {
        if let Some(path) = file {
            let unreadable = |source| OpenError::Secret { key, path: path.clone(), source };
            std::fs::File::open(path).map_err(unreadable)?;
        }
    }
    let client_certificate = match (&values.certificate, &values.key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (Some(_), None) => return Err(OpenError::HalfACertificate { given: "certificate", missing: "key" }),
        (None, Some(_)) => return Err(OpenError::HalfACertificate { given: "key", missing: "certificate" }),
        (None, None) => None,
    };
    let usual = NatsOptions::default();
    let options = NatsOptions {
        servers: servers.addresses().to_vec(),
        auth,
        root_certificates: values.ca.clone(),
        client_certificate,
        domain: values.domain.clone(),
        prefix: values.prefix.clone().unwrap_or(usual.prefix),
        host: machine.name().to_owned(),
        replicas: values.replicas.unwrap_or(usual.replicas),
        kept_for: usual.kept_for,
        timeout: usual.timeout,
        timekeeper: Some(machine.timekeeper()),
    };
    options.check()?;
    Ok(options)
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
        Client::ThisProcess | Client::Hook => {
            (Some(context.workdir.clone()), context.environment.pairs().into_iter().collect())
        }
        Client::Nobody => (None, context.environment.of_the_person()),
    };
    Surroundings { home: context.environment.home(), project, environment, in_place_of_root: None }
}
