//! `release_paths`: give back what was reserved.

use mesh::Release;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::meant;
use super::{Done, Effect, List, Tool, Visit};
use crate::refusal::Refusal;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// as reserved; all, if left out
    patterns: Option<List>,
    /// folder of another repository
    repo: Option<String>,
}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Patterns that you hold no more.
    released: Vec<String>,
}

/// The tool.
pub(super) struct ReleasePaths;

impl Tool for ReleasePaths {
    const NAME: &'static str = "release_paths";
    const TITLE: &'static str = "Release paths";
    const DESCRIPTION: &'static str = "Give back what you reserved.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, input: Input) -> Result<Done<Output>, Refusal> {
        visit.agent()?;
        let (checkout, folder) = meant(&visit, input.repo.as_deref())?;
        let what = match input.patterns {
            None => Release::All,
            Some(typed) => {
                let mut patterns = Vec::with_capacity(typed.0.len());
                for typed in &typed.0 {
                    patterns.push(visit.mesh.pattern(&checkout, &folder, typed)?);
                }
                Release::These(patterns)
            }
        };
        let given = visit.mesh.release_reservations(&visit.caller, &checkout.repository, &what).await?;
        let released: Vec<String> = given.released.iter().map(|one| one.pattern.to_string()).collect();
        let text = if released.is_empty() {
            "you held nothing".to_owned()
        } else {
            format!("released {}", released.join(", "))
        };
        Ok(Done::new(Output { released }, text))
    }
}
