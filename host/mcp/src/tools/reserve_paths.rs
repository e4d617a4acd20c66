//! `reserve_paths`: claim paths before editing them, or look who has.

use mesh::reservation::{InvalidTtl, Mode, Ttl};
use mesh::{Others, Own, Reserve, Reserved, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{ConflictTwin, ReservationTwin, meant};
use super::{Done, Effect, List, Tool, Visit};
use crate::refusal::Refusal;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// as src/parser/**, *.{rs,toml}
    patterns: List,
    /// others may share it
    shared: Option<bool>,
    /// default 60
    minutes: Option<u32>,
    reason: Option<String>,
    /// only look
    check: Option<bool>,
    /// take it from its holder
    force: Option<bool>,
    /// folder of another repository
    repo: Option<String>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// reserved, free or held
    outcome: &'static str,
    reservations: Vec<ReservationTwin>,
    conflicts: Vec<ConflictTwin>,
}

/// The tool.
pub(super) struct ReservePaths;

impl Tool for ReservePaths {
    const NAME: &'static str = "reserve_paths";
    const TITLE: &'static str = "Reserve paths";
    const DESCRIPTION: &'static str = "Reserve files before you edit them, all or none. If somebody holds them, ask \
                                       the holder. Renew by the same call; release_paths when done.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        visit.agent()?;
        let (checkout, folder) = meant(&visit, input.repo.as_deref())?;
        let mut patterns = Vec::with_capacity(input.patterns.0.len());
        for typed in &input.patterns.0 {
            patterns.push(visit.mesh.pattern(&checkout, &folder, typed)?);
        }
        let mode = if input.shared == Some(true) { Mode::Shared } else { Mode::Exclusive };
        let reserved = if input.check == Some(true) {
            let conflicts = visit.mesh.check_reservation(&visit.caller, &checkout.repository, &patterns, mode).await;
            let conflicts = conflicts.map_err(mesh::ReserveError::from)?;
            Reserved::Held(conflicts)
        } else {
            let wanted = Reserve {
                repository: checkout.repository,
                patterns,
                mode,
                ttl: ttl(input.minutes)?,
                reason: input.reason,
                others: if input.force == Some(true) { Others::Take } else { Others::Respect },
                own: Own::Keep,
            };
            visit.mesh.reserve(&visit.caller, wanted).await?
        };
        let now = visit.mesh.machine().now();
        let output = match reserved {
            Reserved::Granted { granted, .. } => Output {
                outcome: "reserved",
                reservations: granted.iter().map(|one| ReservationTwin::of(&Written::of(one), now)).collect(),
                conflicts: Vec::new(),
            },
            Reserved::Held(conflicts) => Output {
                outcome: if conflicts.is_empty() { "free" } else { "held" },
                reservations: Vec::new(),
                conflicts: conflicts.iter().map(|one| ConflictTwin::of(one, now)).collect(),
            },
        };
        let mut lines = vec![output.outcome.to_owned()];
        lines.extend(output.reservations.iter().map(ReservationTwin::text));
        lines.extend(output.conflicts.iter().map(ConflictTwin::text));
        Ok(Done::new(output, lines.join("\n")))
    }
}

fn ttl(minutes: Option<u32>) -> Result<Ttl, Refusal> {
    let ttl = minutes.map_or(Ok(Ttl::default()), |minutes| Ttl::new(u64::from(minutes) * 60_000));
    ttl.map_err(|error: InvalidTtl| Refusal::new(error.to_string(), "Pass minutes between 1 and 10080."))
}
