//! Applying what a finding suggests.

use std::path::{Component, Path, PathBuf};

use mesh::reviews::apply_suggestion;

use super::{ReviewFolder, Reviews};
use crate::atomic_write;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::unix::MetadataExt as _;
use mesh::reviews::{Finding, ReviewRecord};
use store::Durability;

fn refused(what: String, hint: &str, exit: Exit) -> CommandError {
    Failure { what, hint: Some(hint.to_owned()), exit, source: None }.into()
}

/// The finding of a review by its number or the beginning of its fingerprint.
fn finding(folder: &ReviewFolder, record: &ReviewRecord, typed: &str) -> Result<(usize, Finding), CommandError> {
    if record.ended.is_none() {
        let what = format!("review {} has not ended", record.id);
        return Err(refused(what, "wait for its end", Exit::Held));
    }
    let findings = folder.findings()?;
    let is_it = |at: usize, finding: &Finding| match typed.parse::<usize>() {
        Ok(number) => number == at + 1,
        Err(_) => typed.len() >= 6 && finding.fingerprint.starts_with(typed),
    };
    let mut found = findings.into_iter().enumerate().filter(|(at, finding)| is_it(*at, finding));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None | Some(_), _) => {
            let what = format!("review {} has no finding `{typed}`", record.id);
            Err(refused(what, "`relay-mesh runs show REVIEW` lists them, each with its number", Exit::NotFound))
        }
    }
}

/// Applies what a finding suggests to the working copy that was reviewed, if its lines are still as they were. Returns
/// the file.
pub(crate) fn apply(context: &Context, review: &str, typed: &str) -> Result<PathBuf, CommandError> {
    let reviews = Reviews::of(&context.settings.dir.value);
    let Some((folder, record)) = reviews.find(review)? else {
        return Err(refused(
            format!("no review has the id `{review}`"),
            "`relay-mesh review` starts one",
            Exit::NotFound,
        ));
    };
    let (_, finding) = finding(&folder, &record, typed)?;
    // Each reads the whole file and replaces it: two at once would lose what one of them applied.
    let _alone = reviews.alone()?;
    let path = inside(&record.top, &finding.file)?;
    let unusable = |source: std::io::Error| {
        let what = format!("`{}` could not be read as text", path.display());
        CommandError::caused_by(&what, Some("apply it by hand".to_owned()), Exit::Held, source)
    };
    let text = std::fs::read_to_string(&path).map_err(unusable)?;
    let new = apply_suggestion(&text, &finding).map_err(|error| {
        refused(
            format!("{error}, and nothing was applied"),
            "apply it by hand, or review what is there now",
            Exit::Held,
        )
    })?;
    let mode = std::fs::metadata(&path).map_err(unusable)?.mode() & 0o7777;
    let written = atomic_write::replace(&path, new.as_bytes(), mode, Durability::Process);
    written.map_err(|source| {
        let what = format!("`{}` could not be written", path.display());
        CommandError::caused_by(
            &what,
            Some("see whether it is yours and the disk is full".to_owned()),
            Exit::Store,
            source,
        )
    })?;
    Ok(path)
}

/// A file of the working copy. What a model named may not lead out of it, nor through a symlink.
fn inside(top: &Path, file: &str) -> Result<PathBuf, CommandError> {
    let inner = Path::new(file);
    let is_plain = inner.components().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
    let path = top.join(inner);
    let real = std::fs::canonicalize(&path).ok();
    let is_there = std::fs::canonicalize(top).ok().map(|top| top.join(inner)) == real && real.is_some();
    if is_plain && is_there {
        return Ok(path);
    }
    Err(refused(
        format!("`{file}` is no file of `{}`", top.display()),
        "it may have been renamed or deleted since; apply it by hand",
        Exit::Held,
    ))
}
