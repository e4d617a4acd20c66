//! `relay-mesh plugin update`: replaces an installed adapter with another version. Unchanged requests keep their
//! grants; the user is asked about new or wider ones.

use ::fetch::oci::Reference;
use adapters::installed::{FoundVersion, InstalledVersion};
use adapters::{Consent, Digest, Package, PublisherKey};

use super::asking::{ConsentArgs, Question, agree};
use super::install::{asked, installed_adapters, installed_error, placed, put, tell_what_is_missing, with_state};
use super::order::{self, VersionChange};
use super::source::{Network, Source};
use super::trust::Unsigned;
use super::{package, trust};
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Format;
use crate::runs::permission;

/// How much of a digest is shown, in digits: as much as before a consent.
const SHOWN: usize = 16;

/// Replace an installed adapter with another version
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin update gemini-cli ./gemini-cli.wasm\n  \
    relay-mesh plugin update toad\n  \
    relay-mesh plugin update toad oci://ghcr.io/acme/toad:2.0.0 --yes --grant programs.version\n\n\
    Without a source it is asked where it came from: a registry for its newest version, an address for what is there \
    now. One that was signed is updated only by what the same key signed. \
    Requests that did not change keep their grants, and what you denied stays denied. You are asked about new or \
    wider requests: another path, more access, another address, other words of a command.\n\n\
    A version keeps its content: if an address leads to another content of the installed version, the update is \
    refused without `--allow-changed`. What you built into a file needs no flag for that.")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// As for `install` [default: where the installed version came from]
    source: Option<String>,
    #[command(flatten)]
    said: ConsentArgs,
    #[command(flatten)]
    unsigned: Unsigned,
    /// Trust this key of its publisher in the place of the old one
    #[arg(long, value_name = "KEY")]
    new_key: Option<PublisherKey>,
    #[command(flatten)]
    network: Network,
    /// Allow a version that is earlier than the installed one
    #[arg(long)]
    allow_downgrade: bool,
    /// Allow an address to give another content of the installed version
    #[arg(long)]
    allow_changed: bool,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let name = args.name.as_str();
    let record = installed_adapters(&open)?.record(name).map_err(installed_error)?;
    let found = FoundVersion::of(record.as_deref());
    let Some((record, installed)) = record.as_ref().and_then(|record| Some((record, record.installed.as_ref()?)))
    else {
        return Err(absent(name, args.source.as_deref().unwrap_or("SOURCE")));
    };
    let source = match &args.source {
        Some(text) => Source::parse(text)?,
        None => newest(Source::parse(&installed.from)?),
    };
    if source.is_remote() {
        permission::only_the_user(context, &open, "consent").await?;
    }
    let package = open.adapters.beside_others(source.get(context, &args.network).await?);
    if package.manifest.name != name {
        return Err(CommandError::usage(
            &format!("`{source}` is the adapter `{}` and not `{name}`", package.manifest.name),
            &format!("install it beside the other: `relay-mesh plugin install {source}`"),
        ));
    }
    let next = order::version(name, &package.manifest.version)?;
    let before = order::version(name, &installed.version)?;
    let step = order::step(&before, &next);
    if step == VersionChange::Down && !args.allow_downgrade {
        return Err(Failure {
            what: format!("`{name}` is installed in version {}, and this is {next}", installed.version),
            hint: Some("say `--allow-downgrade` to go back to an earlier version".to_owned()),
            exit: Exit::Refused,
            source: None,
        }
        .into());
    }
    let given = record.consent(&installed.digest);
    if installed.digest == package.digest && installed_adapters(&open)?.is_sound(name) {
        context.printer.say(&format!("{name} {next} is installed already, and this is the same."));
        context.printer.show(&placed(&package, "unchanged", Some(installed.version.clone()), &given))?;
        return Ok(Exit::Success);
    }
    let examined = package::examine(&open, &package)?;
    let all = installed_adapters(&open)?;
    let publisher = trust::judge(all, &package, Some(installed), &args.unsigned, args.new_key)?;
    // Authors build one version into a file over and over; what an address gives out of it stays the same.
    let is_rebuilt = before == next && installed.digest != package.digest;
    if is_rebuilt && source.is_remote() && !args.allow_changed {
        return Err(changed(&package, installed));
    }
    let carried = carry(&open.adapters, name, &given, &package);
    if context.printer.format() == Format::Text {
        context.printer.sentences(&package::words(
            &open,
            &examined,
            &publisher.words(all),
            &carried.question,
            package::Heading::UPDATE,
        ))?;
    }
    permission::only_the_user(context, &open, "consent").await?;
    let consent = if carried.question.requests.is_empty() && carried.question.claims.is_empty() {
        // There is no new request, so the user is not asked.
        carried.kept
    } else {
        let Some(more) = agree(context, &carried.question, &args.said)? else {
            context.printer.say(&format!("Nothing was changed; {name} {} stays.", installed.version));
            context.printer.show(&placed(&package, "declined", Some(installed.version.clone()), &given))?;
            return Ok(Exit::Refused);
        };
        let kept = carried.kept;
        Consent {
            grants: kept.grants.into_iter().chain(with_state(more.clone()).grants).collect(),
            replaces_built_in: kept.replaces_built_in || more.replaces_built_in,
        }
    };
    package::try_out(&open, &package).await?;
    put(&open, &package, &consent, (installed.standing, found), &publisher)?;
    let title = &package.manifest.title;
    context.printer.say(&match () {
        () if is_rebuilt => format!("{title} {next} was replaced by another build of this version."),
        () if before == next => format!("{title} {next} is sound again."),
        () => format!("{title} went from {} to {next}.", installed.version),
    });
    tell_what_is_missing(context, &package, &consent);
    context.printer.show(&placed(&package, "updated", Some(installed.version.clone()), &consent))?;
    Ok(Exit::Success)
}

/// A registry is asked for its newest version, whichever was installed before.
fn newest(source: Source) -> Source {
    match source {
        Source::Registry(reference) if reference.tag.as_deref().is_some_and(order::is_version) => {
            Source::Registry(Reference { tag: None, digest: None, ..reference })
        }
        source @ (Source::Registry(_) | Source::File(_) | Source::Web { .. }) => source,
    }
}

/// The refusal of a version whose content is not what it was.
fn changed(package: &Package, installed: &InstalledVersion) -> CommandError {
    let digest = |digest: &Digest| digest.to_string().chars().take(SHOWN).collect::<String>();
    CommandError::from(Failure {
        what: format!(
            "the content of this version changed: `{}` {} is installed with the digest {}, and `{}` now leads to {}",
            package.manifest.name,
            installed.version,
            digest(&installed.digest),
            package.from,
            digest(&package.digest)
        ),
        hint: Some(
            "a change comes as a new version: ask its publisher about this one, and if it is right, say \
             `--allow-changed`"
                .to_owned(),
        ),
        exit: Exit::Refused,
        source: None,
    })
}

fn absent(name: &str, source: &str) -> CommandError {
    CommandError::from(Failure {
        what: format!("no adapter is installed by the name `{name}`"),
        hint: Some(format!("install it: `relay-mesh plugin install {source}`")),
        exit: Exit::NotFound,
        source: None,
    })
}

/// The consent that the new version keeps, and what to ask the user.
struct CarriedConsent {
    kept: Consent,
    question: Question,
}

fn carry(adapters: &adapters::Adapters, name: &str, given: &Consent, package: &Package) -> CarriedConsent {
    // If the installed version can no longer be read, its requests are unknown.
    let old = adapters.installed_manifest(name);
    let all = old.as_ref().map(|old| old.requests.words().into_iter().map(|(grant, _)| grant).collect());
    let settled = match (&old, &all) {
        (Some(old), Some(all)) => old.requests.kept(all, &package.manifest.requests),
        (Some(_) | None, _) => std::collections::BTreeSet::new(),
    };
    let claims = adapters.built_in_claims(&package.manifest);
    let before = old.as_ref().map(|old| adapters.built_in_claims(old)).unwrap_or_default();
    let replaces_built_in = given.replaces_built_in && claims.iter().all(|claim| before.contains(claim));
    CarriedConsent {
        kept: Consent { grants: given.grants.intersection(&settled).cloned().collect(), replaces_built_in },
        question: Question {
            adapter: name.to_owned(),
            requests: asked(package).into_iter().filter(|(grant, _)| !settled.contains(grant)).collect(),
            claims: if replaces_built_in { Vec::new() } else { claims },
        },
    }
}
