//! Composition: the one place that puts store, machine, adapters and mesh together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters::compiling::{Attempt, Limits};
use adapters::{Adapters, Compiler, InstalledAdapters, Surroundings};
use mesh::ports::machine::Machine as _;
use mesh::{Mesh, MeshIndexRule, Parts};
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store, StoreError};
use store_nats::{NatsAuth, NatsOptions, NatsStore};

use crate::config::{AllowedCommands, Durable, NatsValues, Servers, Shared};
use crate::context::Context;
use crate::data_format;
use crate::errors::{Explain, store::OTHER_FOLDER};
use crate::exit::Exit;
use crate::git_checkout;
use crate::machine::{MachineError, ThisMachine};
use crate::owner;
use crate::server::ServerError;
use crate::server::nats::{self, NatsRecord};
use crate::setup::request::Installation;
use crate::unix::MetadataExt as _;

/// How long a hook waits for the servers: its harness waits for the hook at every tool call.
const HOOKS_PATIENCE: Duration = Duration::from_secs(1);

/// The folder of the data folder that has the installed adapters.
pub(crate) const PLUGINS: &str = "plugins";
/// The folder of the data folder that notes which programs run for adapters.
const PROGRAMS: &str = "programs";

/// Whose environment the adapters may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// This process was started by the harness or by the user's shell.
    ThisProcess,
    /// The same, but the harness waits for this process, so its timeouts are short.
    Hook,
    /// This process serves many clients, and its environment belongs to none of them.
    Nobody,
}

/// The opened stores, adapters and mesh that a command uses.
pub(crate) struct Open {
    /// The servers, if the mesh uses servers.
    pub(crate) servers: Option<NatsStore>,
    /// The data folder's store: this machine's own data, or all data if the mesh uses no servers.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) machine: Arc<ThisMachine>,
    /// Each adapter is loaded when it is first used.
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) mesh: Arc<Mesh>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the data folder `{}` cannot be used", dir.display())]
    Store { dir: PathBuf, source: StoreError },
    /// Opening makes the folder private, which would shut out its other users.
    #[error("`{}` is not a data folder: it contains other files, and other users may enter it", dir.display())]
    NotOurs { dir: PathBuf },
    /// What one user writes there, the other cannot read.
    #[error("`{}` belongs to user {owner}, and this runs as user {us}", dir.display())]
    OthersFolder { dir: PathBuf, owner: u32, us: u32 },
    /// To write there would be to damage what a later version has written.
    #[error("the data folder `{}` is of a later version: its format is `{format}`, and this one knows {}", dir.display(), data_format::KNOWN)]
    LaterVersion { dir: PathBuf, format: String },
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("the system does not tell where this program lies")]
    Itself(#[source] std::io::Error),
    #[error("`{}`, which `{key}` names, cannot be read", path.display())]
    Secret { key: &'static str, path: PathBuf, source: std::io::Error },
    #[error("`nats.user` is set, but no password file")]
    NoPassword,
    #[error("`nats.password` is set, but no user")]
    NoUser,
    #[error("`nats.{given}` is set, but not `nats.{missing}`")]
    HalfACertificate { given: &'static str, missing: &'static str },
    #[error(transparent)]
    Server(#[from] ServerError),
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
                "choose a folder of its own, such as `{}`: relay-mesh closes its data folder to other users",
                dir.join("relay-mesh").display()
            )),
            OpenError::OthersFolder { owner, us: 0, .. } => Some(format!(
                "root's files would be closed to their owner: run this without `sudo -E` (`sudo -H` uses root's own home), \
                 or in a container as that user (`--user {owner}`); RELAY_DIR may name a folder of root's own"
            )),
            OpenError::OthersFolder { .. } => Some(OTHER_FOLDER.to_owned()),
            OpenError::LaterVersion { .. } => Some(
                "nothing was changed: use the newer relay-mesh that wrote it (`relay-mesh version` says which one this is)"
                    .to_owned(),
            ),
            OpenError::Machine(_) => Some(OTHER_FOLDER.to_owned()),
            OpenError::Itself(_) => Some("start it anew: its file may have been deleted".to_owned()),
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

/// Upgrades a data folder of a version before 0.1, once (docs/adr/0018). If the process is killed meanwhile, the next
/// one finishes it.
pub(crate) async fn upgrade(context: &Context) -> Result<(), OpenError> {
    let dir = &context.settings.dir.value;
    if !ThisMachine::is_of_before(dir) || is_shared_and_not_ours(dir) || owner::foreign(dir, owner::us()).is_some() {
        return Ok(());
    }
    let store = open_folder(dir, options(Durable::Disk))?;
    let failed = |source| OpenError::Store { dir: dir.clone(), source };
    let upgraded = mesh::storage::upgrade::upgrade(&store).await.map_err(failed)?;
    ThisMachine::is_of_today(dir).map_err(|source| MachineError::of(dir, source))?;
    tracing::info!(records = upgraded.records, renamed = upgraded.renamed, "the data folder was upgraded");
    Ok(())
}

/// Opens the stores and the mesh that the settings name.
pub(crate) fn open(context: &Context, client: Client) -> Result<Open, OpenError> {
    let settings = &context.settings;
    let dir = settings.dir.value.clone();
    let store: Arc<dyn Store> = Arc::new(open_folder(&dir, options(settings.durability.value))?);
    // A process that was killed may have left programs of adapters.
    processes::note_groups_in(dir.join(PROGRAMS));
    let machine = Arc::new(ThisMachine::named_in(&dir)?);
    // One folder holds the installed adapters and the permissions that the user gave them: see docs/adr/0007.
    let installed = InstalledAdapters::new(settings.dir.value.join(PLUGINS));
    let installed = Arc::new(installed.refusing(settings.refused_keys.value.clone()));
    let adapters = Arc::new(Adapters::new(adapters::Settings {
        store: Arc::clone(&store),
        machine: Arc::clone(&machine) as Arc<dyn mesh::ports::machine::Machine>,
        cache: cache(context),
        cache_aside: Some(cache_aside(context)),
        compiler: compiler(Attempt::InUse)?,
        installs: settings.dir.value.join("installs"),
        rates: Some(settings.dir.value.join("rates")),
        installed: Some(Arc::clone(&installed)),
        plugin_folders: settings.plugins.value.clone(),
        surroundings: surroundings(context, client),
        consents: installed,
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
        machine: Arc::clone(&machine) as Arc<dyn mesh::ports::machine::Machine>,
        harnesses: Arc::clone(&adapters) as Arc<dyn mesh::ports::harness::Harnesses>,
        limits: settings.limits(),
    });
    let mesh = mesh.with_desktop(Arc::new(adapters::OwnNotices::of(&surroundings(context, client))));
    let mesh = Arc::new(match AllowedCommands::of(settings, &context.environment) {
        Ok(allowed) => mesh.with_consents(Arc::new(allowed)),
        // Without a home folder there is no file with permissions.
        Err(_) => mesh,
    });
    Ok(Open { servers, store, machine, adapters, mesh })
}

/// This binary compiles components in a process of their own.
pub(crate) fn compiler(usually: Attempt) -> Result<Compiler, OpenError> {
    let binary = processes::this_binary().map_err(OpenError::Itself)?;
    Ok(Compiler::Apart { binary, limits: Limits::default(), usually })
}

/// Opens a folder as a store, which makes it private to the user. Refuses a shared folder that was not made for this,
/// such as `/tmp` or a home.
pub(crate) fn open_folder(dir: &Path, options: FilesOptions) -> Result<FilesStore, OpenError> {
    let us = owner::us();
    if let Some(owner) = owner::foreign(dir, us) {
        return Err(OpenError::OthersFolder { dir: dir.to_owned(), owner, us });
    }
    if is_shared_and_not_ours(dir) {
        return Err(OpenError::NotOurs { dir: dir.to_owned() });
    }
    if let Some(format) = data_format::unknown(dir) {
        return Err(OpenError::LaterVersion { dir: dir.to_owned(), format });
    }
    FilesStore::open(dir, options).map_err(|source| OpenError::Store { dir: dir.to_owned(), source })
}

/// Whether other users may enter a folder that is not empty and was never a data folder. If the folder cannot be read,
/// the store reports why.
fn is_shared_and_not_ours(dir: &Path) -> bool {
    let is_shared = std::fs::metadata(dir).is_ok_and(|found| found.is_dir() && found.mode() & 0o077 != 0);
    is_shared
        && std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
        && !ThisMachine::is_named_in(dir)
}

/// The store on servers, where each machine writes only its own keys.
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
    Ok(NatsStore::with_rules(options, Some(Arc::new(mesh::AgentOwnership)), Arc::new(mesh::MeshIndexRule)))
}

/// The settings, with the token of the nats-server that `relay-mesh up --nats` started if `servers` names that one.
pub(crate) fn with_own_token(
    servers: &Servers,
    values: &NatsValues,
    dir: &Path,
    machine: &ThisMachine,
) -> Result<NatsValues, OpenError> {
    let own = if values.names_somebody() { None } else { NatsRecord::find(dir, machine)? };
    let is_own = own.is_some_and(|record| servers.addresses() == [record.url()]);
    let token = is_own.then(|| nats::token_path(dir)).or_else(|| values.token.clone());
    Ok(NatsValues { token, ..values.clone() })
}

/// The connection options. Reads the secrets from their files; relay-mesh stores them nowhere else.
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
    // Checked here because the TLS library reports a missing file without naming it.
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
        machine: machine.name().to_owned(),
        replicas: values.replicas.unwrap_or(usual.replicas),
        kept_for: usual.kept_for,
        timeout: usual.timeout,
        timekeeper: Some(machine.timekeeper()),
    };
    options.check()?;
    Ok(options)
}

pub(crate) fn options(durable: Durable) -> FilesOptions {
    let durability = match durable {
        Durable::Disk => Durability::Synced,
        Durable::Process => Durability::Process,
    };
    FilesOptions { durability, rule: Some(Arc::new(MeshIndexRule)), ..FilesOptions::default() }
}

/// All data folders of a user share the compiled adapters. Without a home folder they are stored with the data.
pub(crate) fn cache(context: &Context) -> PathBuf {
    let shared = context.environment.xdg("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("relay-mesh/adapters"));
    shared.unwrap_or_else(|| cache_aside(context))
}

/// Where they are stored if that folder cannot be used.
pub(crate) fn cache_aside(context: &Context) -> PathBuf {
    context.settings.dir.value.join("cache")
}

/// The folder of the user's own settings.
pub(crate) fn settings_folder(context: &Context) -> Option<PathBuf> {
    context.environment.xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("relay-mesh"))
}

/// The folders and variables from which adapters' paths and programs are filled in.
fn surroundings(context: &Context, client: Client) -> Surroundings {
    let (project, environment) = match client {
        Client::ThisProcess | Client::Hook => {
            (Some(context.workdir.clone()), context.environment.pairs().into_iter().collect())
        }
        Client::Nobody => (None, context.environment.of_the_person()),
    };
    // Without its own path, which the system all but always tells, a run finds relay-mesh in PATH.
    let own = Installation::of(context).map(|installation| installation.for_runs()).unwrap_or_default();
    let main_worktree = Some(git_checkout::main_worktree as fn(&Path) -> Option<PathBuf>);
    let private = [context.settings.dir.value.clone(), cache(context)].into_iter();
    let private = private.chain(settings_folder(context)).collect();
    let home = context.environment.home();
    Surroundings { home, project, main_worktree, environment, in_place_of_root: None, private, own }
}
