//! The rows of the table: what is measured, in which unit, and its budget.

use bench::{Failure, programs};
use serde_json::{Value, json};

use crate::filling::SPEAKER;
use crate::folder::{self, AgedFolder};
use crate::long_lived;
use crate::measuring::Phase;
use crate::options::Age;
use crate::records::{AGENTS, agent};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Send,
    SendWithKey,
    Reply,
    McpReply,
    Read,
    Ack,
    McpFetch,
    McpStatus,
    McpStatusOfOldest,
    Message,
    MessageOldest,
    Log,
    Discover,
    Agents,
    Status,
    SessionStart,
    Prompt,
    Stop,
    Thread,
    Threads,
    Search,
    Doctor,
    Resident,
    Serve,
    Gc,
    GcDaily,
    GcAgain,
}

/// The unit of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Megabytes,
    Seconds,
}

/// What a row may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// At most the age's own ratio to the day.
    Age,
    /// At most this ratio to the day.
    Ratio(f64),
    /// At most this, in its unit.
    Absolute(f64),
    /// None: it is told, and not judged.
    None,
}

impl Row {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Row; 27] = [
        Row::Send,
        Row::SendWithKey,
        Row::Reply,
        Row::McpReply,
        Row::Read,
        Row::Ack,
        Row::McpFetch,
        Row::McpStatus,
        Row::McpStatusOfOldest,
        Row::Message,
        Row::MessageOldest,
        Row::Log,
        Row::Discover,
        Row::Agents,
        Row::Status,
        Row::SessionStart,
        Row::Prompt,
        Row::Stop,
        Row::Thread,
        Row::Threads,
        Row::Search,
        Row::Doctor,
        Row::Resident,
        Row::Serve,
        Row::Gc,
        Row::GcDaily,
        Row::GcAgain,
    ];

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Row::Send => "`send`",
            Row::SendWithKey => "`send` with an idempotency key",
            Row::Reply => "`send --reply-to`",
            Row::McpReply => "MCP send_message with reply_to",
            Row::Read => "`read` newest 20",
            Row::Ack => "`ack ID`",
            Row::McpFetch => "MCP fetch with 10 ids to acknowledge",
            Row::McpStatus => "MCP message_status",
            Row::McpStatusOfOldest => "MCP message_status, of the oldest",
            Row::Message => "`message ID` as the user",
            Row::MessageOldest => "`message ID` as the user, of the oldest",
            Row::Log => "`log --since 1h`",
            Row::Discover => "`discover`",
            Row::Agents => "`agents`",
            Row::Status => "`status`",
            Row::SessionStart => "hook SessionStart",
            Row::Prompt => "hook UserPromptSubmit",
            Row::Stop => "hook Stop",
            Row::Thread => "`thread` of a new message",
            Row::Threads => "`threads --since 1h`",
            Row::Search => "`search --since 1h`",
            Row::Doctor => "`doctor --store`",
            Row::Resident => "`relay-mesh mcp`, memory of its own",
            Row::Serve => "`serve` until calm, processor time",
            Row::Gc => "`gc` of what was never cleaned, all but eight days",
            Row::GcDaily => "`gc` a day later",
            Row::GcAgain => "`gc` with nothing to delete",
        }
    }

    /// Its unit.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Row::Resident => Unit::Megabytes,
            Row::Serve | Row::Gc | Row::GcDaily | Row::GcAgain => Unit::Seconds,
            _ => Unit::Milliseconds,
        }
    }

    /// What it may have in a phase.
    pub(crate) fn budget(self, phase: Phase) -> Budget {
        match self {
            // The start of a server cleans up first, and what was never cleaned takes as long as `gc` does.
            Row::Serve if phase == Phase::Collecting => Budget::None,
            Row::Resident => Budget::Ratio(1.3),
            Row::Serve => Budget::Absolute(0.3),
            // It is asked to look at every segment, so it takes as long as there is much to look at.
            Row::Doctor => Budget::Absolute(1_000.0),
            // It deletes hundreds of thousands of files: no program does that in a second.
            Row::Gc => Budget::None,
            Row::GcDaily | Row::GcAgain => Budget::Absolute(1.0),
            _ => Budget::Age,
        }
    }

    /// How often it is measured, given how often a quick row is.
    pub(crate) fn runs(self, phase: Phase, quick: usize) -> usize {
        match self {
            _ if phase == Phase::Collecting => 1,
            Row::Doctor | Row::Resident | Row::Serve => quick.min(3),
            _ => quick,
        }
    }

    /// Whether it is measured in a phase.
    pub(crate) fn belongs_to(self, phase: Phase) -> bool {
        match self {
            Row::Gc | Row::GcDaily | Row::GcAgain => phase == Phase::Collecting,
            // It may collect when it starts, so it changes the folder as `gc` does: once as the folder is, and after it.
            Row::Serve => phase != Phase::Before,
            // `gc` may have deleted what these ask about.
            Row::McpStatusOfOldest | Row::MessageOldest => phase == Phase::Before,
            _ => phase != Phase::Collecting,
        }
    }

    /// Measures it once, in its unit. `turn` differs from run to run of one folder.
    pub(crate) fn measure(self, folder: &AgedFolder, turn: usize) -> Result<f64, Failure> {
        let samples = &folder.samples;
        let (shell, speaker) = (agent(0), agent(SPEAKER));
        // Nobody gets so many that the loop guard steps in.
        let other = agent(2 + turn % (AGENTS - 2));
        let body = format!("The build is green again, as of run {turn}.");
        let user = |arguments: &[&str]| timed(folder, arguments);
        match self {
            Row::Send => user(&["send", &other, &body, "--from", &shell]),
            Row::SendWithKey => {
                let key = format!("bench-{}", folder::now());
                user(&["send", &other, &body, "--from", &shell, "--idempotency-key", &key])
            }
            Row::Reply => user(&["send", &other, &body, "--from", &shell, "--reply-to", &samples.read_by_shell.one()?]),
            Row::McpReply => {
                let reply = json!({ "to": [other], "body": body, "reply_to": samples.read_by_session.one()? });
                long_lived::tool(folder, "send_message", &reply)
            }
            Row::Read => user(&["read", "--agent", &speaker, "--last", "20"]),
            Row::Ack => user(&["ack", &samples.read_by_shell.one()?, "--agent", &shell]),
            Row::McpFetch => {
                let ids = json!({ "acknowledge_ids": samples.read_by_session.take(10)? });
                long_lived::tool(folder, "fetch_messages", &ids)
            }
            Row::McpStatus => {
                long_lived::tool(folder, "message_status", &json!({ "id": samples.sent_by_session.one()? }))
            }
            Row::McpStatusOfOldest => {
                long_lived::tool(folder, "message_status", &json!({ "id": samples.oldest_by_session.one()? }))
            }
            Row::Message => user(&["message", &samples.newest.one()?]),
            Row::MessageOldest => user(&["message", &samples.oldest.one()?]),
            Row::Log => user(&["log", "--since", "1h"]),
            Row::Discover => user(&["discover"]),
            Row::Agents => user(&["agents"]),
            Row::Status => user(&["status"]),
            Row::SessionStart => session_start(folder),
            Row::Prompt => {
                let prompt = json!({ "prompt": "Go on." });
                hook(folder, &folder.speaker_session(), "UserPromptSubmit", prompt)
            }
            // Else its session would seem to work, and `agents` and `status` would ask its harness for ever after.
            Row::Stop => hook(folder, &folder.speaker_session(), "Stop", json!({ "stop_hook_active": false })),
            Row::Thread => user(&["thread", &samples.newest.one()?]),
            Row::Threads => user(&["threads", "--since", "1h"]),
            Row::Search => user(&["search", "--since", "1h", "refactoring"]),
            Row::Doctor => user(&["doctor", "--store"]),
            Row::Resident => long_lived::resident_after_use(folder),
            Row::Serve => long_lived::serve_until_calm(folder),
            Row::Gc => collect(&mut folder.relay_keeping_eight_days(&["gc"])?),
            Row::GcDaily | Row::GcAgain => collect(&mut folder.relay(&["gc"])),
        }
    }
}

/// A session that has not been there before.
fn session_start(folder: &AgedFolder) -> Result<f64, Failure> {
    let session = format!("ffffffff-4c2f-4a8e-9d0e-{:012x}", folder::now());
    hook(folder, &session, "SessionStart", json!({ "source": "startup" }))
}

fn hook(folder: &AgedFolder, session: &str, event: &str, mut payload: Value) -> Result<f64, Failure> {
    payload["session_id"] = session.into();
    payload["cwd"] = folder.project().display().to_string().into();
    payload["hook_event_name"] = event.into();
    let mut hook = folder.relay_in(session, &["hook", "claude-code", event]);
    Ok(programs::time(&mut hook, Some(&payload.to_string()))?.as_secs_f64() * 1e3)
}

fn collect(gc: &mut std::process::Command) -> Result<f64, Failure> {
    Ok(programs::time(gc, None)?.as_secs_f64())
}

fn timed(folder: &AgedFolder, arguments: &[&str]) -> Result<f64, Failure> {
    Ok(programs::time(&mut folder.relay(arguments), None)?.as_secs_f64() * 1e3)
}

/// A number in a row's unit, as the table says it.
pub(crate) fn spoken(value: f64, unit: Unit) -> String {
    let unit = match unit {
        Unit::Milliseconds => "ms",
        Unit::Megabytes => "MB",
        Unit::Seconds => "s",
    };
    match value {
        failed if failed.is_infinite() => "failed".to_owned(),
        small if small < 1.0 => format!("{small:.2} {unit}"),
        middle if middle < 100.0 => format!("{middle:.1} {unit}"),
        large => format!("{large:.0} {unit}"),
    }
}

/// Whether a row is over its budget at an age. One that failed is.
pub(crate) fn is_over(budget: Budget, age: Age, value: f64, day: f64) -> bool {
    match budget {
        _ if value.is_infinite() => true,
        Budget::Age => value > day * age.allowance(),
        Budget::Ratio(ratio) => value > day * ratio,
        Budget::Absolute(most) => value > most,
        Budget::None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_years_may_cost_more_than_a_year() {
        assert!(is_over(Budget::Age, Age::Year, 1.6, 1.0) && !is_over(Budget::Age, Age::Decade, 1.6, 1.0));
        assert!(
            is_over(Budget::Ratio(1.3), Age::Decade, 1.4, 1.0) && !is_over(Budget::Absolute(0.3), Age::Year, 0.3, 0.1)
        );
    }

    #[test]
    fn numbers_are_as_exact_as_they_mean() {
        assert_eq!(spoken(0.123, Unit::Seconds), "0.12 s");
        assert_eq!(
            (spoken(7.94, Unit::Milliseconds), spoken(668.2, Unit::Megabytes)),
            ("7.9 ms".into(), "668 MB".into())
        );
    }
}
