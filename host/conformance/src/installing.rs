//! Installs: install, install again, check, uninstall. Each file must end as it began, byte for byte. This is tried
//! with realistic settings, without settings, and with empty and broken ones.

use std::io;
use std::path::Path;

use mesh::ports::harness::{Action, Harness as _, HarnessError, Plan, Severity};

use crate::fixtures::SettingsCase;
use crate::report::Check;
use crate::scratch::Stage;
use crate::setups::{INSTALL_VARIANTS, InstallVariant, difference, files, furnish};
use crate::{Bench, is_fault};

struct Wrong {
    expected: String,
    got: String,
    hint: &'static str,
}

/// The result of an install and its removal.
enum Came {
    Held(String),
    /// The adapter does not offer this scope or transport.
    Absent(String),
    Wrong(Wrong),
}

/// How an install is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// By the journal, as the host does if the files are unchanged since.
    Journal,
    /// By the adapter's own plan alone, as the host does if they have changed.
    Plan,
}

pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let nothing = SettingsCase { name: "no settings".to_owned(), ..SettingsCase::default() };
    let mut checks = Vec::new();
    for variant in INSTALL_VARIANTS {
        for case in std::iter::once(&nothing).chain(&bench.fixtures.settings) {
            let name = format!("{}, {}", variant.name, case.name);
            let came = there_and_back(bench, variant, case).await?;
            let absent = matches!(came, Came::Absent(_));
            checks.push(check(name, came));
            if absent {
                break;
            }
            checks.extend(damaged(bench, variant, case).await?);
        }
    }
    let is_notified = checks.iter().any(|check| !matches!(check.outcome, crate::report::CheckOutcome::Absent { .. }));
    if is_notified && bench.fixtures.settings.is_empty() {
        checks.push(Check::untried("settings", "put settings as people keep them into settings/CASE/ROOT/"));
    }
    Ok(checks)
}

fn check(name: String, came: Came) -> Check {
    match came {
        Came::Held(evidence) => Check::held(name, evidence),
        Came::Absent(why) => Check::absent(name, why),
        Came::Wrong(Wrong { expected, got, hint }) => Check::failed(name, expected, got, hint),
    }
}

async fn there_and_back(bench: &Bench<'_>, variant: InstallVariant, case: &SettingsCase) -> io::Result<Came> {
    let mut evidence = String::new();
    for by in [By::Journal, By::Plan] {
        let stage = bench.scratch.stage()?;
        let came = once(bench, &stage, variant, case, by).await;
        stage.close().await?;
        match came? {
            Came::Held(told) => evidence = told,
            other => return Ok(other),
        }
    }
    Ok(Came::Held(evidence))
}

async fn once(
    bench: &Bench<'_>,
    stage: &Stage<'_>,
    variant: InstallVariant,
    case: &SettingsCase,
    by: By,
) -> io::Result<Came> {
    if let Err(got) = furnish(stage, case)? {
        return Ok(wrong("a root of the manifest", got, "name the folder after a root"));
    }
    let before = files(&stage.home)?;
    let plan = match propose(stage, variant, Action::Install).await {
        Ok(plan) => plan,
        Err(HarnessError::Unsupported(why)) => return Ok(Came::Absent(why)),
        Err(error) => return Ok(wrong("a plan", error.to_string(), "these settings are whole")),
    };
    if plan.edits.is_empty() {
        return Ok(Came::Absent(format!("no file is changed; {} steps are left to the user", plan.next_steps.len())));
    }
    let count = plan.edits.len();
    // The user is responsible for settings that were broken before the install.
    let broken_before = broken(stage, variant).await.unwrap_or_default();
    if let Err(error) = apply(bench, stage, variant, Action::Install, &plan) {
        return Ok(wrong("a plan that can be applied", error, "the plan must fit what the files hold"));
    }
    match propose(stage, variant, Action::Install).await {
        Ok(again) if again.edits.is_empty() => {}
        Ok(again) => {
            let got = format!(
                "it would change {}",
                again.edits.iter().map(|edit| edit.path.as_str()).collect::<Vec<_>>().join(", ")
            );
            return Ok(wrong("a second install that changes nothing", got, "compare with what the file holds"));
        }
        Err(error) => {
            return Ok(wrong("a second install that changes nothing", error.to_string(), "it has just worked"));
        }
    }
    if let Err(got) = broken_after(stage, variant, &broken_before).await {
        return Ok(wrong("a check that finds nothing broken", got, "what `propose` writes, `check` must like"));
    }
    let plan = match propose(stage, variant, Action::Remove).await {
        Ok(plan) => plan,
        Err(error) => return Ok(wrong("a plan for the removal", error.to_string(), "it was installed just now")),
    };
    let removal = match by {
        By::Plan => Ok(plan),
        By::Journal => {
            stage.adapters.removal(&bench.scratch.manifest.name, variant.scope, plan).map_err(|error| error.to_string())
        }
    };
    let applied = match removal {
        Ok(plan) => apply(bench, stage, variant, Action::Remove, &plan),
        Err(error) => Err(error),
    };
    if let Err(error) = applied {
        return Ok(wrong("a removal that can be applied", error, "the plan must fit what the files hold"));
    }
    let (mut before, mut after) = (before, files(&stage.home)?);
    if by == By::Plan {
        // Only the journal knows whether a file was empty or missing.
        before.retain(|_, bytes| !bytes.is_empty());
        after.retain(|_, bytes| !bytes.is_empty());
    }
    if let Some(got) = difference(&before, &after) {
        let expected = match by {
            By::Journal => "every file as it was, by the journal",
            By::Plan => "every file as it was, by the adapter's own plan",
        };
        return Ok(wrong(expected, got, "edit text in its place, and keep comments, order and line ends"));
    }
    Ok(Came::Held(format!("{count} files there and back, byte for byte")))
}

fn wrong(expected: &str, got: String, hint: &'static str) -> Came {
    Came::Wrong(Wrong { expected: expected.to_owned(), got, hint })
}

pub(crate) async fn propose(stage: &Stage<'_>, variant: InstallVariant, action: Action) -> Result<Plan, HarnessError> {
    stage.adapter().await?.propose(&variant.setup(action)).await
}

fn apply(
    bench: &Bench<'_>,
    stage: &Stage<'_>,
    variant: InstallVariant,
    action: Action,
    plan: &Plan,
) -> Result<(), String> {
    let applied = stage.adapters.apply(&bench.scratch.manifest.name, action, variant.scope, plan);
    applied.map(drop).map_err(|error| error.to_string())
}

/// What the adapter's check calls broken. None if the adapter has no check.
async fn broken(stage: &Stage<'_>, variant: InstallVariant) -> Result<Vec<String>, String> {
    let adapter = stage.adapter().await.map_err(|error| error.to_string())?;
    match adapter.check(&variant.setup(Action::Install)).await {
        Ok(found) => Ok(found.into_iter().filter(|one| one.severity == Severity::Broken).map(|one| one.what).collect()),
        Err(HarnessError::Unsupported(_)) => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// An error that names what is broken only since the install, or everything if the install mended nothing.
async fn broken_after(stage: &Stage<'_>, variant: InstallVariant, before: &[String]) -> Result<(), String> {
    let after = broken(stage, variant).await?;
    let mended = before.iter().any(|what| !after.contains(what));
    let left: Vec<&str> = after.iter().filter(|what| !mended || !before.contains(what)).map(String::as_str).collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}

/// Each settings file that an install would change, once emptied and once cut off.
async fn damaged(bench: &Bench<'_>, variant: InstallVariant, case: &SettingsCase) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (key, bytes) in &case.files {
        let (root, path) = key;
        let stage = bench.scratch.stage()?;
        furnish(&stage, case)?.ok();
        let plan = propose(&stage, variant, Action::Install).await;
        stage.close().await?;
        let changes = plan.is_ok_and(|plan| plan.edits.iter().any(|edit| edit.root == *root && edit.path == *path));
        if !changes {
            continue;
        }
        let with = |content: Vec<u8>| {
            let mut changed = case.clone();
            changed.files.insert(key.clone(), content);
            changed
        };
        let name = format!("{}, {} with an empty {path}", variant.name, case.name);
        checks.push(check(name, emptied(bench, variant, &with(Vec::new()), path).await?));
        if let Some(cut) = cut_off(path, bytes) {
            let name = format!("{}, {} with a broken {path}", variant.name, case.name);
            checks.push(check(name, left_alone(bench, variant, &with(cut), root, path).await?));
        }
    }
    Ok(checks)
}

/// An adapter must take an empty file for one without settings, or refuse it.
async fn emptied(bench: &Bench<'_>, variant: InstallVariant, case: &SettingsCase, path: &str) -> io::Result<Came> {
    let stage = bench.scratch.stage()?;
    furnish(&stage, case)?.ok();
    let plan = propose(&stage, variant, Action::Install).await;
    stage.close().await?;
    match plan {
        Err(HarnessError::Failed(why)) if !is_fault_text(bench, &why) && names(&why, path) => {
            Ok(Came::Held(format!("refused: {why}")))
        }
        Err(error) => {
            Ok(wrong("an install, or a message that names the file", error.to_string(), "say which file it is"))
        }
        Ok(_) => there_and_back(bench, variant, case).await,
    }
}

/// An adapter must leave a file alone that the harness could not read, and say where it is broken.
async fn left_alone(
    bench: &Bench<'_>,
    variant: InstallVariant,
    case: &SettingsCase,
    root: &str,
    path: &str,
) -> io::Result<Came> {
    let stage = bench.scratch.stage()?;
    furnish(&stage, case)?.ok();
    let plan = propose(&stage, variant, Action::Install).await;
    stage.close().await?;
    const EXPECTED: &str = "`failed`, naming the file and the line";
    const HINT: &str = "parse what the harness parses, and plan nothing where that fails";
    Ok(match plan {
        Ok(plan) if plan.edits.iter().any(|edit| edit.root == root && edit.path == path) => {
            wrong(EXPECTED, format!("it would change `{path}`, which is broken"), HINT)
        }
        Ok(_) => wrong(EXPECTED, format!("a plan that says nothing of `{path}`"), HINT),
        Err(HarnessError::Failed(why)) if !is_fault_text(bench, &why) && names(&why, path) && says_where(&why) => {
            Came::Held(why)
        }
        Err(error) => wrong(EXPECTED, error.to_string(), HINT),
    })
}

fn is_fault_text(bench: &Bench<'_>, why: &str) -> bool {
    is_fault(&bench.scratch.manifest.name, &HarnessError::Failed(why.to_owned()))
}

fn names(why: &str, path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    why.contains(name.as_ref())
}

/// Whether a message contains a number outside the file's name: probably a line number.
fn says_where(why: &str) -> bool {
    why.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word.parse::<u32>().is_ok())
}

/// The file as a crashed editor would leave it. None if the kit knows no way to break it.
fn cut_off(path: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let extension = Path::new(path).extension()?.to_str()?;
    let text = std::str::from_utf8(bytes).ok()?;
    match extension {
        "json" | "jsonc" | "json5" => {
            let end = text.rfind(['}', ']'])?;
            Some(format!("{}\n\"cut", &text[..end]).into_bytes())
        }
        "toml" => Some(format!("{text}\ncut = [\n").into_bytes()),
        _ => None,
    }
}
