//! The flags of `mcp` and `serve` about threads of tools.

use std::time::Duration;

use mcp::{Group, Profile};
use mesh::tool_threads::numbered;

use super::Resume;
use crate::config::{CodexValues, ThreadValues};
use crate::duration::span;

/// Who the threads are that the tools `codex` and `ask_agent` begin, and what they go on with.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "For the tools codex and subagents")]
pub(crate) struct ThreadFlags {
    /// The name of new threads, with a number behind it if a live agent has it [$RELAY_CODEX_IDENTITY, else codex]
    #[arg(long, value_name = "NAME", value_parser = identity)]
    identity: Option<String>,
    /// A role of the settings for threads that name none [$RELAY_CODEX_ROLE]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Go on with a thread at the first call of `codex`: this one, or the last of this identity
    #[arg(long, value_name = "THREAD", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,
    /// How long a turn may take; then it is stopped, and what there is of it is the answer [$RELAY_CODEX_TIMEOUT, else 5m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    /// Also show the mail tools by the names that others have for them
    #[arg(long, value_enum)]
    aliases: Vec<Alias>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Alias {
    /// atm_send, atm_read, atm_broadcast, atm_pending_count
    Atm,
}

fn identity(text: &str) -> Result<String, String> {
    numbered(text, None).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl ThreadFlags {
    /// The settings that they make.
    pub(crate) fn values(&self) -> ThreadValues {
        let timeout = self.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let codex = CodexValues::of_flags(self.identity.clone(), self.role.clone(), timeout);
        ThreadValues { codex, ..ThreadValues::default() }
    }

    pub(crate) fn resume(&self) -> Option<Resume> {
        self.resume.as_ref().map(|thread| match thread.as_str() {
            "" => Resume::Latest,
            thread => Resume::Thread(thread.to_owned()),
        })
    }

    /// A profile with the tools that these flags add.
    pub(crate) fn profile(&self, profile: Profile) -> Profile {
        self.aliases.iter().fold(profile, |profile, Alias::Atm| profile.with(Group::Atm))
    }
}
