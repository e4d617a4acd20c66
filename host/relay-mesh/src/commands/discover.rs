//! `relay-mesh discover`: the live sessions of each harness, also those that have not joined.

use mesh::Rostered;
use mesh::ports::machine::{Instant, Machine};
use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line, table};
use crate::screen::{Column, Screen, colour_of_state};
use crate::shapes::{ago, rfc3339};

/// Show the sessions of each harness, also those that have not joined
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh discover\n  \
    relay-mesh discover codex\n  \
    relay-mesh discover --json | jq -r '.sessions[] | select(.agent == null) | .session'\n\n\
    It lists the sessions known from a hook or a call, and those that the harness itself lists.")]
pub(crate) struct Args {
    /// Only this harness
    #[arg(value_name = "HARNESS")]
    harness: Option<String>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let roster = open.mesh.roster(self.harness.as_deref()).await?;
        for (harness, error) in &roster.faults {
            context.printer.warn(&format!("the adapter `{harness}` could not list everything: {error}"));
        }
        if roster.sessions.is_empty() {
            context
                .printer
                .say("no session is known here; one appears as soon as its harness is set up and calls a hook");
        }
        let sessions = roster.sessions.into_iter().map(SessionShape::from).collect();
        context.printer.show(&SessionsShape { sessions, now: open.machine.now() })?;
        Ok(Exit::Success)
    }
}

#[derive(Debug, Serialize)]
struct SessionShape {
    harness: String,
    /// Its id in the harness: what `relay-mesh invite` takes.
    session: String,
    /// The root session, if this one is a subagent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Its working folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    folder: String,
    /// Its agent, if it has joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// `idle`, `busy` or `needs-input`; left out if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'static str>,
    /// The routes that can wake it while it is idle, in the order in which they are tried.
    wakes_by: Vec<String>,
    /// Whether a notification tells its user that mail waits.
    tells_user: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_heard: Option<String>,
    /// The same as `last_heard`, for the table.
    #[serde(skip)]
    heard: Option<Instant>,
}

impl From<Rostered> for SessionShape {
    fn from(one: Rostered) -> SessionShape {
        SessionShape {
            harness: one.session.harness,
            session: one.session.id,
            parent: one.parent,
            folder: one.workdir,
            agent: one.agent.map(|agent| agent.to_string()),
            activity: one.activity.map(mesh::sessions::Activity::as_str),
            wakes_by: one.wakes_by,
            tells_user: one.tells_user,
            last_heard: one.heard.map(rfc3339),
            heard: one.heard,
        }
    }
}

#[derive(Debug, Serialize)]
struct SessionsShape {
    /// Sorted by harness and id.
    sessions: Vec<SessionShape>,
    /// When the sessions were read, for ages in the table.
    #[serde(skip)]
    now: Instant,
}

impl Show for SessionsShape {
    fn text(&self) -> String {
        if self.sessions.is_empty() {
            return String::new();
        }
        let rows: Vec<Vec<String>> = self.sessions.iter().map(|one| row(one, self.now)).collect();
        table(&["HARNESS", "SESSION", "AGENT", "DOES", "HEARD", "WOKEN BY", "FOLDER"], &rows)
    }

    fn text_on(&self, screen: &Screen) -> String {
        const HEAD: [Column; 7] = [
            Column::cut("HARNESS", 7, 1),
            Column::cut("SESSION", 8, 0),
            Column::cut("AGENT", 8, 0),
            Column::whole("DOES", 2).painted(colour_of_state),
            Column::whole("HEARD", 4),
            Column::cut("WOKEN BY", 8, 5),
            Column::cut("FOLDER", 10, 3),
        ];
        if self.sessions.is_empty() {
            return String::new();
        }
        screen.table(&HEAD, &self.sessions.iter().map(|one| row(one, self.now)).collect::<Vec<_>>())
    }
}

fn row(one: &SessionShape, now: Instant) -> Vec<String> {
    let or_dash = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), printable_line);
    let woken_by = match (one.wakes_by.is_empty(), one.tells_user) {
        (false, _) => one.wakes_by.join(", "),
        (true, true) => "its user".to_owned(),
        (true, false) => "nothing".to_owned(),
    };
    vec![
        printable_line(&one.harness),
        printable_line(&one.session),
        or_dash(one.agent.as_deref()),
        or_dash(one.activity),
        one.heard.map_or_else(|| "-".to_owned(), |heard| ago(heard, now)),
        printable_line(&woken_by),
        or_dash(Some(one.folder.as_str()).filter(|folder| !folder.is_empty())),
    ]
}

#[cfg(test)]
mod tests {
    use mesh::sessions::{Activity, SessionRef};

    use super::*;

    fn rostered(id: &str, agent: Option<&str>, wakes_by: &[&str]) -> Rostered {
        Rostered {
            session: SessionRef { harness: "codex".to_owned(), id: id.to_owned() },
            parent: None,
            workdir: "/srv/app".to_owned(),
            agent: agent.map(|name| name.parse().expect("a name")),
            activity: agent.map(|_| Activity::Idle),
            heard: agent.map(|_| Instant(0)),
            wakes_by: wakes_by.iter().map(|name| (*name).to_owned()).collect(),
            tells_user: true,
        }
    }

    #[test]
    fn a_session_is_told_with_how_it_can_be_woken() {
        let sessions =
            vec![rostered("s1", Some("alice"), &["app-server", "queue"]).into(), rostered("s2", None, &[]).into()];
        let shape = SessionsShape { sessions, now: Instant(60_000) };
        assert_eq!(
            shape.text(),
            "HARNESS  SESSION  AGENT  DOES  HEARD      WOKEN BY           FOLDER\n\
             codex    s1       alice  idle  1 min ago  app-server, queue  /srv/app\n\
             codex    s2       -      -     -          its user           /srv/app"
        );
        let narrow = shape.text_on(&Screen { columns: 40, is_coloured: false, redraws: false });
        assert_eq!(
            narrow,
            "HARNESS  SESSION  AGENT  DOES  FOLDER\n\
             codex    s1       alice  idle  /srv/app\n\
             codex    s2       -      -     /srv/app"
        );
    }
}
