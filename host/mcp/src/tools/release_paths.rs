//! `release_paths`: releases reservations.

use mesh::Release;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkout::checkout_of;
use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// as reserved; all, if left out
    patterns: Option<List>,
    /// folder of another repository
    repo: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Patterns that you hold no more.
    released: Vec<String>,
}

pub(super) struct ReleasePaths;

impl Tool for ReleasePaths {
    const NAME: &'static str = "release_paths";
    const TITLE: &'static str = "Release paths";
    const DESCRIPTION: &'static str = "Give back what you reserved.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let (checkout, folder) = checkout_of(&call, input.repo.as_deref())?;
        let what = match input.patterns {
            None => Release::All,
            Some(typed) => {
                let mut patterns = Vec::with_capacity(typed.0.len());
                for typed in &typed.0 {
                    patterns.push(call.mesh.pattern(&checkout, &folder, typed)?);
                }
                Release::These(patterns)
            }
        };
        let given = call.mesh.release_reservations(&call.caller, &checkout.repository, &what).await?;
        let released: Vec<String> = given.released.iter().map(|one| one.pattern.to_string()).collect();
        let text = if released.is_empty() {
            "you held nothing".to_owned()
        } else {
            format!("released {}", released.join(", "))
        };
        Ok(ToolOutput::new(Output { released }, text))
    }
}
