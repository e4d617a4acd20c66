//! `relay-mesh harnesses`: list the known harnesses, whether each is set up here, and its health.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use mesh::ports::harness::{Harness, HarnessError, Harnesses as _, Scope, Severity};
use serde::Serialize;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line, table};
use crate::setup::installed::Installed;
use crate::setup::project::{self, Looked};
use crate::setup::request::{Installation, ServerUrl};
use crate::setup::shapes::{HarnessLine, severity_name};
use crate::setup::survey;
use crate::shapes::wake_table::WakeTable;

/// Show which harnesses are here, and how they do
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  relay-mesh harnesses\n  relay-mesh harnesses --json | jq '.harnesses[] | select(.health == \"broken\")'\n  relay-mesh harnesses --matrix"
)]
pub(crate) struct Args {
    /// Show instead what was tested with the real client of each harness, and which routes work
    #[arg(long)]
    matrix: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if self.matrix {
            context.printer.show(&WakeTable::of_this_build())?;
            return Ok(Exit::Success);
        }
        let open = context.open()?;
        let installation = Installation::of(context)?;
        let host = ServerUrl::of_listener(context.settings.listen.value);
        let mut listing = Listing { harnesses: Vec::new() };
        for (name, loaded) in loaded(context, &open).await {
            let found = match loaded {
                Ok(Some(harness)) => look(context, &open, &harness, &installation, &host).await,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            listing.harnesses.push(found.unwrap_or_else(|error| unhealthy(&name, &error)));
        }
        // An installed adapter that cannot be used is listed too, or its user would miss it.
        for unused in open.adapters.states().await.1 {
            let name = unused.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !listing.harnesses.iter().any(|listed| listed.harness == name) {
                listing.harnesses.push(unhealthy(&name, &HarnessError::Failed(unused.why)));
            }
        }
        context.printer.show(&listing)?;
        Ok(Exit::Success)
    }
}

type Loaded = Result<Option<Arc<dyn Harness>>, HarnessError>;

/// All adapters, as many at once as there are processors: each is compiled before its first use.
async fn loaded(context: &Context, open: &Open) -> Vec<(String, Loaded)> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let loads = stream::iter(open.adapters.names()).map(|name| async {
        let loaded = open.adapters.get(&name).await;
        (name, loaded)
    });
    let all = loads.buffered(at_once).collect();
    tokio::pin!(all);
    tokio::select! {
        loaded = &mut all => return loaded,
        () = tokio::time::sleep(SILENCE) => {}
    }
    context.printer.say("the adapters are compiled, which takes some seconds the first time");
    all.await
}

/// After how long it is told why nothing is shown yet.
const SILENCE: Duration = Duration::from_millis(700);

async fn look(
    context: &Context,
    open: &Open,
    harness: &Arc<dyn Harness>,
    installation: &Installation,
    host: &ServerUrl,
) -> Result<HarnessLine, HarnessError> {
    let about = harness.about();
    let version = harness.present().await?;
    let reaches = open.adapters.describe(&about.harness)?.map(|(manifest, _)| manifest.reaches);
    let project = project::look(context, harness, reaches.unwrap_or_default(), installation, host).await?;
    let user = Looked::here(survey::look(harness.as_ref(), Scope::User, installation, host).await?);
    let mut worst: Option<(Severity, String)> = None;
    let mut health = None;
    for Looked { found, elsewhere } in [&project, &user] {
        match found.installed {
            Installed::Yes | Installed::Outdated | Installed::ByHand => {}
            Installed::No => continue,
        }
        let checked = elsewhere.as_ref().map_or(harness, |elsewhere| &elsewhere.harness);
        let findings = checked.check(&found.setup).await?;
        if found.is_set_up() || !findings.is_empty() {
            health = Some(Severity::Ok);
        }
        for finding in findings {
            if finding.severity > worst.as_ref().map_or(Severity::Ok, |(severity, _)| *severity) {
                worst = Some((finding.severity, finding.what));
            }
        }
    }
    Ok(HarnessLine {
        harness: about.harness.clone(),
        title: Some(about.title.clone()),
        version,
        project: Some(project.found.installed.as_str()),
        user: Some(user.found.installed.as_str()),
        health: worst.as_ref().map(|(severity, _)| *severity).or(health).map(severity_name),
        finding: worst.map(|(_, what)| what),
    })
}

fn unhealthy(name: &str, error: &HarnessError) -> HarnessLine {
    HarnessLine {
        harness: name.to_owned(),
        title: None,
        version: None,
        project: None,
        user: None,
        health: Some(severity_name(Severity::Broken)),
        finding: Some(error.to_string()),
    }
}

#[derive(Debug, Serialize)]
struct Listing {
    /// One entry for each harness, by name.
    harnesses: Vec<HarnessLine>,
}

impl Show for Listing {
    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.harnesses.iter().map(row).collect();
        table(&["HARNESS", "TITLE", "VERSION", "PROJECT", "USER", "HEALTH"], &rows)
    }
}

fn row(line: &HarnessLine) -> Vec<String> {
    let or_dash = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), printable_line);
    let mut health = or_dash(line.health);
    if let Some(finding) = &line.finding {
        health = format!("{health}: {}", printable_line(finding));
    }
    vec![
        printable_line(&line.harness),
        or_dash(line.title.as_deref()),
        or_dash(line.version.as_deref()),
        or_dash(line.project),
        or_dash(line.user),
        health,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash_and_what_is_wrong_is_said() {
        let broken = unhealthy("claude-code", &HarnessError::Failed("the component is not one".to_owned()));
        let absent = HarnessLine {
            harness: "codex".to_owned(),
            title: Some("Codex".to_owned()),
            version: None,
            project: Some("no"),
            user: Some("no"),
            health: None,
            finding: None,
        };
        let listing = Listing { harnesses: vec![broken, absent] };
        assert_eq!(
            listing.text(),
            "HARNESS      TITLE  VERSION  PROJECT  USER  HEALTH\n\
             claude-code  -      -        -        -     broken: the component is not one\n\
             codex        Codex  -        no       no    -"
        );
    }
}
