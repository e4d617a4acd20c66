//! The conformance kit: whether a component is a good adapter. It is run in the real sandbox, in a
//! scratch folder that stands in for home, project and machine, against what was recorded of its
//! harness and against what no harness would send. `relay-mesh plugin test` prints the report.
//!
//! One file per ability; each gives the checks that it made. A check that does not hold says what was
//! expected, what came instead, and what the author can do.

mod commanding;
mod context;
mod denials;
mod desk;
mod detection;
mod far_end;
mod fixtures;
mod garbage;
mod hooks;
mod identity;
mod installing;
mod pushing;
mod report;
mod scratch;
mod setups;

use std::io;
use std::path::{Path, PathBuf};

use mesh::harness::HarnessError;

use crate::manifest::WIT;
use crate::parcel::{Parcel, ParcelError};
use fixtures::Fixtures;
use scratch::Scratch;

pub use fixtures::FixturesError;
pub use report::{Ability, Check, Costs, Outcome, Report, Verdict};

/// What is tested, and with what.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The component. Its manifest lies beside it or inside.
    pub component: PathBuf,
    /// The folder of recordings, where there is one.
    pub fixtures: Option<PathBuf>,
    /// An empty folder of this run's own.
    pub scratch: PathBuf,
}

/// Why a component could not be tested at all.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// It is no adapter.
    #[error("`{path}` is not an adapter")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ParcelError,
    },
    /// It cannot be loaded.
    #[error("`{path}` cannot be loaded: {why}")]
    Unloadable {
        /// The file.
        path: PathBuf,
        /// Why, in one sentence.
        why: String,
    },
    /// The recordings cannot be used.
    #[error(transparent)]
    Fixtures(#[from] FixturesError),
    /// The scratch folder cannot be used.
    #[error("the scratch folder `{path}` cannot be used")]
    Scratch {
        /// The folder.
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
}

/// Tests a component. Whatever is wrong with it stands in the report; an error is for what kept the kit
/// from looking.
pub async fn examine(subject: &Subject) -> Result<Report, ExamineError> {
    let parcel = Parcel::open(&subject.component)
        .map_err(|source| ExamineError::Unusable { path: subject.component.clone(), source })?;
    let fixtures = match &subject.fixtures {
        Some(folder) => Fixtures::read(folder)?,
        None => Fixtures::default(),
    };
    let unusable_scratch = |source| ExamineError::Scratch { path: subject.scratch.clone(), source };
    let scratch = Scratch::new(&subject.scratch, &parcel).map_err(unusable_scratch)?;
    // Compiling says whether it can be loaded at all; there is nothing to report of one that cannot.
    let stage = scratch.stage().map_err(unusable_scratch)?;
    stage
        .adapter()
        .await
        .map_err(|error| ExamineError::Unloadable { path: subject.component.clone(), why: error.to_string() })?;
    let bench = Bench { scratch: &scratch, fixtures: &fixtures, component: &parcel.bytes };
    let abilities = bench.abilities().await.map_err(unusable_scratch)?;
    let (usage, limits) = (scratch.usage(), scratch.manifest.limits);
    Ok(Report {
        name: scratch.manifest.name.clone(),
        title: scratch.manifest.title.clone(),
        version: scratch.manifest.version.clone(),
        wit: WIT.to_owned(),
        digest: parcel.digest.to_string(),
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

/// What every check works with.
#[derive(Clone, Copy)]
struct Bench<'b> {
    scratch: &'b Scratch,
    fixtures: &'b Fixtures,
    component: &'b [u8],
}

impl Bench<'_> {
    async fn abilities(&self) -> io::Result<Vec<Ability>> {
        Ok(vec![
            Ability::of("identity", identity::checks(self).await?),
            Ability::of("detection", detection::checks(self).await?),
            Ability::of("list of sessions", detection::listing(self).await?),
            Ability::of("protocol", context::checks(self).await?),
            Ability::of("hooks", hooks::checks(self).await?),
            Ability::of("refused edits", hooks::refusals(self).await?),
            Ability::of("strange payloads", garbage::checks(self).await?),
            Ability::of("push", pushing::checks(self).await?),
            Ability::of("commands", commanding::checks(self).await?),
            Ability::of("install", installing::checks(self).await?),
            Ability::of("with less", denials::checks(self).await?),
            Ability::of("time and memory", identity::costs(self)),
        ])
    }
}

/// Whether the guest was stopped or broke, instead of answering that it cannot.
fn is_fault(name: &str, error: &HarnessError) -> bool {
    match error {
        HarnessError::Failed(what) => what.starts_with(&format!("the adapter `{name}` failed in `")),
        // The pause that follows on several faults.
        HarnessError::Busy(_) | HarnessError::NotFound(_) | HarnessError::Denied(_) | HarnessError::Unsupported(_) => {
            false
        }
    }
}

/// Where a component's fixtures are looked for when nobody says: the folder `fixtures` beside it.
pub fn fixtures_beside(component: &Path) -> Option<PathBuf> {
    let folder = if component.is_dir() { component } else { component.parent()? };
    let folder = folder.join("fixtures");
    folder.is_dir().then_some(folder)
}
