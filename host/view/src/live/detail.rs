//! What is said of the chosen thing: a message with its delivery, an agent, a question, whatever else is chosen.

use mesh::ports::machine::Instant;
use serde::Serialize;

use super::delivery::{Dot, time_line};
use super::rows::Tab;
use super::state::{Live, Middle, Pane};
use super::{AgentRow, Group};
use crate::{AskDetail, MessageView, RecipientView, StatusView, Timestamp, ago, counted, span, visible_line};

/// So much of a text is shown, in bytes.
pub const SHOWN: usize = 16 * 1024;

/// What a line means, for its colour. Colour never carries meaning alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading.
    Strong,
    /// What matters less.
    Faint,
    /// Done, or at work.
    Good,
    /// On its way, or waiting for work.
    Calm,
    /// It is held or paused.
    Warn,
    /// It has failed.
    Bad,
    /// It waits for the person.
    Calls,
}

impl Dot {
    /// What it means.
    pub fn tone(self) -> Tone {
        match self {
            Dot::At(StatusView::Queued) => Tone::Faint,
            Dot::At(StatusView::Stored | StatusView::Notified | StatusView::Accepted) => Tone::Calm,
            Dot::At(StatusView::Shown | StatusView::Read | StatusView::Acknowledged) => Tone::Good,
            Dot::Held => Tone::Warn,
            Dot::Undeliverable | Dot::Expired => Tone::Bad,
        }
    }
}

impl Group {
    /// What it means.
    pub fn tone(self) -> Tone {
        match self {
            Group::NeedsYou => Tone::Calls,
            Group::Busy => Tone::Good,
            Group::Idle => Tone::Calm,
            Group::Away | Group::Offline => Tone::Faint,
        }
    }
}

/// A line about the chosen thing. Its text is harmless and on one line; the caller breaks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailLine {
    /// How far it is indented.
    pub indent: usize,
    /// What it means.
    pub tone: Tone,
    /// What it says.
    pub text: String,
}

/// What is said of the chosen thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// What it is.
    pub title: String,
    /// What is said of it.
    pub lines: Vec<DetailLine>,
}

impl Detail {
    fn of(title: &str) -> Detail {
        Detail { title: visible_line(title).into_owned(), lines: Vec::new() }
    }

    fn push(&mut self, indent: usize, tone: Tone, text: &str) {
        self.lines.push(DetailLine { indent, tone, text: visible_line(text).into_owned() });
    }

    fn field(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.push(0, Tone::Plain, &format!("{name}: {text}"));
        }
    }

    fn blank(&mut self) {
        self.lines.push(DetailLine::default());
    }

    /// A text of several lines, cut where it is too long.
    fn text(&mut self, text: &str, how_to_see_all: &str) {
        let end = text.floor_char_boundary(SHOWN);
        text[..end].lines().for_each(|line| self.push(0, Tone::Plain, line));
        if end < text.len() {
            self.push(0, Tone::Faint, &format!("… {} bytes more: {how_to_see_all}", text.len() - end));
        }
    }
}

impl Live {
    /// What is said of the chosen thing.
    pub fn detail(&self) -> Detail {
        if self.about == Pane::Agents {
            return self.chosen_agent().map_or_else(|| Detail::of("Agent"), |agent| self.of_agent(agent));
        }
        match self.middle() {
            Middle::Thread(_) => match self.chosen_message() {
                Some(one) => of_message(&one.message, Some(&one.recipients), self.now()),
                None => Detail::of("Delivery"),
            },
            Middle::Found(found) => {
                let hit = found.hits.as_deref().and_then(|hits| hits.get(found.chosen.at()));
                hit.map_or_else(|| Detail::of("Message"), |hit| of_message(&hit.message, None, self.now()))
            }
            Middle::List(tab) => match self.chosen_item(tab) {
                Some(at) => self.of_item(tab, at),
                None => Detail::of(tab.title()),
            },
        }
    }

    fn of_agent(&self, agent: &AgentRow) -> Detail {
        let view = &agent.detail.agent;
        let mut detail = Detail::of(agent.name());
        let paused = if agent.detail.paused { ", paused" } else { "" };
        detail.push(0, agent.group.tone(), &format!("{}{paused}", view.presence.as_str()));
        detail.push(0, Tone::Faint, &view.evidence);
        detail.blank();
        detail.field("harness", agent.harness());
        for (name, value) in [
            ("model", &view.model),
            ("task", &view.task),
            ("role", &view.role),
            ("project", &view.project),
            ("issue", &view.issue),
            ("session", &agent.detail.session),
        ] {
            detail.field(name, value.as_deref().unwrap_or_default());
        }
        detail.field("machine", &agent.detail.machine);
        if self.is_read() {
            detail.field("unread", &view.waiting.to_string());
        }
        if let Some(Timestamp(heard)) = view.last_heard {
            detail.field("heard", &ago(heard, self.now()));
        }
        for ask in self.overview.asks.iter().filter(|ask| ask.by.agent.as_deref() == Some(agent.name())) {
            detail.blank();
            detail.push(0, Tone::Calls, &format!("asks you ({}):", ask.kind));
            detail.text(&ask.what, "Enter shows it");
        }
        detail
    }

    pub(super) fn of_item(&self, tab: Tab, at: usize) -> Detail {
        let (overview, now) = (&self.overview, self.now());
        match tab {
            Tab::Threads => {
                let thread = &self.threads[at];
                let mut detail = Detail::of(if thread.subject.is_empty() { &thread.thread } else { &thread.subject });
                detail.field("thread", &thread.thread);
                detail.field("agents", &thread.agents.join(", "));
                detail.field("messages", &thread.messages.to_string());
                let waiting = counted(thread.waiting, "message");
                detail.field("waiting", if thread.waiting > 0 { &waiting } else { "" });
                detail.field("began", &ago(thread.first.0, now));
                detail.field("last", &format!("{} from {}", ago(thread.last.0, now), thread.last_from));
                detail
            }
            Tab::Asks => of_ask(&overview.asks[at], now),
            Tab::Reservations => {
                let one = &overview.reservations[at];
                let mut detail = Detail::of(&one.reservation.pattern);
                detail.field("held by", &one.reservation.owner);
                detail.field("mode", one.reservation.mode);
                detail.field("status", one.status);
                detail.field("taken by", one.taken_by.as_deref().unwrap_or_default());
                detail.field("repository", &one.repository);
                detail.field("until", &one.reservation.expires.to_string());
                detail.field("reason", one.reservation.reason.as_deref().unwrap_or_default());
                detail
            }
            Tab::Commands => {
                let one = &overview.commands[at];
                let command = &one.command;
                let mut detail = Detail::of(&command.line());
                detail.field("from", &command.from);
                detail.field("to", &command.to);
                detail.field("status", command.status);
                detail.field("run by", one.by.as_deref().unwrap_or_default());
                detail.field("until", &one.expires.to_string());
                detail.field("waits", command.waits.as_deref().unwrap_or_default());
                detail.text(command.result.as_deref().unwrap_or_default(), "`relay-mesh cmd list --json`");
                detail
            }
            Tab::Runs => {
                let run = &overview.runs[at];
                let mut detail = Detail::of(&run.about);
                detail.field("run", &run.id);
                detail.field("harness", &run.harness);
                detail.field("state", &run.state);
                detail.field("began", &ago(run.started, now));
                let took = run.ended.map(|ended| span(ended.since(run.started))).unwrap_or_default();
                detail.field("took", &took);
                detail.field("why", run.why.as_deref().unwrap_or_default());
                detail
            }
            Tab::Stuck => {
                let one = &overview.stuck[at];
                let mut detail = Detail::of(&format!("{} → {}", one.from, one.to));
                detail.push(0, if one.state == "undeliverable" { Tone::Bad } else { Tone::Warn }, one.state);
                detail.field("messages", &one.messages.to_string());
                detail.field("why", &one.why);
                detail
            }
            Tab::Log => {
                let event = &self.log[at];
                let mut detail = Detail::of(&event.kind);
                detail.field("at", &Timestamp(event.at).to_string());
                event
                    .text
                    .split("  ")
                    .filter(|part| !part.is_empty())
                    .for_each(|part| detail.push(0, Tone::Plain, part));
                detail
            }
        }
    }
}

fn of_ask(ask: &AskDetail, now: Instant) -> Detail {
    let who = ask.by.agent.as_deref().or(ask.by.harness.as_deref()).unwrap_or("a script");
    let mut detail = Detail::of(&format!("{who} asks"));
    detail.push(0, Tone::Calls, &format!("{}, {} left", ask.kind, span(ask.until.0.since(now))));
    detail.blank();
    detail.text(&ask.what, &format!("`relay-mesh asks show {}`", ask.id));
    if let Some(reason) = &ask.reason {
        detail.blank();
        detail.field("because", reason);
    }
    detail.blank();
    for choice in &ask.choices {
        detail.push(0, Tone::Strong, &format!("{}: {}", choice.id, choice.label));
    }
    detail.push(0, Tone::Faint, &format!("answers: {}", ask.answers.join(", ")));
    detail
}

/// A message: its delivery first, which is short, then its text.
fn of_message(message: &MessageView, recipients: Option<&[RecipientView]>, now: Instant) -> Detail {
    let to = match recipients {
        Some(several) => several.iter().map(|one| one.to.as_str()).collect::<Vec<_>>().join(", "),
        None => message.to.clone(),
    };
    let mut detail = Detail::of(&format!("{} → {to}", message.from));
    detail.push(0, Tone::Faint, &format!("{}  {}", message.at, message.id));
    for recipient in recipients.unwrap_or_default() {
        let line = time_line(recipient, now);
        detail.blank();
        detail.push(0, line.dot.tone(), &format!("{} {}: {}", line.dot.glyph(), line.to, line.dot.word()));
        for step in &line.steps {
            let gap = step.gap.map(pause).unwrap_or_default();
            let by = if step.route.is_empty() { String::new() } else { format!(" by {}", step.route) };
            let tone = if step.what == "refused" { Tone::Warn } else { Tone::Plain };
            detail.push(2, tone, &format!("{} {}{by}{gap}", clock(step.at), step.what));
            if !step.evidence.is_empty() {
                detail.push(4, Tone::Faint, &step.evidence);
            }
        }
        for why in &line.waits {
            detail.push(2, Tone::Warn, why);
        }
        if let Some(since) = line.since.filter(|since| *since >= 1_000) {
            detail.push(2, Tone::Faint, &format!("nothing further for {}", span(since)));
        }
    }
    detail.blank();
    if !message.subject.is_empty() && !message.body.trim_start().starts_with(&message.subject) {
        detail.push(0, Tone::Strong, &message.subject);
    }
    detail.text(&message.body, &format!("`relay-mesh thread {}`", message.id));
    detail
}

/// The time of day in UTC, to the second.
fn clock(at: Instant) -> String {
    let seconds = at.0 / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// How long after the step before, as in `, 0.2 s later`; nothing for what was at the same moment.
fn pause(gap: u64) -> String {
    match gap {
        0..50 => String::new(),
        50..10_000 => format!(", {}.{} s later", gap / 1_000, gap % 1_000 / 100),
        _ => format!(", {} later", span(gap)),
    }
}
