//! An agent as it is asked for, before there is one.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::record::DrivenId;
use crate::names::AgentName;
use crate::ports::runner::Reach;
use crate::tool_threads::WantedThread;

/// An agent that is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedAgent {
    /// The harness, also by its short name.
    pub harness: String,
    /// The user's own command line that is started, if the harness is any program that speaks its protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Names of variables that this program gets, beside those that every program gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Its name; the first that is free of its harness's if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
    /// Its first prompt; empty if it only waits for mail.
    pub text: String,
    /// The folder to work in: absolute, without symlinks.
    pub folder: PathBuf,
    /// In a new git worktree of it.
    #[serde(default)]
    pub worktree: bool,
    /// What it may change.
    pub reach: Reach,
    /// What it asks for beyond that is refused, instead of put to the user.
    #[serde(default)]
    pub never_ask: bool,
    /// The model, in the harness's own spelling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is there for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The most turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// How long it lives, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lives: Option<u64>,
    /// What it has as a thread of a tool, if it is to be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<WantedThread>>,
    /// The agent that wants it; none if the user does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentName>,
    /// The driven agent that wants it, or in whose shell it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<DrivenId>,
}

impl fmt::Display for WantedAgent {
    /// As the user is asked about it. Nothing of it is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WantedAgent { harness, name, text, folder, worktree, reach, model, role, turns, tokens, lives, .. } = self;
        let never_ask = if self.never_ask { ", and never asks" } else { "" };
        write!(f, "start an agent of {harness}")?;
        if !self.command.is_empty() {
            write!(f, " (`{}`)", self.command.join(" "))?;
        }
        if let Some(name) = name {
            write!(f, " named {name}")?;
        }
        let place = if *worktree { "a worktree of " } else { "" };
        write!(f, " with the reach `{}` in {place}{}{never_ask}", reach.as_str(), folder.display())?;
        let minutes = lives.map(|lives| lives.div_ceil(60_000));
        let bounds = [
            model.as_ref().map(|model| format!("model {model}")),
            turns.map(|turns| format!("at most {turns} turns")),
            tokens.map(|tokens| format!("at most {tokens} tokens")),
            minutes.map(|minutes| format!("for {minutes} min")),
        ];
        for bound in bounds.into_iter().flatten() {
            write!(f, ", {bound}")?;
        }
        if let Some(role) = role {
            write!(f, "\nrole: {role}")?;
        }
        if let Some(thread) = &self.thread {
            thread.fmt(f)?;
        }
        match text.trim() {
            "" => f.write_str("\nit waits for mail"),
            text => write!(f, "\ntask: {text}"),
        }
    }
}
