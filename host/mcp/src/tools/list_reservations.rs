//! `list_reservations`: the reservations in a repository.

use mesh::ReservationFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::ReservationView;

use super::checkout::checkout_of;
use super::{Effect, Tool, ToolCall, ToolOutput, is_zero};
use crate::text::lines;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// folder of another repository
    repo: Option<String>,
    /// default 30
    limit: Option<usize>,
}

/// The default limit. A reservation costs some fifty tokens.
const USUAL: usize = 30;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    reservations: Vec<ReservationView>,
    /// How many more there are, beyond the limit.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

pub(super) struct ListReservations;

impl Tool for ListReservations {
    const NAME: &'static str = "list_reservations";
    const TITLE: &'static str = "List reservations";
    const DESCRIPTION: &'static str = "List who holds which files of this repository.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let (checkout, _) = checkout_of(&call, input.repo.as_deref())?;
        let wanted = ReservationFilter { repository: Some(checkout.repository), ..ReservationFilter::default() };
        let found = call.mesh.reservations(&wanted).await.map_err(mesh::ReserveError::from)?;
        let now = call.mesh.machine().now();
        let each = found.iter().flat_map(|listed| &listed.reservations);
        let mut reservations: Vec<ReservationView> = each.map(|one| ReservationView::of(one, now)).collect();
        let limit = input.limit.unwrap_or(USUAL);
        let more = reservations.len().saturating_sub(limit);
        reservations.truncate(limit);
        let mut text = lines(&reservations, "nothing is reserved");
        if more > 0 {
            text.push_str(&format!("\n{more} more: raise limit"));
        }
        Ok(ToolOutput::new(Output { reservations, more }, text))
    }
}
