//! Installs: install, install again, look, uninstall; each file back to what it was, byte for byte,
//! on settings as people keep them, on none, on empty ones and on broken ones.

use std::io;
use std::path::Path;

use mesh::harness::{Action, Harness as _, HarnessError, Plan, Severity};

use super::fixtures::SettingsCase;
use super::report::Check;
use super::scratch::Stage;
use super::setups::{WISHES, Wish, difference, files, furnish};
use super::{Bench, is_fault};

/// What is wrong with an install.
struct Wrong {
    expected: String,
    got: String,
    hint: &'static str,
}

/// What an install came to.
enum Came {
    /// It held.
    Held(String),
    /// This scope or transport is not offered.
    Absent(String),
    /// It did not.
    Wrong(Wrong),
}

/// By what an install is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The journal, as the host does where nobody touched the files.
    Journal,
    /// The adapter's own plan alone, as where somebody did.
    Plan,
}

/// Every wish in every case.
pub(super) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let nothing = SettingsCase { name: "no settings".to_owned(), ..SettingsCase::default() };
    let mut checks = Vec::new();
    for wish in WISHES {
        for case in std::iter::once(&nothing).chain(&bench.fixtures.settings) {
            let name = format!("{}, {}", wish.name, case.name);
            let came = there_and_back(bench, wish, case).await?;
            let absent = matches!(came, Came::Absent(_));
            checks.push(check(name, came));
            if absent {
                break;
            }
            checks.extend(damaged(bench, wish, case).await?);
        }
    }
    let is_offered = checks.iter().any(|check| !matches!(check.outcome, super::Outcome::Absent { .. }));
    if is_offered && bench.fixtures.settings.is_empty() {
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

async fn there_and_back(bench: &Bench<'_>, wish: Wish, case: &SettingsCase) -> io::Result<Came> {
    let mut evidence = String::new();
    for by in [By::Journal, By::Plan] {
        let stage = bench.scratch.stage()?;
        let came = once(bench, &stage, wish, case, by).await;
        stage.strike().await?;
        match came? {
            Came::Held(told) => evidence = told,
            other => return Ok(other),
        }
    }
    Ok(Came::Held(evidence))
}

/// One install and one removal.
async fn once(bench: &Bench<'_>, stage: &Stage<'_>, wish: Wish, case: &SettingsCase, by: By) -> io::Result<Came> {
    if let Err(got) = furnish(stage, case)? {
        return Ok(wrong("a root of the manifest", got, "name the folder after a root"));
    }
    let before = files(&stage.home)?;
    let plan = match propose(stage, wish, Action::Install).await {
        Ok(plan) => plan,
        Err(HarnessError::Unsupported(why)) => return Ok(Came::Absent(why)),
        Err(error) => return Ok(wrong("a plan", error.to_string(), "these settings are whole")),
    };
    if plan.edits.is_empty() {
        return Ok(Came::Absent(format!("no file is changed; {} steps are left to the person", plan.next_steps.len())));
    }
    let count = plan.edits.len();
    // Whatever it says of settings that nobody has touched yet is the person's business.
    let broken_before = broken(stage, wish).await.unwrap_or_default();
    if let Err(error) = apply(bench, stage, wish, Action::Install, &plan) {
        return Ok(wrong("a plan that can be applied", error, "the plan must fit what the files hold"));
    }
    match propose(stage, wish, Action::Install).await {
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
    if let Err(got) = broken_after(stage, wish, &broken_before).await {
        return Ok(wrong("a check that finds nothing broken", got, "what `propose` writes, `check` must like"));
    }
    let plan = match propose(stage, wish, Action::Remove).await {
        Ok(plan) => plan,
        Err(error) => return Ok(wrong("a plan for the removal", error.to_string(), "it was installed just now")),
    };
    let removal = match by {
        By::Plan => Ok(plan),
        By::Journal => {
            stage.adapters.removal(&bench.scratch.manifest.name, wish.scope, plan).map_err(|error| error.to_string())
        }
    };
    let applied = match removal {
        Ok(plan) => apply(bench, stage, wish, Action::Remove, &plan),
        Err(error) => Err(error),
    };
    if let Err(error) = applied {
        return Ok(wrong("a removal that can be applied", error, "the plan must fit what the files hold"));
    }
    let (mut before, mut after) = (before, files(&stage.home)?);
    if by == By::Plan {
        // Whether a file was empty or not there, only the journal can know.
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

pub(super) async fn propose(stage: &Stage<'_>, wish: Wish, action: Action) -> Result<Plan, HarnessError> {
    stage.adapter().await?.propose(&wish.setup(action)).await
}

fn apply(bench: &Bench<'_>, stage: &Stage<'_>, wish: Wish, action: Action, plan: &Plan) -> Result<(), String> {
    let applied = stage.adapters.apply(&bench.scratch.manifest.name, action, wish.scope, plan);
    applied.map(drop).map_err(|error| error.to_string())
}

/// What a check calls broken; none where there is no check.
async fn broken(stage: &Stage<'_>, wish: Wish) -> Result<Vec<String>, String> {
    let adapter = stage.adapter().await.map_err(|error| error.to_string())?;
    match adapter.check(&wish.setup(Action::Install)).await {
        Ok(found) => Ok(found.into_iter().filter(|one| one.severity == Severity::Broken).map(|one| one.what).collect()),
        Err(HarnessError::Unsupported(_)) => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// What is broken after an install and was not before, or all of it where the install mended nothing.
async fn broken_after(stage: &Stage<'_>, wish: Wish, before: &[String]) -> Result<(), String> {
    let after = broken(stage, wish).await?;
    let mended = before.iter().any(|what| !after.contains(what));
    let left: Vec<&str> = after.iter().filter(|what| !mended || !before.contains(what)).map(String::as_str).collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}

/// Each settings file of a case, emptied and cut off, where an install would change it.
async fn damaged(bench: &Bench<'_>, wish: Wish, case: &SettingsCase) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (key, bytes) in &case.files {
        let (root, path) = key;
        let stage = bench.scratch.stage()?;
        furnish(&stage, case)?.ok();
        let plan = propose(&stage, wish, Action::Install).await;
        stage.strike().await?;
        let changes = plan.is_ok_and(|plan| plan.edits.iter().any(|edit| edit.root == *root && edit.path == *path));
        if !changes {
            continue;
        }
        let with = |content: Vec<u8>| {
            let mut changed = case.clone();
            changed.files.insert(key.clone(), content);
            changed
        };
        let name = format!("{}, {} with an empty {path}", wish.name, case.name);
        checks.push(check(name, emptied(bench, wish, &with(Vec::new()), path).await?));
        if let Some(cut) = cut_off(path, bytes) {
            let name = format!("{}, {} with a broken {path}", wish.name, case.name);
            checks.push(check(name, left_alone(bench, wish, &with(cut), root, path).await?));
        }
    }
    Ok(checks)
}

/// An empty file is either taken for one without settings, or said to be none.
async fn emptied(bench: &Bench<'_>, wish: Wish, case: &SettingsCase, path: &str) -> io::Result<Came> {
    let stage = bench.scratch.stage()?;
    furnish(&stage, case)?.ok();
    let plan = propose(&stage, wish, Action::Install).await;
    stage.strike().await?;
    match plan {
        Err(HarnessError::Failed(why)) if !is_fault_text(bench, &why) && names(&why, path) => {
            Ok(Came::Held(format!("refused: {why}")))
        }
        Err(error) => {
            Ok(wrong("an install, or a message that names the file", error.to_string(), "say which file it is"))
        }
        Ok(_) => there_and_back(bench, wish, case).await,
    }
}

/// A file that the harness could not read is left alone, with a message that says where it is broken.
async fn left_alone(bench: &Bench<'_>, wish: Wish, case: &SettingsCase, root: &str, path: &str) -> io::Result<Came> {
    let stage = bench.scratch.stage()?;
    furnish(&stage, case)?.ok();
    let plan = propose(&stage, wish, Action::Install).await;
    stage.strike().await?;
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

/// A number that may be a line's: one that is no part of the file's name.
fn says_where(why: &str) -> bool {
    why.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word.parse::<u32>().is_ok())
}

/// The same file as an editor that crashed would leave it; none where the kit knows no way to break it.
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
