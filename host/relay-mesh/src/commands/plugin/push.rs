//! `relay-mesh plugin push`: publish an adapter in an OCI registry.

use std::path::PathBuf;

use ::fetch::oci::{About, Artifact, Pushed, Reference};
use adapters::PublisherKey;
use serde::Serialize;

use super::install::installed_adapters;
use super::package;
use super::source::{Network, SourceError};
use super::trust::{self, Unsigned};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::runs::permission;

/// Publish an adapter in an OCI registry
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin push ./toad.wasm oci://ghcr.io/acme/toad\n  \
    relay-mesh plugin push ./toad.wasm oci://localhost:5000/toad:test --plain-http --allow-unsigned\n\n\
    The logins of Docker and Podman are used: `docker login ghcr.io`. Without a tag it is that of its version. The form is \
    that of `wkg oci push`: one layer of application/wasm.")]
pub(super) struct Args {
    /// The component, or the folder that holds it
    path: PathBuf,
    /// Where to: `oci://REGISTRY/NAME[:TAG]`
    #[arg(value_name = "ADDRESS")]
    to: String,
    /// Put it in the place of another one that has this tag
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    unsigned: Unsigned,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let malformed = |why: String| SourceError::Malformed { text: args.to.clone(), why };
    let to: Reference = args.to.parse().map_err(|error| malformed(format!("{error}")))?;
    if to.digest.is_some() {
        return Err(malformed("its digest follows from what is pushed".to_owned()).into());
    }
    let open = context.open()?;
    permission::only_the_user(context, &open, "publish").await?;
    let package = package::read(context, &args.path)?;
    if !package.has_manifest_inside() {
        return Err(CommandError::usage(
            &format!("`{}` has its manifest beside it, and a registry takes one file", args.path.display()),
            "`relay-mesh plugin sign` puts the manifest into it",
        ));
    }
    trust::judge(installed_adapters(&open)?, &package, None, &args.unsigned, None)?;
    let examined = open.adapters.examine(&package).map_err(|error| package::unusable(&package.from, error))?;
    let manifest = &package.manifest;
    // A tag has no `+`.
    let to = if to.tag.is_some() { to } else { to.with_tag(&manifest.version.replace('+', "_")) };
    let about = About {
        name: manifest.name.clone(),
        title: manifest.title.clone(),
        version: manifest.version.clone(),
        imports: examined.imports,
        exports: examined.exports,
    };
    let publishers = package.signed().keys().to_vec();
    let artifact = Artifact::of(package.bytes.clone(), &about);
    let client = args.network.client(context)?;
    let mut registry = args.network.registry(context, &client, &to)?;
    let (digest, outcome) = match registry.push(&artifact, args.replace).await.map_err(SourceError::from)? {
        Pushed::New(digest) => (digest, "pushed"),
        Pushed::Unchanged(digest) => (digest, "unchanged"),
    };
    context.printer.show(&PushedShape {
        adapter: about.name,
        outcome,
        version: about.version,
        address: to.to_string(),
        digest: digest.to_string(),
        publishers,
    })?;
    Ok(Exit::Success)
}

/// What `push` prints.
#[derive(Debug, Serialize)]
struct PushedShape {
    adapter: String,
    /// `pushed` or `unchanged`.
    outcome: &'static str,
    version: String,
    address: String,
    /// The manifest's digest, which `@` pins.
    digest: String,
    /// The keys that signed it.
    publishers: Vec<PublisherKey>,
}

impl Show for PushedShape {
    fn text(&self) -> String {
        let what = if self.outcome == "pushed" { "is published" } else { "was published already" };
        printable_line(&format!(
            "{} {} {what}: relay-mesh plugin install {}@{}",
            self.adapter, self.version, self.address, self.digest
        ))
    }
}
