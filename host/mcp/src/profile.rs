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
}

/// The tools that a client is shown: the core and the requested groups. A tool that is not shown cannot be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile {
    reservations: bool,
    commands: bool,
}

/// Why a list of groups is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a group of tools: core, reservations, commands")]
pub struct UnknownGroup(String);

impl Profile {
    /// Every possible profile.
    pub fn all() -> [Profile; 4] {
        [(false, false), (true, false), (false, true), (true, true)]
            .map(|(reservations, commands)| Profile { reservations, commands })
    }

    /// The same profile with another group.
    #[must_use]
    pub fn with(self, group: Group) -> Profile {
        match group {
            Group::Core => self,
            Group::Reservations => Profile { reservations: true, ..self },
            Group::Commands => Profile { commands: true, ..self },
        }
    }

    /// Whether a group is shown.
    pub fn shows(self, group: Group) -> bool {
        match group {
            Group::Core => true,
            Group::Reservations => self.reservations,
            Group::Commands => self.commands,
        }
    }
}

impl fmt::Display for Profile {
    /// The names, separated by commas, as they are parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("core")?;
        for (group, name) in [(Group::Reservations, "reservations"), (Group::Commands, "commands")] {
            if self.shows(group) {
                write!(f, ",{name}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Profile {
    type Err = UnknownGroup;

    /// From names separated by commas: `core,reservations`.
    fn from_str(text: &str) -> Result<Profile, UnknownGroup> {
        text.split(',').try_fold(Profile::default(), |profile, name| match name.trim() {
            "core" => Ok(profile.with(Group::Core)),
            // `claims` was its name before 0.1.
            "reservations" | "claims" => Ok(profile.with(Group::Reservations)),
            "commands" => Ok(profile.with(Group::Commands)),
            other => Err(UnknownGroup(other.to_owned())),
        })
    }
}
