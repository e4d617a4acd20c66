//! `relay-mesh plugin grant` and `revoke`: give an adapter a grant, and take one back.

use adapters::grants::{REPLACES_BUILT_IN, STATE};
use adapters::{Consent, Grantee};
use mesh::ports::harness::Harnesses as _;
use mesh::ports::machine::Machine as _;

use super::install::{grant_lines, installed_adapters, installed_error};
use super::shapes::Granted;
use crate::compose::Open;
use crate::context::Context;
use crate::errors;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::permission;

/// Give an adapter something that it asks for
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin grant gemini-cli roots.config environment.GEMINI_CLI\n\n\
    `relay-mesh plugin inspect NAME` shows everything that an adapter asks for. A grant applies to exactly this \
    version, from its next call on.")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// What, as `relay-mesh plugin inspect` names it
    #[arg(required = true)]
    grants: Vec<String>,
}

/// Take back something that an adapter was given
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh plugin revoke gemini-cli roots.config\n\n\
    It takes effect at the adapter's next call, also in running processes.")]
pub(super) struct RevokeArgs {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// What, as `relay-mesh plugin inspect` names it
    #[arg(required = true)]
    grants: Vec<String>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, "consent").await?;
    let grantee = grantee(&open, &args.name)?;
    let claims = open.adapters.built_in_claims(&grantee.manifest);
    let requests: Vec<String> = grantee.manifest.requests.words().into_iter().map(|(name, _)| name).collect();
    let is_asked = |grant: &String| requests.contains(grant) || (grant == REPLACES_BUILT_IN && !claims.is_empty());
    if let Some(stray) = args.grants.iter().find(|grant| !is_asked(grant)) {
        return Err(not_asked(&args.name, stray, &requests));
    }
    let consent = change(&open, &grantee, |consent| {
        for grant in &args.grants {
            if grant == REPLACES_BUILT_IN {
                consent.replaces_built_in = true;
            } else {
                consent.grants.insert(grant.clone());
            }
        }
    })?;
    context.printer.say(&format!("{} has {} now.", args.name, args.grants.join(", ")));
    show(context, &grantee, &consent)
}

pub(super) fn revoke(args: RevokeArgs, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let grantee = grantee(&open, &args.name)?;
    let has = |grant: &String| match grant.as_str() {
        REPLACES_BUILT_IN => grantee.consent.replaces_built_in,
        _ => grantee.consent.grants.contains(grant),
    };
    if let Some(missing) = args.grants.iter().find(|grant| !has(grant)) {
        return Err(Failure {
            what: format!("the adapter `{}` has no grant `{missing}`", args.name),
            hint: Some(format!("`relay-mesh plugin inspect {}` shows what it has", args.name)),
            exit: Exit::NotFound,
            source: None,
        }
        .into());
    }
    let consent = change(&open, &grantee, |consent| {
        for grant in &args.grants {
            if grant == REPLACES_BUILT_IN {
                consent.replaces_built_in = false;
            } else {
                consent.grants.remove(grant);
            }
        }
    })?;
    context.printer.say(&format!("{} no longer has {}.", args.name, args.grants.join(", ")));
    show(context, &grantee, &consent)
}

fn change(open: &Open, grantee: &Grantee, change: impl FnOnce(&mut Consent)) -> Result<Consent, CommandError> {
    installed_adapters(open)?
        .consent(&grantee.manifest.name, grantee.digest, open.machine.now(), change)
        .map_err(installed_error)
}

fn show(context: &Context, grantee: &Grantee, consent: &Consent) -> Result<Exit, CommandError> {
    let manifest = &grantee.manifest;
    context.printer.show(&Granted {
        adapter: manifest.name.clone(),
        digest: grantee.digest.to_string(),
        grants: grant_lines(&manifest.name, &manifest.requests, consent),
    })?;
    Ok(Exit::Success)
}

fn grantee(open: &Open, name: &str) -> Result<Grantee, CommandError> {
    let found = open.adapters.grantee(name).map_err(|error| errors::adapters::failed(name, error))?;
    found.ok_or_else(|| match open.adapters.names().iter().any(|known| known == name) {
        true => CommandError::from(Failure {
            what: format!("the adapter `{name}` is built in"),
            hint: Some(
                "it holds what it asks for by being part of this program; `relay-mesh uninstall` ends its use"
                    .to_owned(),
            ),
            exit: Exit::Refused,
            source: None,
        }),
        false => errors::adapters::unknown(name, open.adapters.as_ref()),
    })
}

fn not_asked(name: &str, grant: &str, requests: &[String]) -> CommandError {
    let requests: Vec<&str> = requests.iter().map(String::as_str).filter(|asked| *asked != STATE).collect();
    CommandError::usage(
        &format!("the adapter `{name}` does not ask for `{grant}`"),
        &match requests.as_slice() {
            [] => "it asks for nothing but `state`".to_owned(),
            requests => format!("it asks for {}, and `state`", requests.join(", ")),
        },
    )
}
