//! `relay-mesh up`: start the host in the background, and say what to do next.

use mesh::harness::Harnesses;

use crate::cli::Outcome;
use crate::commands::serve::HostFlags;
use crate::compose::Open;
use crate::config::{Settings, Shared, TokenUse};
use crate::context::Context;
use crate::error::CommandError;
use crate::host::{HostRecord, background};
use crate::shapes::host::UpShape;

/// Start the host in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh up\n  \
    relay-mesh up --http 127.0.0.1:8000\n\n\
    Its log is host.log in the data folder. `relay-mesh down` stops it.")]
pub(crate) struct Args {
    /// How it listens.
    #[command(flatten)]
    pub(crate) host: HostFlags,
}

/// Does it.
pub(crate) async fn run(_: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let dir = &context.settings.dir.value;
    let (outcome, record) = match HostRecord::find(dir, open.machine.as_ref())? {
        Some(record) => ("running", record),
        None => {
            let arguments = arguments(&context.settings);
            ("started", background::start(dir, &arguments, open.machine.as_ref()).await?)
        }
    };
    let next_steps = next_steps(&open).await;
    let shape = UpShape {
        outcome,
        host: HostRecord::shape(Some(&record)),
        log: background::log_path(dir).display().to_string(),
        next_steps,
    };
    context.printer.show(&shape)?;
    for step in &shape.next_steps {
        context.printer.say(&format!("next: {step}"));
    }
    Ok(Outcome::DONE)
}

/// The command line of the host: what is settled here must not be settled otherwise there.
fn arguments(settings: &Settings) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned(), "--background".to_owned()];
    let mut flag = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    flag("--dir", settings.dir.value.display().to_string());
    if let Shared::Nats(servers) = &settings.shared.value {
        flag("--store", servers.addresses().join(","));
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

/// What the harnesses need that are on this machine.
async fn next_steps(open: &Open) -> Vec<String> {
    let mut steps = Vec::new();
    for name in open.adapters.names() {
        let harness = match open.adapters.get(&name).await {
            Ok(Some(harness)) => harness,
            Ok(None) => continue,
            Err(error) => {
                steps.push(format!("`relay-mesh doctor {name}` shows what is wrong with this adapter: {error}"));
                continue;
            }
        };
        if let Ok(Some(version)) = harness.present().await {
            let title = &harness.about().title;
            steps.push(format!(
                "`relay-mesh install {name} --project .` lets {title} ({version}) join from this folder"
            ));
        }
    }
    steps.push("`relay-mesh register alice` joins from the command line".to_owned());
    steps.push("`relay-mesh down` stops the host".to_owned());
    steps
}
