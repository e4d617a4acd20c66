//! What makes a driven agent a thread of a tool.

use serde::{Deserialize, Serialize};

use super::context::ThreadPlace;
use crate::driven::DrivenRecord;
use crate::ports::driver::TurnEnd;
use crate::ports::machine::{Instant, Life, Process};

/// The answers that a live thread keeps until those who wait for them have read them.
pub const MOST_ANSWERS: usize = 4;
/// How long a server in another PID namespace may be silent before it is taken for ended, in milliseconds.
const SILENCE: u64 = 180_000;

/// The part of a driven agent's record that a thread of a tool has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolThread {
    /// The name that was asked for; the agent's own may have a number behind it.
    pub identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Where it works, as of its last call.
    pub place: ThreadPlace,
    /// What its caller calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The role of the settings that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The caller's own instructions for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// When the thread began: before this agent did, if it goes on with an earlier one's.
    pub began: Instant,
    /// The thread that this agent goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// What was said of the thread before, for a session that takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The server by which its caller talks with it. It ends with that.
    pub server: Process,
    /// When that server last said that it lives.
    pub beat: Instant,
    /// When its last turn began or ended.
    pub last_active: Instant,
    /// What its last turns came to.
    #[serde(default)]
    pub answers: Vec<TurnAnswer>,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnAnswer {
    /// The prompt that began it.
    pub prompt: String,
    /// How it ended.
    pub end: TurnEnd,
    /// The agent's last whole message in it.
    pub text: Option<String>,
}

impl ToolThread {
    /// Whether its server has ended. One in another PID namespace is judged by what it says alone.
    pub fn is_forsaken(&self, life: impl FnOnce(Process) -> Life, now: Instant) -> bool {
        match life(self.server) {
            Life::Runs => false,
            Life::Ended => true,
            Life::Unknown => now.since(self.beat) > SILENCE,
        }
    }

    /// What a prompt's turn came to.
    pub fn answer(&self, prompt: &str) -> Option<&TurnAnswer> {
        self.answers.iter().find(|answer| answer.prompt == prompt)
    }
}

impl DrivenRecord {
    /// Notes what a turn came to, for the tool whose prompts began it or joined it.
    pub fn answered(&mut self, prompts: &[String], end: &TurnEnd, text: Option<&str>, now: Instant) {
        let Some(tool) = &mut self.tool else { return };
        tool.last_active = now;
        for prompt in prompts {
            tool.answers.push(TurnAnswer { prompt: prompt.clone(), end: end.clone(), text: text.map(str::to_owned) });
        }
        let surplus = tool.answers.len().saturating_sub(MOST_ANSWERS);
        tool.answers.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_a_thread_is_forsaken_once_its_server_has_ended_and_by_silence_where_that_cannot_be_seen() {
        let server = Process { pid: 7, start: 1, space: None };
        let thread = ToolThread {
            identity: "codex".to_owned(),
            team: None,
            place: ThreadPlace::default(),
            tag: None,
            role: None,
            instructions: None,
            began: Instant(0),
            continues: None,
            summary: None,
            server,
            beat: Instant(1_000),
            last_active: Instant(0),
            answers: Vec::new(),
        };
        let check = |life: Life, now: u64, expected: bool| {
            assert_eq!(thread.is_forsaken(|_| life, Instant(now)), expected, "{life:?} {now}");
        };
        check(Life::Runs, 10_000_000, false);
        check(Life::Ended, 1_000, true);
        check(Life::Unknown, 1_000 + SILENCE, false);
        check(Life::Unknown, 1_001 + SILENCE, true);
    }
}
