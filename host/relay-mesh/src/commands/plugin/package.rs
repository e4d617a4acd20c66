//! What `install` and `update` do with a file: they read it and describe it in plain words before they ask, and load it
//! without any grant once the user has agreed.

use std::path::Path;

use adapters::manifest::Manifest;
use adapters::{Examination, Package, PackageError};
use mesh::ports::harness::HarnessError;

use super::asking::Question;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::printable_line;

/// Reads a package from a file or a folder.
pub(super) fn read(context: &Context, path: &Path) -> Result<Package, CommandError> {
    Package::open(&context.workdir.join(path)).map_err(|error| unreadable(&path.display().to_string(), error))
}

/// The error of what is no package.
pub(super) fn unreadable(from: &str, error: PackageError) -> CommandError {
    let exit = match &error {
        PackageError::Missing => Exit::NotFound,
        PackageError::Io { .. }
        | PackageError::TooLarge { .. }
        | PackageError::NotWasm
        | PackageError::CoreModule
        | PackageError::Excess(_)
        | PackageError::NoManifest(_)
        | PackageError::LongManifest { .. }
        | PackageError::NotText
        | PackageError::Manifest(_)
        | PackageError::TwoManifests
        | PackageError::Empty
        | PackageError::CutShort
        | PackageError::Several(_) => Exit::Failure,
    };
    CommandError::caused_by(&format!("`{from}` is no adapter"), Some(error.hint().to_owned()), exit, error)
}

/// What a package is, unless there is an objection to it. Nothing of it is compiled or run.
pub(super) fn examine(open: &Open, package: &Package) -> Result<Examination, CommandError> {
    let name = &package.manifest.name;
    if let Some(objection) = open.adapters.objection(&package.manifest) {
        let hint = Some(objection.hint());
        return Err(CommandError::caused_by(
            &format!("`{name}` cannot be installed here"),
            hint,
            Exit::Refused,
            objection,
        ));
    }
    open.adapters.examine(package).map_err(|error| unusable(&package.from, error))
}

/// Loads the component without any grant and asks it who it is. One that cannot be loaded is not installed.
pub(super) async fn try_out(open: &Open, package: &Package) -> Result<(), CommandError> {
    open.adapters.try_out(package).await.map_err(|error| unusable(&package.from, error))
}

/// The error for a component that cannot be loaded.
pub(super) fn unusable(from: &str, error: HarnessError) -> CommandError {
    let hint = "tell its author; RELAY_LOG=debug says more";
    CommandError::caused_by(&format!("`{from}` is no adapter"), Some(hint.to_owned()), Exit::Failure, error)
}

/// What is said before the list of what an adapter asks for, or in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    asks: &'static str,
    asks_nothing: &'static str,
}

impl Heading {
    /// For one that is not installed yet.
    pub(super) const FIRST: Heading = Heading { asks: "it asks to be able to", asks_nothing: "it asks for nothing" };
    /// For one that takes the place of another version: only what is new is listed.
    pub(super) const UPDATE: Heading = Heading {
        asks: "it asks to be able to, beyond what it asked before",
        asks_nothing: "it asks for nothing more than before",
    };
}

/// Says what the adapter is and what it would be able to do.
pub(super) fn words(
    open: &Open,
    examined: &Examination,
    publisher: &[String],
    question: &Question,
    heading: Heading,
) -> String {
    let manifest = &examined.manifest;
    // Quoted, as everything that its author wrote: none of it can pass for our own words.
    let mut lines = vec![format!(
        "{} {}, which its author calls \"{}\", {}, digest {}",
        manifest.name,
        manifest.version,
        manifest.title,
        size(examined.size),
        &examined.digest.to_string()[..16]
    )];
    lines.extend_from_slice(publisher);
    let matched = &manifest.matches;
    let named = |what: &str, names: &[String]| match names {
        [] => None,
        names if names.iter().any(|name| name == "*") => Some(format!("it is asked about every MCP client's {what}")),
        names => Some(format!("it is asked about MCP clients whose {what} is {}", quoted(names))),
    };
    if !manifest.aliases.is_empty() {
        lines.push(format!("it also answers to the name {}", quoted(&manifest.aliases)));
    }
    lines.extend(named("name", &matched.clients));
    if !matched.environment.is_empty() {
        lines.push(format!("it is asked about processes with the variable {}", quoted(&matched.environment)));
    }
    if !matched.shells.is_empty() {
        lines.push(format!("a shell with the variable {} counts as one of its agents'", quoted(&matched.shells)));
    }
    if question.requests.is_empty() && question.claims.is_empty() {
        lines.push(heading.asks_nothing.to_owned());
    } else {
        lines.push(heading.asks.to_owned());
    }
    let replaces = adapters::grants::REPLACES_BUILT_IN;
    let claimed = question.claims.iter().map(|_| replaces);
    let names = question.requests.iter().map(|(name, _)| name.as_str()).chain(claimed);
    let width = names.map(|name| name.chars().count()).max().unwrap_or_default();
    for (name, allows) in &question.requests {
        lines.push(format!("  {name:<width$}  {allows}"));
        lines.extend(now(open, manifest, name).map(|place| format!("  {:<width$}  now {place}", "")));
    }
    for (claimed, owner) in &question.claims {
        lines.push(format!(
            "  {replaces:<width$}  answer to the name `{claimed}`, in place of the built-in adapter `{owner}`"
        ));
    }
    lines.push(format!(
        "It runs in a sandbox, with what you grant of this and nothing else. It sees the mail of its harness's sessions. \
         One call may take {} ms of a processor and {} MB of memory.",
        manifest.limits.guest_ms, manifest.limits.memory_mb
    ));
    if !manifest.requests.programs.is_empty() || !manifest.requests.runs.is_empty() {
        lines.push("A program that it runs is in no sandbox: it can do what you can.".to_owned());
    }
    lines.iter().map(|line| printable_line(line)).collect::<Vec<_>>().join("\n")
}

/// Where a root or a socket leads now, if its path has variables or links in it: `${HOME:-~/.toad}` is the whole home.
fn now(open: &Open, manifest: &Manifest, grant: &str) -> Option<String> {
    let path = match grant.split_once('.')? {
        ("roots", name) => manifest.requests.roots.get(name)?.path.clone(),
        ("endpoints", name) => manifest.requests.endpoints.get(name)?.address.to_string(),
        _ => return None,
    };
    open.adapters.leads_now(&path).map(|place| place.display().to_string())
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
