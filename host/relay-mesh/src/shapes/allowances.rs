//! What is printed of the user's permissions to start runs and agents.

use std::path::Path;

use mesh::allowances::{Allowance, Starts};
use serde::Serialize;

use crate::render::{Show, printable_line};

/// One permission.
#[derive(Debug, Serialize)]
pub(crate) struct AllowanceShape {
    agent: String,
    harness: String,
    reach: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<String>,
    #[serde(skip)]
    starts: Starts,
}

impl AllowanceShape {
    pub(crate) fn of(starts: Starts, allowance: &Allowance) -> AllowanceShape {
        AllowanceShape {
            agent: allowance.agent.to_string(),
            harness: allowance.harness.clone(),
            reach: allowance.reach.as_str(),
            budget: allowance.budget.map(|budget| budget.to_string()),
            starts,
        }
    }
}

impl Show for AllowanceShape {
    fn text(&self) -> String {
        let budget = self.budget.as_ref().map_or_else(String::new, |budget| format!(", {budget}"));
        let what = self.starts.of(&printable_line(&self.harness));
        format!("{} may start {what} with the reach {}{budget}", self.agent, self.reach)
    }
}

/// Permissions, and where they are kept.
#[derive(Debug, Serialize)]
pub(crate) struct AllowancesShape {
    allowed: Vec<AllowanceShape>,
    file: String,
}

impl AllowancesShape {
    pub(crate) fn of(starts: Starts, allowed: &[Allowance], file: &Path) -> AllowancesShape {
        let allowed = allowed.iter().map(|allowance| AllowanceShape::of(starts, allowance)).collect();
        AllowancesShape { allowed, file: file.display().to_string() }
    }
}

impl Show for AllowancesShape {
    fn text(&self) -> String {
        self.allowed.iter().map(AllowanceShape::text).collect::<Vec<_>>().join("\n")
    }
}

/// Permissions that were taken back, and the file that kept them.
#[derive(Debug, Serialize)]
pub(crate) struct DisallowancesShape {
    disallowed: Vec<AllowanceShape>,
    file: String,
}

impl DisallowancesShape {
    pub(crate) fn of(starts: Starts, gone: &[Allowance], file: &Path) -> DisallowancesShape {
        let disallowed = gone.iter().map(|allowance| AllowanceShape::of(starts, allowance)).collect();
        DisallowancesShape { disallowed, file: file.display().to_string() }
    }
}

impl Show for DisallowancesShape {
    fn text(&self) -> String {
        let one = |gone: &AllowanceShape| {
            format!("{} may no longer start {}", gone.agent, gone.starts.of(&printable_line(&gone.harness)))
        };
        self.disallowed.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}
