//! Which groups of tools a server shows.

use std::fmt;
use std::str::FromStr;

/// A group of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Finding agents and exchanging messages: what every agent needs, in under 1,000 tokens.
    Core,
    /// Reserving paths of a repository.
    Reservations,
    /// Asking other agents to run commands, and running the commands that others ask for.
    Commands,
    /// Starting, following and stopping runs and reviews. A call gives a handle.
    Runs,
    /// Asking the user.
    Asks,
    /// Starting and dismissing agents.
    Spawn,
    /// Joining and leaving channels.
    Channels,
    /// Talking with Codex, as its own MCP server once did.
    Codex,
    /// Talking with an agent of any harness.
    Subagents,
    /// The mail tools by the names that other projects have for them.
    Atm,
    /// One tool for each harness that runs a task to its end. A call gives the whole result.
    Runners,
}

impl Group {
    /// The groups that may be added to the core, in the order in which they are written.
    const FURTHER: [Group; 10] = [
        Group::Reservations,
        Group::Commands,
        Group::Runs,
        Group::Runners,
        Group::Asks,
        Group::Spawn,
        Group::Channels,
        Group::Codex,
        Group::Subagents,
        Group::Atm,
    ];

    /// Its name in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Group::Core => "core",
            Group::Reservations => "reservations",
            Group::Commands => "commands",
            Group::Runs => "runs",
            Group::Runners => "runners",
            Group::Asks => "asks",
            Group::Spawn => "spawn",
            Group::Channels => "channels",
            Group::Codex => "codex",
            Group::Subagents => "subagents",
            Group::Atm => "atm",
        }
    }

    /// Its bit in a profile. The core has none: every profile shows it.
    fn bit(self) -> u16 {
        match self {
            Group::Core => 0,
            Group::Reservations => 1,
            Group::Commands => 2,
            Group::Runs => 4,
            Group::Runners => 8,
            Group::Asks => 16,
            Group::Spawn => 32,
            Group::Channels => 64,
            Group::Codex => 128,
            Group::Subagents => 256,
            Group::Atm => 512,
        }
    }
}

/// The tools that a client is shown: the core and the requested groups. A tool that is not shown cannot be called.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Profile(u16);

/// Why a list of groups is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a group of tools: core, reservations, commands, runs, runners, asks, spawn, channels, codex, \
         subagents, atm"
)]
pub struct UnknownGroup(String);

impl Profile {
    /// Every profile that a harness may be set up with. The names of other projects are for those who start a server
    /// themselves.
    pub fn all() -> impl Iterator<Item = Profile> {
        (0..Group::Atm.bit()).map(Profile)
    }

    /// The same profile with another group.
    #[must_use]
    pub fn with(self, group: Group) -> Profile {
        Profile(self.0 | group.bit())
    }

    /// Whether a group is shown.
    pub fn shows(self, group: Group) -> bool {
        self.0 & group.bit() == group.bit()
    }
}

impl fmt::Display for Profile {
    /// The names, separated by commas, as they are parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Group::Core.name())?;
        for group in Group::FURTHER.into_iter().filter(|group| self.shows(*group)) {
            write!(f, ",{}", group.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({self})")
    }
}

impl FromStr for Profile {
    type Err = UnknownGroup;

    /// From names separated by commas: `core,reservations`.
    fn from_str(text: &str) -> Result<Profile, UnknownGroup> {
        text.split(',').try_fold(Profile::default(), |profile, name| match name.trim() {
            "core" => Ok(profile.with(Group::Core)),
            // `claims` was its name before 0.1.
            "claims" => Ok(profile.with(Group::Reservations)),
            name => {
                let named = Group::FURTHER.into_iter().find(|group| group.name() == name);
                named.map(|group| profile.with(group)).ok_or_else(|| UnknownGroup(name.to_owned()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_written_as_it_is_parsed() {
        assert_eq!(Profile::all().count(), 512);
        for profile in Profile::all() {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            assert!(profile.shows(Group::Core));
        }
        let runs: Profile = "runs".parse().expect("a group");
        assert_eq!(runs.to_string(), "core,runs");
        assert!(runs.shows(Group::Runs) && !runs.shows(Group::Runners) && !runs.shows(Group::Commands));
        assert_eq!("claims".parse::<Profile>().map(|profile| profile.to_string()).as_deref(), Ok("core,reservations"));
        assert!("core,everything".parse::<Profile>().is_err());
    }
}
