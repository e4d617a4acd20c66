//! The conformance kit, which tests whether a component is a good adapter. It runs the component in the real sandbox,
//! in a scratch folder that replaces home, project and machine. It tries recordings of the harness, and input that no
//! harness would send. `relay-mesh plugin test` prints the report.
//!
//! Start with [`examine`]. Each ability has one file, which returns the checks that it made; the optional
//! interfaces share `optional.rs`. A check that fails says what was expected, what came instead, and what the author
//! can do.
//!
//! This crate never names wasmtime or cap-std: it drives adapters only through the public API of `adapters`.

mod context;
mod deliveries;
mod denials;
mod detection;
mod driving;
mod fake_peer;
mod fixtures;
mod garbage;
mod hook_host;
mod hooks;
mod identity;
mod installing;
mod optional;
mod report;
mod runs;
mod scratch;
mod setups;
mod unix;

use std::io;
use std::path::{Path, PathBuf};

use mesh::ports::harness::HarnessError;

use adapters::manifest::WIT;
use adapters::{Compiler, Package, PackageError};
use fixtures::Fixtures;
use scratch::Scratch;

pub use fixtures::FixturesError;
pub use report::{Ability, Check, CheckOutcome, Costs, Report, Verdict};

/// The component to test, with its recordings.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The component's file. Its manifest is beside it or inside.
    pub component: PathBuf,
    /// The folder of recordings, if there is one.
    pub fixtures: Option<PathBuf>,
    /// An empty folder that only this run uses.
    pub scratch: PathBuf,
    /// Who compiles it.
    pub compiler: Compiler,
}

#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// The file is not an adapter.
    #[error("`{path}` is not an adapter")]
    Unusable { path: PathBuf, source: PackageError },
    /// The component cannot be loaded.
    #[error("`{path}` cannot be loaded: {why}")]
    Unloadable { path: PathBuf, why: String },
    #[error(transparent)]
    Fixtures(#[from] FixturesError),
    #[error("the scratch folder `{path}` cannot be used")]
    Scratch {
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
}

/// Tests a component. The report says what is wrong with it; an error says why it could not be tested.
pub async fn examine(subject: &Subject) -> Result<Report, ExamineError> {
    let package = Package::open(&subject.component)
        .map_err(|source| ExamineError::Unusable { path: subject.component.clone(), source })?;
    let fixtures = match &subject.fixtures {
        Some(folder) => Fixtures::read(folder)?,
        None => Fixtures::default(),
    };
    let unusable_scratch = |source| ExamineError::Scratch { path: subject.scratch.clone(), source };
    let scratch = Scratch::new(&subject.scratch, &package, &subject.compiler).map_err(unusable_scratch)?;
    // Compile it first: a component that cannot be loaded gets no report.
    let stage = scratch.stage().map_err(unusable_scratch)?;
    stage
        .adapter()
        .await
        .map_err(|error| ExamineError::Unloadable { path: subject.component.clone(), why: error.to_string() })?;
    let bench = Bench { scratch: &scratch, fixtures: &fixtures, package: &package };
    let abilities = bench.abilities().await.map_err(unusable_scratch)?;
    let (usage, limits) = (scratch.usage(), scratch.manifest.limits);
    Ok(Report {
        name: scratch.manifest.name.clone(),
        title: scratch.manifest.title.clone(),
        version: scratch.manifest.version.clone(),
        wit: WIT.to_owned(),
        digest: package.digest.to_string(),
        passed: !abilities.iter().any(|ability| ability.checks.iter().any(Check::is_failed)),
        abilities,
        costs: Costs {
            calls: usage.calls,
            slowest_us: usage.slowest_us,
            slowest: usage.slowest.to_owned(),
            limit_ms: limits.guest_ms,
            largest_bytes: usage.largest as u64,
            limit_mb: limits.memory_mb,
        },
    })
}

#[derive(Clone, Copy)]
struct Bench<'b> {
    scratch: &'b Scratch,
    fixtures: &'b Fixtures,
    package: &'b Package,
}

impl Bench<'_> {
    async fn abilities(&self) -> io::Result<Vec<Ability>> {
        let mut abilities = vec![
            Ability::of("identity", identity::checks(self).await?),
            Ability::of("detection", detection::checks(self).await?),
            Ability::of("list of sessions", detection::listing(self).await?),
            Ability::of("protocol", context::checks(self).await?),
            Ability::of("hooks", hooks::checks(self).await?),
            Ability::of("refused edits", hooks::refusals(self).await?),
            Ability::of("strange payloads", garbage::checks(self).await?),
            Ability::of("push", deliveries::checks(self).await?),
        ];
        abilities.extend(optional::abilities(self).await?);
        abilities.extend([
            Ability::of("install", installing::checks(self).await?),
            Ability::of("with less", denials::checks(self).await?),
            Ability::of("time and memory", identity::costs(self)),
        ]);
        Ok(abilities)
    }
}

/// Whether the guest broke or was stopped, instead of returning an error of its own.
fn is_fault(name: &str, error: &HarnessError) -> bool {
    match error {
        HarnessError::Failed(what) => what.starts_with(&format!("the adapter `{name}` failed in `")),
        // `Busy` is the pause after several faults.
        HarnessError::Busy(_) | HarnessError::NotFound(_) | HarnessError::Denied(_) | HarnessError::Unsupported(_) => {
            false
        }
    }
}

/// The default folder of fixtures: `fixtures` beside the component, if it exists.
pub fn fixtures_beside(component: &Path) -> Option<PathBuf> {
    let folder = if component.is_dir() { component } else { component.parent()? };
    let folder = folder.join("fixtures");
    folder.is_dir().then_some(folder)
}
