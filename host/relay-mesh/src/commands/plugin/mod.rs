//! `relay-mesh plugin`: manage the adapters, one file for each subcommand.

mod asking;
mod enable;
mod grant;
mod inspect;
mod install;
mod keygen;
mod list;
mod new;
mod order;
mod package;
mod push;
mod record;
mod remove;
mod search;
mod shapes;
mod sign;
mod source;
mod templates;
mod test;
mod trust;
mod update;
mod vendored;
mod verify;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Show the adapters, install further ones, and say what each may do
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin list\n  \
    relay-mesh plugin install oci://ghcr.io/acme/toad\n  \
    relay-mesh plugin grant toad roots.config\n  \
    relay-mesh plugin remove toad")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Show every adapter: where it comes from, what it may do, whether it works
    List(list::Args),
    /// Look for adapters of others in a list
    Search(search::Args),
    /// Install an adapter from a file, the web or a registry, after showing what it will be able to do
    Install(install::Args),
    /// Replace an installed adapter with another version
    Update(update::Args),
    /// Show everything that is known of an adapter, installed or not
    Inspect(inspect::Args),
    /// Give an adapter something that it asks for
    Grant(grant::Args),
    /// Take back something that an adapter was given
    Revoke(grant::RevokeArgs),
    /// Use an installed adapter again
    Enable(enable::Args),
    /// Leave an adapter installed and use it no longer
    Disable(enable::DisableArgs),
    /// Remove an adapter, with its consents and its notes
    Remove(remove::Args),
    /// Prove that installed adapters are what was installed, and can be loaded
    Verify(verify::Args),
    /// Test an adapter in the sandbox: what it can do, how that is known, and what is wrong
    Test(test::Args),
    /// Write a repository for a new adapter, which builds, tests and installs at once
    New(new::Args),
    /// Make a key to sign adapters with
    Keygen(keygen::Args),
    /// Sign an adapter, so that its users know that it is from you
    Sign(sign::Args),
    /// Publish an adapter in an OCI registry
    Push(push::Args),
    /// Make fixtures of the calls that a harness makes of its hooks, until it is stopped
    Record(record::Args),
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            Verb::List(args) => list::run(args, context).await,
            Verb::Install(args) => install::run(args, context).await,
            Verb::Update(args) => update::run(args, context).await,
            Verb::Inspect(args) => inspect::run(args, context).await,
            Verb::Grant(args) => grant::run(args, context).await,
            Verb::Revoke(args) => grant::revoke(args, context),
            Verb::Enable(args) => enable::enable(args, context).await,
            Verb::Disable(args) => enable::disable(args, context),
            Verb::Remove(args) => remove::run(args, context).await,
            Verb::Verify(args) => verify::run(args, context).await,
            Verb::Test(args) => test::run(args, context).await,
            Verb::New(args) => new::run(args, context),
            Verb::Search(args) => search::run(args, context).await,
            Verb::Keygen(args) => keygen::run(&args, context),
            Verb::Sign(args) => sign::run(args, context).await,
            Verb::Push(args) => push::run(args, context).await,
            Verb::Record(args) => record::run(args, context).await,
        }
    }
}
