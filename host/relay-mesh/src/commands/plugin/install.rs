//! `relay-mesh plugin install`: installs an adapter once the user has agreed to what it may do.

use std::collections::BTreeSet;

use adapters::installed::{Enablement, FoundVersion, Install};
use adapters::{Consent, Grants, InstalledAdapters, InstalledError, Package, grants};
use mesh::ports::machine::Machine as _;

use super::asking::{ConsentArgs, Question, agree};
use super::shapes::Placed;
use super::source::{Network, Source};
use super::trust::Unsigned;
use super::{order, package, trust};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Format;
use crate::runs::permission;
use crate::setup::shapes::GrantLine;

/// Install an adapter from a file, the web or a registry, after showing what it will be able to do
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin install ./gemini-cli.wasm\n  \
    relay-mesh plugin install oci://ghcr.io/acme/toad:1.0.0\n  \
    relay-mesh plugin install github:acme/toad@v1.0.0\n  \
    relay-mesh plugin install ./target/adapter --allow-unsigned --yes --grant roots.config\n\n\
    On a terminal you are asked what to grant; elsewhere name it on the command line, or the command exits with 4. An \
    agent cannot consent for its user: it is refused below a harness. Then the component is compiled, in a process with limits on time and memory, and loaded without any grant; if that fails, \
    it is not installed.")]
pub(super) struct Args {
    /// A file or folder, `https://…`, `github:OWNER/REPO[/FILE][@TAG]`, or `oci://REGISTRY/NAME[:TAG][@sha256:…]`
    source: String,
    #[command(flatten)]
    said: ConsentArgs,
    #[command(flatten)]
    unsigned: Unsigned,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let all = installed_adapters(&open)?;
    let source = Source::parse(&args.source)?;
    if source.is_remote() {
        permission::only_the_user(context, &open, "consent").await?;
    }
    let package = open.adapters.beside_others(source.get(context, &args.network).await?);
    let name = package.manifest.name.as_str();
    order::version(name, &package.manifest.version)?;
    // A damaged record is no reason to refuse: installing again repairs it.
    let before = match all.record(name) {
        Err(InstalledError::Damaged { .. }) => None,
        before => before.map_err(installed_error)?,
    };
    let found = FoundVersion::of(before.as_deref());
    if let Some(installed) = before.as_ref().and_then(|record| record.installed.as_ref())
        && all.is_sound(name)
    {
        if installed.digest != package.digest {
            return Err(Failure {
                what: format!("`{name}` is installed already, in version {}", installed.version),
                hint: Some(format!("put this one in its place by `relay-mesh plugin update {name} {source}`")),
                exit: Exit::Refused,
                source: None,
            }
            .into());
        }
        context.printer.say(&format!("{name} {} is installed already, and this is the same.", installed.version));
        let consent = before.as_ref().map(|record| record.consent(&package.digest)).unwrap_or_default();
        context.printer.show(&placed(&package, "unchanged", None, &consent))?;
        return Ok(Exit::Success);
    }
    let examined = package::examine(&open, &package)?;
    let installed = before.as_ref().and_then(|record| record.installed.as_ref());
    let publisher = trust::judge(all, &package, installed, &args.unsigned, None)?;
    let question = Question {
        adapter: name.to_owned(),
        requests: asked(&package),
        claims: open.adapters.built_in_claims(&package.manifest),
    };
    if context.printer.format() == Format::Text {
        context.printer.sentences(&package::words(
            &open,
            &examined,
            &publisher.words(all),
            &question,
            package::Heading::FIRST,
        ))?;
    }
    permission::only_the_user(context, &open, "consent").await?;
    let Some(consent) = agree(context, &question, &args.said)? else {
        context.printer.say("Nothing was installed.");
        context.printer.show(&placed(&package, "declined", None, &Consent::default()))?;
        return Ok(Exit::Refused);
    };
    package::try_out(&open, &package).await?;
    let consent = with_state(consent);
    put(&open, &package, &consent, (Enablement::Enabled, found), &publisher)?;
    context.printer.say(&format!("{} {} is installed.", package.manifest.title, package.manifest.version));
    tell_what_is_missing(context, &package, &consent);
    context.printer.say(&format!(
        "Next: `relay-mesh install {name} --project .` sets the harness up; `relay-mesh plugin inspect {name}` shows \
         what it may do"
    ));
    context.printer.show(&placed(&package, "installed", None, &consent))?;
    Ok(Exit::Success)
}

/// The requests of a package that the user decides on: all but `state`.
pub(super) fn asked(package: &Package) -> Vec<(String, String)> {
    package.manifest.requests.words().into_iter().filter(|(name, _)| name != grants::STATE).collect()
}

/// Adds `state`: every installed adapter may keep small notes of its own.
pub(super) fn with_state(consent: Consent) -> Consent {
    let grants: BTreeSet<String> = consent.grants.into_iter().chain([grants::STATE.to_owned()]).collect();
    Consent { grants, ..consent }
}

pub(super) fn put(
    open: &Open,
    package: &Package,
    consent: &Consent,
    (standing, found): (Enablement, FoundVersion),
    publisher: &trust::Publisher,
) -> Result<(), CommandError> {
    let publishers = publisher.pins();
    let install = Install { package, publishers: &publishers, consent, standing, at: open.machine.now() };
    installed_adapters(open)?.install(install, found).map(drop).map_err(installed_error)
}

/// Says which requests are not granted.
pub(super) fn tell_what_is_missing(context: &Context, package: &Package, consent: &Consent) {
    let name = &package.manifest.name;
    let missing: Vec<String> =
        asked(package).into_iter().map(|(grant, _)| grant).filter(|grant| !consent.grants.contains(grant)).collect();
    if !missing.is_empty() {
        context
            .printer
            .say(&format!("It does without {0}; `relay-mesh plugin grant {name} {0}` gives it", missing.join(" ")));
    }
}

/// The JSON that `install` and `update` print.
pub(super) fn placed(package: &Package, outcome: &'static str, before: Option<String>, consent: &Consent) -> Placed {
    let manifest = &package.manifest;
    Placed {
        adapter: manifest.name.clone(),
        outcome,
        version: manifest.version.clone(),
        before,
        digest: package.digest.to_string(),
        publishers: package.signed().keys().to_vec(),
        grants: grant_lines(&manifest.name, &manifest.requests, consent),
    }
}

/// An adapter's requests, and whether each is granted.
pub(super) fn grant_lines(name: &str, requests: &adapters::manifest::Requests, consent: &Consent) -> Vec<GrantLine> {
    let given = grants::Granted::ByUser(consent.grants.clone());
    Grants::new(name, requests.clone(), given).list().iter().map(GrantLine::of).collect()
}

/// The installed adapters, which this program always has.
pub(super) fn installed_adapters(open: &Open) -> Result<&InstalledAdapters, CommandError> {
    open.adapters
        .installed()
        .ok_or_else(|| CommandError::usage("this program keeps no adapters", "use another build of it"))
}

/// The error of a change to the installed adapters.
pub(super) fn installed_error(error: InstalledError) -> CommandError {
    let exit = match &error {
        InstalledError::Absent(_) => Exit::NotFound,
        InstalledError::Changed(_) => Exit::Refused,
        InstalledError::Io { .. } | InstalledError::Damaged { .. } | InstalledError::Unsafe { .. } => Exit::Store,
    };
    let hint = Some(error.hint());
    CommandError::caused_by("the installed adapters are as they were", hint, exit, error)
}
