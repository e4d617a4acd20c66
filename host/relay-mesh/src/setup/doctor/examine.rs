//! The checks of one harness: its adapter, the harness itself, its settings, its hook.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use adapters::manifest::Reaches;
use adapters::{InstalledAdapters, Unused};
use mesh::ports::harness::{Finding, Harness, HarnessError, Harnesses as _, Scope, Server, Severity};
use mesh::ports::machine::Machine as _;
use mesh::sessions::SessionRecord;

use super::hook::{self, Came};
use super::{broken, fine, shown};
use crate::compose::Open;
use crate::config::Origin;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::render::printable_line;
use crate::server::of_harness::HarnessServerRecord;
use crate::setup::installed::{Installed, scope_name};
use crate::setup::project::{self, Looked};
use crate::setup::request::{Installation, ServerUrl, command_line, with_command_line};
use crate::setup::scope_args::ScopeArgs;
use crate::setup::shapes::Proof;
use crate::setup::survey;

/// How long a session has to start our server, in milliseconds.
const STARTS_WITHIN: u64 = 10_000;

/// Checks a harness, with `--user` only in the user's own settings. An adapter's failure is a finding; a failure of
/// relay-mesh itself is an error.
pub(crate) async fn harness(
    context: &Context,
    open: &Open,
    name: &str,
    place: &ScopeArgs,
) -> Result<Vec<Proof>, CommandError> {
    let began = Instant::now();
    let harness = match open.adapters.get(name).await {
        Ok(Some(harness)) => harness,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Ok(vec![Proof::new("adapter", Some(name), adapter_failed(&error))]),
    };
    let mut proofs = Vec::new();
    let is_built_in = open.adapters.is_built_in(name);
    let mut tell = |subject, finding| {
        let proof = Proof::new(subject, Some(name), finding);
        proofs.push(if is_built_in { proof } else { proof.of_foreign() });
    };
    let version = &harness.about().version;
    tell("adapter", fine(format!("version {version} was loaded and answered in {}", shown(began.elapsed()))));

    let manifest = open.adapters.describe(name).map_err(|error| errors::adapters::failed(name, error))?;
    let manifest = manifest.map(|(manifest, _)| manifest);
    let reaches = manifest.as_ref().map_or(Reaches::Folder, |manifest| manifest.reaches);
    let installation = Installation::of(context)?;
    let host = ServerUrl::of_listener(context.settings.listen.value);
    let mut installed = false;
    let mut by_hand = true;
    let mut starts_our_server = false;
    let scopes: &[Scope] = match place.scope() {
        Scope::Project => &[Scope::Project, Scope::User],
        Scope::User => &[Scope::User],
    };
    for scope in scopes.iter().copied() {
        let looked = match scope {
            Scope::Project => project::look(context, &harness, reaches, &installation, &host).await,
            Scope::User => survey::look(harness.as_ref(), scope, &installation, &host).await.map(Looked::here),
        };
        match looked {
            Err(error) => tell("settings", adapter_failed(&error)),
            Ok(looked) => {
                let findings = settings(context, &harness, &looked, place.typed_folder()).await;
                let is_by_hand = looked.found.installed == Installed::ByHand;
                // The harness may have a plugin of ours, of which its adapter tells.
                let is_set_up = looked.found.is_set_up() || (is_by_hand && !findings.is_empty());
                installed |= is_set_up;
                let is_stdio = matches!(looked.found.setup.server, Server::Stdio(_));
                starts_our_server |= is_set_up && is_stdio;
                by_hand &= is_by_hand;
                for finding in findings {
                    tell("settings", finding);
                }
            }
        }
    }
    if let Some(record) = HarnessServerRecord::last(&context.settings.dir.value, name)? {
        tell("server", server(&record, record.runs(open.machine.as_ref()), record.listens().await));
    }
    for session in open.mesh.deserted(&harness.about().harness).await? {
        tell("connector", deserted(&harness.about().title, &session.id));
    }
    // One whose sessions run in a server that terminals share starts ours there, and not below the terminal.
    if starts_our_server && harness.traces().terminal.is_none() {
        for session in serverless(open, &harness.about().harness).await? {
            tell("session", no_server(&harness.about().title, &session));
        }
    }
    match harness.present().await {
        Err(error) => tell("harness", adapter_failed(&error)),
        // The adapter for any client looks for no particular program.
        Ok(None) if by_hand => {}
        Ok(version) => tell("harness", presence(&harness.about().title, version.as_deref(), installed)),
    }
    if let Some(call) = manifest.and_then(|manifest| manifest.rehearsal).filter(|_| installed) {
        let all = open.adapters.installed();
        let came = hook::rehearse_aside(&installation.program, name, &call, all).await;
        let came = came.unwrap_or_else(Came::NotStarted);
        tell("hook", hook::judge(&call.hook, &came));
    }
    Ok(proofs)
}

/// The finding about an unused adapter. One that the user installed is expected to work.
pub(crate) fn passed_over(unused: &Unused, installed: Option<&InstalledAdapters>) -> Finding {
    let is_installed = installed.is_some_and(|installed| unused.path.starts_with(installed.folder()));
    let what = format!("{} is not used: {}", unused.path.display(), unused.why);
    let fix = Some("`relay-mesh plugin list` shows what is used in its place".to_owned());
    Finding { severity: if is_installed { Severity::Broken } else { Severity::Warning }, what, fix }
}

async fn settings(
    context: &Context,
    harness: &Arc<dyn Harness>,
    Looked { found, elsewhere }: &Looked,
    folder: &Path,
) -> Vec<Finding> {
    let (name, scope) = (harness.about().harness.as_str(), scope_name(found.scope));
    let folder = elsewhere.as_ref().map_or(folder, |elsewhere| elsewhere.set_up_in.as_path());
    let dir = &context.settings.dir;
    let typed_dir = (dir.origin == Origin::Flags).then_some(dir.value.as_path());
    let is_guess = found.installed == Installed::Outdated;
    let again = command_line(name, &found.setup, is_guess, folder, typed_dir);
    match found.installed {
        Installed::No => vec![fine(format!("not set up for the {scope}; `{again}` does it"))],
        Installed::Yes | Installed::Outdated | Installed::ByHand => {
            let harness = elsewhere.as_ref().map_or(harness, |elsewhere| &elsewhere.harness);
            let mut findings: Vec<Finding> = match harness.check(&found.setup).await {
                Ok(found) => found.into_iter().map(|finding| with_command_line(finding, name, &again)).collect(),
                Err(error) => vec![adapter_failed(&error)],
            };
            if elsewhere.is_some() {
                let (title, folder) = (&harness.about().title, folder.display());
                findings.insert(0, fine(format!("set up for the project in {folder}, which {title} uses here too")));
            }
            if found.installed == Installed::Outdated && findings.iter().all(|finding| finding.severity == Severity::Ok)
            {
                let what = format!("what is set up for the {scope} is not what this relay-mesh would set up");
                findings.push(Finding { severity: Severity::Warning, what, fix: Some(again) });
            }
            findings
        }
    }
}

/// Sessions of a harness that call our hooks and have no server of ours running below them. A user may have switched it
/// off where no adapter may look.
async fn serverless(open: &Open, harness: &str) -> Result<Vec<SessionRecord>, CommandError> {
    let now = open.machine.now();
    let sessions = open.mesh.sessions().await?;
    let records = sessions.into_iter().map(|session| session.record);
    let of_harness = records.filter(|record| record.session.harness == harness && record.parent.is_none());
    let has_none = |record: &SessionRecord| {
        let process = record.process.filter(|process| open.machine.runs(*process));
        now.since(record.first_seen) > STARTS_WITHIN
            && process.is_some_and(|process| processes::runs_below(process.pid, "relay-mesh", "mcp") == Some(false))
    };
    Ok(of_harness.filter(has_none).collect())
}

fn no_server(title: &str, session: &SessionRecord) -> Finding {
    Finding {
        severity: Severity::Warning,
        what: format!(
            "the {title} session {} in {} calls our hooks and runs no server of ours: its agent has no tools of the mesh",
            printable_line(&session.session.id),
            printable_line(&session.workdir)
        ),
        fix: Some(
            "look at the list of MCP servers in that session (`/mcp`): ours may be switched off there, wait for approval, \
             or have ended"
                .to_owned(),
        ),
    }
}

/// The finding about a harness's server that `up --with` has started and nobody has stopped.
fn server(record: &HarnessServerRecord, runs: bool, listens: bool) -> Finding {
    let HarnessServerRecord { harness, title, pid, .. } = record;
    match (runs, listens) {
        (true, true) => {
            fine(format!("its server, which relay-mesh started, listens at {}, process {pid}", record.url()))
        }
        (true, false) => Finding {
            severity: Severity::Broken,
            what: format!("the server of {title} runs, process {pid}, and nothing listens at {}", record.url()),
            fix: Some(format!("`relay-mesh down` stops it, and `relay-mesh up --with {harness}` starts it again")),
        },
        (false, _) => Finding {
            severity: Severity::Warning,
            what: format!("the server of {title}, which relay-mesh had started, was killed"),
            fix: Some(format!("`relay-mesh up --with {harness}` starts it again")),
        },
    }
}

/// The finding about a session whose connector was killed and did not restart.
fn deserted(title: &str, session: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        what: format!(
            "no connector listens any more for the {title} session {}: its `relay-mesh listen` has ended",
            printable_line(session)
        ),
        fix: Some(format!("start {title} again; until then its mail waits or takes another route")),
    }
}

/// The finding about the harness's program. If it is set up, its absence is a warning.
fn presence(title: &str, version: Option<&str>, installed: bool) -> Finding {
    match (version, installed) {
        (Some(version), _) => fine(format!("{title} {version} is on this machine")),
        (None, false) => fine(format!("no version of {title} was found on this machine")),
        (None, true) => Finding {
            severity: Severity::Warning,
            what: format!("{title} is set up, and no version of it was found on this machine"),
            fix: Some("if it is installed elsewhere, add its folder to PATH".to_owned()),
        },
    }
}

fn adapter_failed(error: &HarnessError) -> Finding {
    match error {
        HarnessError::Unsupported(what) => fine(format!("this cannot be looked at: {what}")),
        HarnessError::NotFound(_) | HarnessError::Denied(_) | HarnessError::Busy(_) | HarnessError::Failed(_) => {
            broken(
                format!("the adapter did not answer: {error}"),
                "see `relay-mesh plugin list`, and RELAY_LOG=debug for more",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_that_is_set_up_and_not_here_is_worth_a_warning() {
        for (version, installed, severity, expected) in [
            (Some("2.1.329"), true, Severity::Ok, "Claude Code 2.1.329 is on this machine"),
            (None, false, Severity::Ok, "no version"),
            (None, true, Severity::Warning, "is set up, and no version"),
        ] {
            let finding = presence("Claude Code", version, installed);
            assert_eq!(finding.severity, severity);
            assert!(finding.what.contains(expected), "{}", finding.what);
        }
    }

    #[test]
    fn a_server_that_was_killed_is_told_from_one_that_runs() {
        let record = HarnessServerRecord {
            harness: "toad".to_owned(),
            title: "Toad".to_owned(),
            process: mesh::ports::machine::Process { pid: 1, start: 1, space: None },
            pid: 2,
            machine: "here".to_owned(),
            port: 4096,
        };
        for (runs, listens, severity, expected) in [
            (true, true, Severity::Ok, "listens at http://127.0.0.1:4096, process 2"),
            (true, false, Severity::Broken, "nothing listens at http://127.0.0.1:4096"),
            (false, true, Severity::Warning, "was killed"),
        ] {
            let finding = server(&record, runs, listens);
            assert_eq!(finding.severity, severity);
            assert!(finding.what.contains(expected), "{}", finding.what);
        }
    }

    #[test]
    fn what_an_adapter_cannot_do_is_no_fault() {
        assert_eq!(adapter_failed(&HarnessError::Unsupported("no settings".to_owned())).severity, Severity::Ok);
        assert_eq!(adapter_failed(&HarnessError::Failed("trapped".to_owned())).severity, Severity::Broken);
    }
}
