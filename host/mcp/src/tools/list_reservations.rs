//! `list_reservations`: who holds what in a repository.

use mesh::Wanted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{ReservationTwin, meant};
use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// folder of another repository
    repo: Option<String>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    reservations: Vec<ReservationTwin>,
}

/// The tool.
pub(super) struct ListReservations;

impl Tool for ListReservations {
    const NAME: &'static str = "list_reservations";
    const TITLE: &'static str = "List reservations";
    const DESCRIPTION: &'static str = "List who holds which files of this repository.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        let (checkout, _) = meant(&visit, input.repo.as_deref())?;
        let wanted = Wanted { repository: Some(checkout.repository), ..Wanted::default() };
        let found = visit.mesh.reservations(&wanted).await.map_err(mesh::ReserveError::from)?;
        let now = visit.mesh.machine().now();
        let found = found.read().map_err(mesh::ReserveError::from)?;
        let each = found.iter().flat_map(|listed| &listed.reservations);
        let reservations: Vec<ReservationTwin> = each.map(|one| ReservationTwin::of(one, now)).collect();
        let lines: Vec<String> = reservations.iter().map(ReservationTwin::text).collect();
        let text = if lines.is_empty() { "nothing is reserved".to_owned() } else { lines.join("\n") };
        Ok(Done::new(Output { reservations }, text))
    }
}
