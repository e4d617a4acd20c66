//! `reserve_paths`: reserve paths before editing them, or check who holds them.

use mesh::reservations::{InvalidTtl, Mode, Ttl};
use mesh::{Others, Own, Reserve, Reserved};
use schemars::JsonSchema;
use serde::Deserialize;
use view::{ReservationView, ReservedView};

use super::checkout::checkout_of;
use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

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

pub(super) struct ReservePaths;

impl Tool for ReservePaths {
    const NAME: &'static str = "reserve_paths";
    const TITLE: &'static str = "Reserve paths";
    const DESCRIPTION: &'static str = "Reserve files before you edit them, all or none. If an agent holds them, ask \
                                       the holder. Renew by the same call; release_paths when done.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = ReservedView<ReservationView>;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<ReservedView<ReservationView>>, ToolError> {
        call.agent()?;
        let (checkout, folder) = checkout_of(&call, input.repo.as_deref())?;
        let mut patterns = Vec::with_capacity(input.patterns.0.len());
        for typed in &input.patterns.0 {
            patterns.push(call.mesh.pattern(&checkout, &folder, typed)?);
        }
        let mode = if input.shared == Some(true) { Mode::Shared } else { Mode::Exclusive };
        let reserved = if input.check == Some(true) {
            let conflicts = call.mesh.check_reservation(&call.caller, &checkout.repository, &patterns, mode).await;
            Reserved::Held(conflicts.map_err(mesh::ReserveError::from)?)
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
            call.mesh.reserve(&call.caller, wanted).await?
        };
        let now = call.mesh.machine().now();
        Ok(ReservedView::of(&reserved, |one| ReservationView::of(one, now)).into())
    }
}

fn ttl(minutes: Option<u32>) -> Result<Ttl, ToolError> {
    let ttl = minutes.map_or(Ok(Ttl::default()), |minutes| Ttl::new(u64::from(minutes) * 60_000));
    ttl.map_err(|error: InvalidTtl| ToolError::new(error.to_string(), "Pass minutes between 1 and 10080."))
}
