//! Event hooks and what became of their events: `on`.

use std::path::Path;

use mesh::event_hooks::{EventHook, HookAction, HookMatch, Invocation, InvocationStage};
use mesh::ports::machine::Instant;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ago, rfc3339};
use crate::render::{Show, printable_line, table};
use crate::screen::{Column, Screen};

/// One hook.
#[derive(Debug, Serialize)]
pub(crate) struct HookShape {
    id: String,
    on: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    harness: Option<String>,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    matches: Option<String>,
    /// run, tell, post or notify.
    action: &'static str,
    /// The command, the recipient or the URL.
    #[serde(skip_serializing_if = "String::is_empty")]
    what: String,
    /// What signs the requests of a webhook: shown when it is made, and then no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl HookShape {
    pub(crate) fn of(hook: &EventHook) -> HookShape {
        let (action, what) = match &hook.action {
            HookAction::Run(command) => ("run", command.clone()),
            HookAction::Tell(to) => ("tell", to.clone()),
            HookAction::Post(url) => ("post", url.clone()),
            HookAction::Notify => ("notify", String::new()),
        };
        HookShape {
            id: hook.id.clone(),
            on: hook.on.as_str(),
            agent: hook.agent.as_ref().map(ToString::to_string),
            harness: hook.harness.clone(),
            matches: hook.matches.as_ref().map(HookMatch::as_str).map(str::to_owned),
            action,
            what,
            secret: None,
        }
    }

    /// With what signs its requests.
    pub(crate) fn with_secret(hook: &EventHook) -> HookShape {
        HookShape { secret: hook.secret.clone(), ..HookShape::of(hook) }
    }

    fn row(&self) -> Vec<String> {
        let only = [&self.agent, &self.harness, &self.matches].into_iter().flatten();
        let only: Vec<String> = only.map(|text| printable_line(text)).collect();
        let does = format!("{} {}", self.action, printable_line(&self.what));
        vec![self.id.clone(), self.on.to_owned(), only.join(" "), does.trim_end().to_owned()]
    }

    fn secret_line(&self) -> String {
        let line = |secret: &String| format!("\nsecret of {}, shown this once: {secret}", self.id);
        self.secret.as_ref().map(line).unwrap_or_default()
    }
}

const HEAD: [&str; 4] = ["ID", "EVENT", "ONLY", "DOES"];
const COLUMNS: [Column; 4] =
    [Column::whole("ID", 0), Column::whole("EVENT", 0), Column::cut("ONLY", 8, 1), Column::cut("DOES", 12, 0)];

impl Show for HookShape {
    fn text(&self) -> String {
        format!("{}{}", table(&HEAD, &[self.row()]).trim_end(), self.secret_line())
    }
}

/// The hooks, and where they are kept.
#[derive(Debug, Serialize)]
pub(crate) struct HooksShape {
    hooks: Vec<HookShape>,
    file: String,
}

impl HooksShape {
    pub(crate) fn of(hooks: &[EventHook], file: &Path) -> HooksShape {
        HooksShape { hooks: hooks.iter().map(HookShape::of).collect(), file: file.display().to_string() }
    }

    pub(crate) fn with_secrets(hooks: &[EventHook], file: &Path) -> HooksShape {
        HooksShape { hooks: hooks.iter().map(HookShape::with_secret).collect(), file: file.display().to_string() }
    }
}

impl Show for HooksShape {
    fn text(&self) -> String {
        if self.hooks.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = self.hooks.iter().map(HookShape::row).collect();
        let secrets: String = self.hooks.iter().map(HookShape::secret_line).collect();
        format!("{}{secrets}", table(&HEAD, &rows).trim_end())
    }

    fn text_on(&self, screen: &Screen) -> String {
        if self.hooks.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = self.hooks.iter().map(HookShape::row).collect();
        let secrets: String = self.hooks.iter().map(HookShape::secret_line).collect();
        format!("{}{secrets}", screen.table(&COLUMNS, &rows))
    }
}

/// What a hook did when it was tried.
#[derive(Debug, Serialize)]
pub(crate) struct TriedShape {
    pub(crate) hook: String,
    /// What came of it.
    pub(crate) told: String,
}

impl Show for TriedShape {
    fn text(&self) -> String {
        format!("{}: {}", self.hook, printable_line(&self.told))
    }
}

/// One event that a hook was for.
#[derive(Debug, Serialize)]
struct InvocationShape {
    id: String,
    hook: String,
    on: &'static str,
    /// When it happened.
    at: String,
    /// waiting, retrying, running, done, failed, unfinished or skipped.
    status: String,
    /// How often it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    tries: Option<u32>,
    /// The result, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    /// The event's fields.
    event: Map<String, Value>,
    #[serde(skip)]
    when: String,
}

impl InvocationShape {
    fn of(invocation: &Invocation, now: Instant) -> InvocationShape {
        let Invocation { id, hook, event, stage } = invocation;
        let (tries, told) = match stage {
            InvocationStage::Waiting { tries, why, .. } => (Some(*tries).filter(|tries| *tries > 0), why.clone()),
            InvocationStage::Started { .. } => (None, None),
            InvocationStage::Done { told, .. } => (None, Some(told.clone())),
            InvocationStage::Failed { tries, why, .. } => (Some(*tries), Some(why.clone())),
            InvocationStage::Unfinished { .. } => {
                (None, Some("the process that ran it was killed: perhaps it has not finished".to_owned()))
            }
            InvocationStage::Skipped { count, .. } => {
                (None, Some(format!("{count} events were passed over: the hook is for too many at once")))
            }
        };
        InvocationShape {
            id: id.clone(),
            hook: hook.clone(),
            on: event.on.as_str(),
            at: rfc3339(event.at),
            status: stage.as_str().to_owned(),
            tries,
            told,
            event: event.details.clone(),
            when: ago(event.at, now),
        }
    }
}

/// What became of the events of hooks, oldest first.
#[derive(Debug, Serialize)]
pub(crate) struct InvocationsShape {
    invocations: Vec<InvocationShape>,
}

impl InvocationsShape {
    pub(crate) fn of(all: &[Invocation], now: Instant) -> InvocationsShape {
        InvocationsShape { invocations: all.iter().map(|one| InvocationShape::of(one, now)).collect() }
    }
}

impl InvocationsShape {
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |one: &InvocationShape| {
            let status = match one.tries {
                Some(tries @ 2..) => format!("{} ({tries} tries)", one.status),
                Some(_) | None => one.status.clone(),
            };
            let told = one.told.as_deref().unwrap_or_default();
            vec![one.hook.clone(), one.on.to_owned(), one.when.clone(), status, printable_line(told)]
        };
        self.invocations.iter().map(row).collect()
    }
}

impl Show for InvocationsShape {
    fn text(&self) -> String {
        if self.invocations.is_empty() {
            return String::new();
        }
        table(&["HOOK", "EVENT", "WHEN", "STATUS", "RESULT"], &self.rows())
    }

    fn text_on(&self, screen: &Screen) -> String {
        const COLUMNS: [Column; 5] = [
            Column::whole("HOOK", 0),
            Column::whole("EVENT", 2),
            Column::whole("WHEN", 1),
            Column::whole("STATUS", 0),
            Column::cut("RESULT", 12, 0),
        ];
        if self.invocations.is_empty() { String::new() } else { screen.table(&COLUMNS, &self.rows()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_cuts_what_a_hook_does() {
        let what = "make lint && make test && make bench && make docs";
        let hook = HookShape {
            id: "abcdefgh".to_owned(),
            on: "ended",
            agent: None,
            harness: None,
            matches: None,
            action: "run",
            what: what.to_owned(),
            secret: None,
        };
        let hooks = HooksShape { hooks: vec![hook], file: String::new() };
        assert!(hooks.text().contains(what), "{}", hooks.text());
        let narrow = hooks.text_on(&Screen { columns: 40, is_coloured: false, redraws: false });
        assert!(narrow.contains('…') && narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }
}
