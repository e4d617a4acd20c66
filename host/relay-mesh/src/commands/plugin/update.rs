//! `relay-mesh plugin update`: another version in the place of an installed one. What it still asks
//! for it keeps; what is new or wider is asked for anew.

use std::path::PathBuf;

use adapters::installed::FoundVersion;
use adapters::{Consent, Package};

use super::asking::{Question, Said, agree};
use super::install::{asked, of_shelf, placed, put, shelf, tell_what_is_missing, with_state};
use super::order::{self, Step};
use super::package;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Format;

/// Put another version in the place of an installed adapter
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin update gemini-cli ./gemini-cli.wasm\n  \
    relay-mesh plugin update gemini-cli ./gemini-cli.wasm --yes --grant programs.version\n\n\
    What the new version asks for in the same words it keeps, and what you denied stays denied. You are asked \
    about what is new or wider: another path, more access, another address, other words of a command.")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// The component, or the folder that it lies in
    path: PathBuf,
    #[command(flatten)]
    said: Said,
    /// Let it be an earlier version than the installed one
    #[arg(long)]
    allow_downgrade: bool,
}

/// Does it.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let name = args.name.as_str();
    let record = shelf(&open)?.record(name).map_err(of_shelf)?;
    let Some((record, installed)) = record.as_ref().and_then(|record| Some((record, record.installed.as_ref()?)))
    else {
        return Err(absent(name, &args.path));
    };
    let package = package::read(context, &args.path)?;
    if package.manifest.name != name {
        return Err(CommandError::usage(
            &format!("`{}` is the adapter `{}` and not `{name}`", args.path.display(), package.manifest.name),
            &format!("install it beside the other: `relay-mesh plugin install {}`", args.path.display()),
        ));
    }
    let next = order::version(name, &package.manifest.version)?;
    let step = order::step(&order::version(name, &installed.version)?, &next);
    if step == Step::Down && !args.allow_downgrade {
        return Err(Failure {
            what: format!("`{name}` is installed in version {}, and this is {next}", installed.version),
            hint: Some("say `--allow-downgrade` to go back to an earlier version".to_owned()),
            exit: Exit::Refused,
            source: None,
        }
        .into());
    }
    let given = record.consent(&installed.digest);
    if installed.digest == package.digest && shelf(&open)?.is_sound(name) {
        context.printer.say(&format!("{name} {next} is installed already, and this is the same."));
        context.printer.show(&placed(&package, "unchanged", Some(installed.version.clone()), &given))?;
        return Ok(Exit::Success);
    }
    let examined = package::try_out(&open, &package).await?;
    let carried = carry(&open.adapters, name, &given, &package);
    if context.printer.format() == Format::Text {
        let heading = "it asks to be able to, beyond what it asked before";
        context.printer.data(&package::words(&examined, &carried.question, heading))?;
    }
    let consent = if carried.question.asks.is_empty() && carried.question.claims.is_empty() {
        // Nothing is asked that was not asked before, so nobody has to answer.
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
    put(&open, &package, &consent, installed.standing, FoundVersion(Some(installed.digest)))?;
    context.printer.say(&format!("{} went from {} to {next}.", package.manifest.title, installed.version));
    tell_what_is_missing(context, &package, &consent);
    context.printer.show(&placed(&package, "updated", Some(installed.version.clone()), &consent))?;
    Ok(Exit::Success)
}

fn absent(name: &str, path: &std::path::Path) -> CommandError {
    CommandError::from(Failure {
        what: format!("no adapter is installed by the name `{name}`"),
        hint: Some(format!("install it: `relay-mesh plugin install {}`", path.display())),
        exit: Exit::NotFound,
        source: None,
    })
}

/// What goes over to a new version by itself, and what is asked.
struct Carried {
    kept: Consent,
    question: Question,
}

fn carry(adapters: &adapters::Adapters, name: &str, given: &Consent, package: &Package) -> Carried {
    // Where the installed one can no longer be read, nothing is known of what it asked for.
    let old = adapters.installed_manifest(name);
    let all = old.as_ref().map(|old| old.asks.words().into_iter().map(|(grant, _)| grant).collect());
    let settled = match (&old, &all) {
        (Some(old), Some(all)) => old.asks.kept(all, &package.manifest.asks),
        (Some(_) | None, _) => std::collections::BTreeSet::new(),
    };
    let claims = adapters.built_in_claims(&package.manifest);
    let before = old.as_ref().map(|old| adapters.built_in_claims(old)).unwrap_or_default();
    let replaces_built_in = given.replaces_built_in && claims.iter().all(|claim| before.contains(claim));
    Carried {
        kept: Consent { grants: given.grants.intersection(&settled).cloned().collect(), replaces_built_in },
        question: Question {
            adapter: name.to_owned(),
            asks: asked(package).into_iter().filter(|(grant, _)| !settled.contains(grant)).collect(),
            claims: if replaces_built_in { Vec::new() } else { claims },
        },
    }
}
