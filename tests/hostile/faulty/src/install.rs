//! A block of our own at the end of `settings.toml`, between two marks.

use crate::exports::relay::adapter::install::{Action, Edit, Finding, Guest, Plan, Scope, Setup, Severity};
use crate::relay::adapter::files;
use crate::relay::adapter::types::Error;
use crate::{Faulty, is_wrong};

const FILE: &str = "settings.toml";
const BEGIN: &str = "# relay-mesh begin\n";
const END: &str = "# relay-mesh end\n";

impl Guest for Faulty {
    fn present() -> Result<Option<String>, Error> {
        if is_wrong("takes-long") {
            spend(700);
        }
        if is_wrong("takes-much") {
            core::hint::black_box(vec![1_u8; 40 << 20]);
        }
        Ok(is_wrong("sees-what-is-not-there").then(|| "1.0".to_owned()))
    }

    fn propose(setup: Setup) -> Result<Plan, Error> {
        if matches!(setup.scope, Scope::Project) {
            return Err(Error::Unsupported("there are no settings of a project".to_owned()));
        }
        let before = settings()?;
        let old = before.clone().unwrap_or_default();
        if !is_wrong("edits-what-is-broken") {
            whole(&old)?;
        }
        let block = format!("{BEGIN}program = {:?}\n{END}", setup.program);
        let after = match setup.action {
            Action::Install if is_wrong("installs-twice") => Some(format!("{old}{block}")),
            Action::Install if old.contains(&block) => Some(old.clone()),
            Action::Install => Some(format!("{}{block}", without(&old))),
            Action::Remove if is_wrong("leaves-something-behind") => Some(old.replace("program", "# program")),
            Action::Remove => Some(without(&old)).filter(|rest| !rest.is_empty()),
        };
        let after = after.map(|after| if is_wrong("drops-comments") { uncommented(&after) } else { after });
        let edit = Edit { root: "config".to_owned(), path: FILE.to_owned(), before, after, executable: false };
        let changes = edit.before != edit.after;
        Ok(Plan { edits: Some(edit).filter(|_| changes).into_iter().collect(), next_steps: Vec::new() })
    }

    fn check(_setup: Setup) -> Result<Vec<Finding>, Error> {
        let is_there = settings()?.is_some_and(|text| text.contains(BEGIN)) && !is_wrong("never-likes-its-install");
        let broken = Finding { severity: Severity::Broken, what: "it is not set up".to_owned(), fix: None };
        Ok(Some(broken).filter(|_| !is_there).into_iter().collect())
    }
}

fn settings() -> Result<Option<String>, Error> {
    let read = files::Root::open("config").and_then(|root| root.read(FILE));
    match read {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| Error::Failed(error.to_string())),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn without(text: &str) -> String {
    match text.split_once(BEGIN) {
        Some((before, rest)) => format!("{before}{}", rest.split_once(END).map_or("", |(_, after)| after)),
        None => text.to_owned(),
    }
}

fn uncommented(text: &str) -> String {
    let ours = |line: &&str| !line.starts_with('#') || BEGIN.starts_with(line) || END.starts_with(line);
    text.lines().filter(ours).map(|line| format!("{line}\n")).collect()
}

/// One setting per line, with closed brackets.
fn whole(text: &str) -> Result<(), Error> {
    for (number, line) in text.lines().enumerate() {
        if line.matches('[').count() != line.matches(']').count() {
            let where_it_is = format!("{FILE} is broken in line {}, column {}", number + 1, line.len());
            let vague = "the settings are broken".to_owned();
            return Err(Error::Failed(if is_wrong("does-not-say-where") { vague } else { where_it_is }));
        }
    }
    Ok(())
}

/// Works for about this many milliseconds of processor time, however busy the machine is. A stretch of work counts
/// as long as its quickest run took, because in slower runs other programs used the processor too.
fn spend(milliseconds: u128) {
    let (mut quickest, mut runs) = (u128::MAX, 0);
    while runs == 0 || quickest * runs < milliseconds * 1_000_000 {
        let began = std::time::Instant::now();
        for number in 0..200_000_u64 {
            core::hint::black_box(number);
        }
        quickest = quickest.min(began.elapsed().as_nanos().max(1));
        runs += 1;
    }
}
