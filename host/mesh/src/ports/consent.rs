//! Consents: which agents may run commands in the sessions of this machine. The binary stores them; no message
//! that arrives by the mesh can change them.

use crate::commands::{Command, CommandName};
use crate::names::AgentName;

/// One permission that the user gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Consent {
    /// The agent whose commands are allowed.
    pub from: AgentName,
    /// The allowed command; every command if none is named.
    pub command: Option<CommandName>,
    /// The agent in whose session it may run; any agent's if none is named.
    pub to: Option<AgentName>,
}

/// What the user has allowed. Looked up anew each time, because the user may withdraw it at any time.
pub trait Consents: Send + Sync + 'static {
    /// Every consent. An error is a sentence for the user, and allows nothing.
    fn given(&self) -> Result<Vec<Consent>, String>;
}

/// A user who has allowed nothing.
pub(crate) struct Nobody;

impl Consents for Nobody {
    fn given(&self) -> Result<Vec<Consent>, String> {
        Ok(Vec::new())
    }
}

impl Consent {
    /// Whether it allows this command. The anonymous command line is never allowed, whatever the file says.
    pub fn covers(&self, command: &Command) -> bool {
        !command.from.is_shell()
            && self.from == command.from
            && self.command.as_ref().is_none_or(|name| *name == command.command)
            && self.to.as_ref().is_none_or(|to| *to == command.to)
    }
}

/// Why a command is not allowed to run; none if the user has allowed it.
pub(crate) fn why_not_allowed(command: &Command, given: &Result<Vec<Consent>, String>) -> Option<String> {
    let Command { from, to, command: name, .. } = command;
    if from.is_shell() {
        return Some(
            "it comes from `shell`, an anonymous command line, which cannot be allowed: register a name for your \
             terminal (`relay-mesh register NAME`), allow that name, and ask with `--from NAME`"
                .to_owned(),
        );
    }
    match given {
        Ok(given) if given.iter().any(|consent| consent.covers(command)) => None,
        Ok(_) => Some(format!(
            "the user of `{to}` has not allowed it: they can run `relay-mesh cmd allow {from} {name} --to {to}` in a \
             terminal"
        )),
        Err(why) => Some(format!("the user's consents cannot be read: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::CommandStage;
    use crate::ports::machine::Instant;

    fn command(line: &str) -> Command {
        let words: Vec<&str> = line.split(' ').collect();
        Command {
            id: "01JD8Z3K5V0000000000000000".parse().expect("an id"),
            from: words[0].parse().unwrap_or_else(|_| AgentName::shell()),
            to: words[2].parse().expect("a name"),
            command: words[1].parse().expect("a command"),
            arguments: Vec::new(),
            trace: None,
            created: Instant(0),
            expires: Instant(1),
            stage: CommandStage::Pending { waits: None },
        }
    }

    fn check(asked: &str, allowed: &[&str], expected: &str) {
        let consent = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let any = |word: &str| (word != "*").then(|| word.to_owned());
            Consent {
                from: words[0].parse().expect("a name"),
                command: any(words[1]).map(|name| name.parse().expect("a command")),
                to: any(words[2]).map(|name| name.parse().expect("a name")),
            }
        };
        let given = Ok(allowed.iter().map(consent).collect());
        let why = why_not_allowed(&command(asked), &given).unwrap_or_else(|| "allowed".to_owned());
        assert!(why.contains(expected), "{asked} with {allowed:?}: {why}");
    }

    #[test]
    fn what_the_person_allowed_is_allowed_and_nothing_else() {
        check("alice /review bob", &[], "`relay-mesh cmd allow alice /review --to bob`");
        check("alice /review bob", &["alice * *"], "allowed");
        check("alice /review bob", &["alice /review *"], "allowed");
        check("alice /review bob", &["alice /review bob"], "allowed");
        check("alice /review bob", &["carol * *", "alice /review bob"], "allowed");
        check("alice /deploy bob", &["alice /review *"], "has not allowed it");
        check("alice /review carol", &["alice /review bob"], "has not allowed it");
        check("alice2 /review bob", &["alice * *"], "has not allowed it");
        check("alice /reviews bob", &["alice /review *"], "has not allowed it");
    }

    #[test]
    fn the_anonymous_command_line_is_nobody_who_could_be_allowed() {
        let asked = Command { from: AgentName::shell(), ..command("alice /review bob") };
        let consent = Consent { from: AgentName::shell(), command: None, to: None };
        let why = why_not_allowed(&asked, &Ok(vec![consent]));
        assert!(why.is_some_and(|why| why.contains("register a name")));
    }

    #[test]
    fn a_list_that_cannot_be_read_allows_nothing() {
        let why = why_not_allowed(&command("alice /review bob"), &Err("line 3 is no name".to_owned()));
        assert_eq!(why.as_deref(), Some("the user's consents cannot be read: line 3 is no name"));
    }
}
