//! `relay-mesh plugin verify`: proves that adapters are what the user consented to, and can be loaded.

use adapters::{Audit, CacheCondition, Compilation};
use mesh::ports::harness::{Finding, HarnessError, Severity};

use super::install::{installed_adapters, installed_error};
use super::trust;
use crate::compose::Open;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::setup::doctor::{broken, fine};
use crate::setup::shapes::Proof;

/// Prove that installed adapters are what was installed, and can be loaded
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  relay-mesh plugin verify\n  relay-mesh plugin verify gemini-cli\n\n\
    It compares the files with the digest that you consented to, and checks the compile cache; what is damaged there \
    is compiled again. Exits with 1 if something is broken.")]
pub(super) struct Args {
    /// Only this adapter, installed or not
    name: Option<String>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let names = match args.name {
        Some(name) => vec![name],
        None => installed_adapters(&open)?.names().map_err(installed_error)?,
    };
    if names.is_empty() {
        context.printer.say("No adapter is installed.");
    }
    let mut worst = Severity::Ok;
    for name in names {
        for finding in look(&open, &name).await? {
            worst = worst.max(finding.severity);
            context.printer.show(&Proof::new("adapter", Some(&name), finding))?;
        }
    }
    Ok(match worst {
        Severity::Ok | Severity::Warning => Exit::Success,
        Severity::Broken => Exit::Failure,
    })
}

async fn look(open: &Open, name: &str) -> Result<Vec<Finding>, CommandError> {
    Ok(match open.adapters.audit(name).await {
        Ok(Audit::Unknown) if installed_adapters(open)?.record(name).map_err(installed_error)?.is_some() => {
            vec![fine("nothing is installed; your grants to builds of it in a plugin folder are kept".to_owned())]
        }
        Ok(Audit::Unknown) => return Err(errors::adapters::unknown(name, open.adapters.as_ref())),
        Ok(Audit::Looked { kept, compilation, version }) => {
            let mut findings = vec![fine(format!("version {version} is what was installed, and it was loaded"))];
            findings.extend(of_publisher(open, name)?);
            findings.push(of_cache(kept, compilation));
            findings
        }
        Err(error) => vec![of_failure(name, &error)],
    })
}

/// Who signed it. Its files are those of the digest that was consented to, so nothing is proven again.
fn of_publisher(open: &Open, name: &str) -> Result<Option<Finding>, CommandError> {
    let record = installed_adapters(open)?.record(name).map_err(installed_error)?;
    let installed = record.as_ref().and_then(|record| record.installed.as_ref());
    Ok(installed.map(|installed| match installed.publishers.as_slice() {
        [] => fine("it is not signed, as you allowed".to_owned()),
        keys => fine(format!("signed by {}", trust::listed(keys))),
    }))
}

fn of_cache(kept: CacheCondition, compilation: Compilation) -> Finding {
    let warning = |what: String, fix: &str| Finding { severity: Severity::Warning, what, fix: Some(fix.to_owned()) };
    match kept {
        CacheCondition::Sound => fine("its machine code in the cache is whole".to_owned()),
        CacheCondition::Absent => fine(match compilation {
            Compilation::Cached => "its machine code was just put into the cache, by another process".to_owned(),
            Compilation::Fresh | Compilation::Unkept => {
                "its machine code was not in the cache, and was compiled".to_owned()
            }
        }),
        CacheCondition::Removed => {
            warning("its machine code in the cache was damaged, and was compiled again".to_owned(), "check the disk")
        }
        CacheCondition::Unusable(why) => warning(
            format!("the cache cannot be used, so it is compiled at every start: {why}"),
            "mend the folder's owner and mode, or set XDG_CACHE_HOME to one that is yours",
        ),
    }
}

fn of_failure(name: &str, error: &HarnessError) -> Finding {
    broken(error.to_string(), format!("relay-mesh plugin remove {name}, and install it again"))
}
