//! Whose callers an adapter may take for its own. A harness's client names and variables belong to it: a manifest that
//! names those of another adapter, any client, or a variable that is not named after its harness, needs a grant for
//! that, and is certain of none of these callers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mesh::sessions::Caller;

use crate::manifest::{Manifest, Matches};
use crate::sources::{BUILT_IN, BuiltIn, Candidate, Source};

/// How long a caller waits until an adapter that is not built in has said whose call it is.
pub(crate) const DEADLINE: Duration = Duration::from_millis(250);
/// The client name that stands for all.
const ANY: &str = "*";
/// Variables that nearly every process has, whatever an adapter is called.
const EVERYONES: [&str; 14] = [
    "EDITOR", "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LOGNAME", "MAIL", "PATH", "PWD", "SHELL", "SHLVL", "TERM",
    "TMPDIR", "USER",
];
/// How the names of variables begin that belong to the system and to what everybody uses.
const EVERYONES_PREFIXES: [&str; 8] = ["DBUS_", "GIT_", "LC_", "RELAY_", "SSH_", "SYSTEMD_", "TERM_", "XDG_"];

/// Whose a client name or a variable is that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The built-in adapter of this name.
    BuiltIn(String),
    /// Another installed adapter, of this name.
    Installed(String),
    /// Every client's, or a variable that is not named after the adapter.
    NotShown,
}

/// The client names and variables in a manifest that are not its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignMatches {
    /// Client names, each with its owner.
    pub clients: BTreeMap<String, Owner>,
    /// Variables, each with its owner.
    pub variables: BTreeMap<String, Owner>,
}

impl ForeignMatches {
    /// What the manifest alone tells, with the adapters that are part of the program.
    pub(crate) fn of(name: &str, matches: &Matches) -> ForeignMatches {
        let client = |client: &String| {
            let owner = match built_in(|one| one.clients, client) {
                Some(owner) => (owner != name).then(|| Owner::BuiltIn(owner.to_owned())),
                None => (client == ANY).then_some(Owner::NotShown),
            };
            Some((client.clone(), owner?))
        };
        let variable = |variable: &String| {
            let owner = match built_in(|one| one.environment, variable) {
                Some(owner) => (owner != name).then(|| Owner::BuiltIn(owner.to_owned())),
                None => (!is_named_after(variable, name)).then_some(Owner::NotShown),
            };
            Some((variable.clone(), owner?))
        };
        ForeignMatches {
            clients: matches.clients.iter().filter_map(client).collect(),
            variables: matches.environment.iter().filter_map(variable).collect(),
        }
    }

    /// Adds what belongs to another installed adapter.
    pub(crate) fn add_those_of(&mut self, own: &Matches, other: &Manifest) {
        let foreign = |own: &[String], theirs: &[String], foreign: &mut BTreeMap<String, Owner>| {
            for entry in own.iter().filter(|entry| theirs.contains(entry)) {
                foreign.entry(entry.clone()).or_insert_with(|| Owner::Installed(other.name.clone()));
            }
        };
        foreign(&own.clients, &other.matches.clients, &mut self.clients);
        foreign(&own.environment, &other.matches.environment, &mut self.variables);
    }

    /// The grants for them, in plain words.
    pub(crate) fn words(&self) -> Vec<(String, String)> {
        let clients = self.clients.iter().map(|(client, owner)| {
            let whose = match client.as_str() {
                ANY => "every MCP client's calls".to_owned(),
                client => format!("the calls of the MCP client `{client}`"),
            };
            (client_grant(client), format!("take {whose} for those of its own sessions{owner}"))
        });
        let variables = self.variables.iter().map(|(name, owner)| {
            let what = format!("take every process that has the variable {name} for one of its own sessions{owner}");
            (variable_grant(name), what)
        });
        clients.chain(variables).collect()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::BuiltIn(name) => write!(f, ", though it belongs to the built-in adapter `{name}`"),
            Owner::Installed(name) => write!(f, ", though it belongs to the installed adapter `{name}`"),
            Owner::NotShown => write!(f, ", though nothing shows that they are"),
        }
    }
}

pub(crate) fn client_grant(client: &str) -> String {
    format!("clients.{client}")
}

pub(crate) fn variable_grant(variable: &str) -> String {
    format!("variables.{variable}")
}

fn built_in(list: impl Fn(&crate::sources::BuiltIn) -> &'static [&'static str], entry: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|one| list(one).contains(&entry)).map(|one| one.name)
}

/// Whether a variable's name begins with the adapter's: `TOAD_SESSION` for `toad`, `MYTOAD` for `my-toad`.
fn is_named_after(variable: &str, adapter: &str) -> bool {
    let is_everyones =
        EVERYONES.contains(&variable) || EVERYONES_PREFIXES.iter().any(|prefix| variable.starts_with(prefix));
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
    };
    !is_everyones && plain(variable).starts_with(&plain(adapter))
}

/// What makes a caller match an adapter's harness, surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    ByClient,
    ByEnvironment,
    AsAny,
}

/// Whether a manifest's clients or variables match a caller, whosever these are.
pub(crate) fn may_match<Name: AsRef<str>>(clients: &[Name], environment: &[Name], seen: &Caller) -> bool {
    let names = |list: &[Name], wanted: &str| list.iter().any(|name| name.as_ref() == wanted);
    seen.client_name.as_ref().is_some_and(|client| names(clients, client))
        || seen.environment.iter().any(|(name, _)| names(environment, name))
        || names(clients, ANY)
}

/// Whether a variable, as a manifest's `shells` names it with or without its value, is among these.
fn has(variables: &[(String, String)], entry: &str) -> bool {
    match entry.split_once('=') {
        Some((wanted, value)) => variables.iter().any(|(name, seen)| name == wanted && seen == value),
        None => variables.iter().any(|(name, _)| name == entry),
    }
}

/// Whether variables show that an agent of a built-in adapter's harness runs this process.
pub(crate) fn is_shell_of(own: &BuiltIn, variables: &[(String, String)]) -> bool {
    own.environment.iter().chain(own.shells).any(|entry| has(variables, entry))
}

/// The same for an adapter that is not built in. Only what is named after it counts, and what no other adapter had before:
/// anything else would make a user's own terminal an agent's.
pub(crate) fn is_shell_of_foreign(
    candidate: &Candidate,
    known: &[Arc<Candidate>],
    variables: &[(String, String)],
) -> bool {
    let name = |entry: &str| entry.split('=').next().unwrap_or_default().to_owned();
    let by = &candidate.manifest.matches;
    let variables_of =
        |by: &Matches| by.environment.iter().chain(&by.shells).map(|entry| name(entry)).collect::<Vec<_>>();
    let is_own = |entry: &str| {
        let variable = name(entry);
        let is_built_ins =
            BUILT_IN.iter().any(|own| own.environment.iter().chain(own.shells).any(|own| name(own) == variable));
        let mut earlier = known.iter().filter(|other| is_earlier(other, candidate));
        is_named_after(&variable, &candidate.manifest.name)
            && !is_built_ins
            && !earlier.any(|other| variables_of(&other.manifest.matches).contains(&variable))
    };
    by.environment.iter().chain(&by.shells).any(|entry| has(variables, entry) && is_own(entry))
}

/// The adapters that a caller may belong to, and whether what matched is theirs; the surest first. A client whose name
/// belongs to an adapter is asked of those alone that match by its name: its variables may come from a shell of another
/// harness, in which it was started.
pub(crate) fn meant<'c>(
    known: &'c [Arc<Candidate>],
    seen: &Caller,
    is_given: impl Fn(&Candidate, &str) -> bool,
) -> Vec<(&'c Arc<Candidate>, bool)> {
    let foreign = |candidate: &Candidate| {
        let mut foreign = candidate.manifest.requests.foreign.clone();
        for other in known.iter().filter(|other| is_earlier(other, candidate)) {
            foreign.add_those_of(&candidate.manifest.matches, &other.manifest);
        }
        foreign
    };
    let mut meant: Vec<(bool, Match, bool, &Arc<Candidate>)> = Vec::new();
    for candidate in known {
        let by = &candidate.manifest.matches;
        if !may_match(&by.clients, &by.environment, seen) {
            continue;
        }
        let foreign = foreign(candidate);
        // Whether the adapter is asked for this entry; and if so, whether the entry is its own.
        let counts = |list: &BTreeMap<String, Owner>, entry: &str, grant: String| match list.contains_key(entry) {
            false => Some(true),
            true => is_given(candidate, &grant).then_some(false),
        };
        let client = seen.client_name.as_ref().filter(|client| by.clients.contains(client));
        let by_client = client.and_then(|client| counts(&foreign.clients, client, client_grant(client)));
        let variables = by.environment.iter().filter(|name| seen.environment.iter().any(|(seen, _)| seen == *name));
        let by_variable = variables.filter_map(|name| counts(&foreign.variables, name, variable_grant(name))).max();
        let as_any = by.clients.iter().any(|client| client == ANY) && is_given(candidate, &client_grant(ANY));
        let (owns, how) = match (by_client, by_variable, as_any) {
            (Some(owns), _, _) => (owns, Match::ByClient),
            (None, Some(owns), _) => (owns, Match::ByEnvironment),
            (None, None, true) => (false, Match::AsAny),
            (None, None, false) => continue,
        };
        meant.push((!owns, how, candidate.source != Source::BuiltIn, candidate));
    }
    if meant.iter().any(|(is_foreign, how, ..)| !is_foreign && *how == Match::ByClient) {
        meant.retain(|(_, how, ..)| *how != Match::ByEnvironment);
    }
    meant.sort_by_key(|(is_foreign, how, is_strange, _)| (*is_foreign, *how, *is_strange));
    meant.into_iter().map(|(is_foreign, .., candidate)| (candidate, !is_foreign)).collect()
}

/// Whether an installed adapter had its clients and variables before another one named them.
pub(crate) fn is_earlier(one: &Candidate, other: &Candidate) -> bool {
    let rank = |candidate: &Candidate| (candidate.since.is_none(), candidate.since, candidate.manifest.name.clone());
    let is_strange = other.source != Source::BuiltIn && one.manifest.name != other.manifest.name;
    is_strange && one.since.is_some() && rank(one) < rank(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, clients: &[&str], variables: &[&str], expected: &[&str]) {
        let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        let matches = Matches { clients: owned(clients), environment: owned(variables), shells: Vec::new() };
        let foreign = ForeignMatches::of(name, &matches);
        let grants: Vec<String> = foreign.words().into_iter().map(|(grant, _)| grant).collect();
        assert_eq!(grants, expected, "{name} {clients:?} {variables:?}");
    }

    #[test]
    fn what_belongs_to_another_harness_or_to_none_takes_a_grant() {
        check("toad", &["toad", "toad-desktop"], &["TOAD_SESSION", "TOAD"], &[]);
        check("my-toad", &[], &["MY_TOAD_SESSION", "MYTOAD"], &[]);
        check("toad", &["claude-code"], &["CLAUDECODE"], &["clients.claude-code", "variables.CLAUDECODE"]);
        check("toad", &["*"], &["PATH", "SOMETHING"], &["clients.*", "variables.PATH", "variables.SOMETHING"]);
        // A name that is chosen so that it fits.
        check("path", &[], &["PATH"], &["variables.PATH"]);
        check("xdg", &[], &["XDG_RUNTIME_DIR"], &["variables.XDG_RUNTIME_DIR"]);
        check("c", &[], &["CODEX_THREAD_ID"], &["variables.CODEX_THREAD_ID"]);
        // Those of the built-in adapters are their own.
        for own in BUILT_IN {
            check(own.name, own.clients, own.environment, &[]);
        }
    }

    #[test]
    fn a_shell_is_an_agents_by_what_its_own_adapter_says_of_it() {
        let candidate = |name: &str, lines: &str, since: u64| {
            let text =
                format!("name = \"{name}\"\ntitle = \"T\"\nversion = \"1.0.0\"\nwit = \"0.1\"\n[matches]\n{lines}");
            let digest = crate::digest::Digest::of(name.as_bytes());
            let manifest = Manifest::parse(&text).expect("a manifest");
            let mut candidate = Candidate::on_disk(manifest, digest, digest, Source::Installed("/a".into()));
            candidate.since = Some(mesh::ports::machine::Instant(since));
            Arc::new(candidate)
        };
        let check = |candidates: &[Arc<Candidate>], variable: (&str, &str), expected: &[&str]| {
            let seen = [(variable.0.to_owned(), variable.1.to_owned())];
            let found = candidates.iter().filter(|one| is_shell_of_foreign(one, candidates, &seen));
            let found: Vec<&str> = found.map(|one| one.manifest.name.as_str()).collect();
            assert_eq!(found, expected, "{variable:?}");
        };
        let toad = candidate("toad", "environment = [\"TOAD_SESSION\"]\nshells = [\"TOAD_AGENT=1\", \"PATH\"]", 2);
        check(&[Arc::clone(&toad)], ("TOAD_AGENT", "1"), &["toad"]);
        check(&[Arc::clone(&toad)], ("TOAD_AGENT", "2"), &[]);
        check(&[Arc::clone(&toad)], ("TOAD_SESSION", "x"), &["toad"]);
        // Everybody's terminal has this.
        check(&[Arc::clone(&toad)], ("PATH", "/bin"), &[]);
        // Of two the one that was here first.
        let earlier = candidate("to", "shells = [\"TOAD_AGENT\"]", 1);
        check(&[earlier, toad], ("TOAD_AGENT", "1"), &["to"]);
        // A built-in adapter's is its own.
        check(&[candidate("cursor-x", "shells = [\"CURSOR_AGENT\"]", 1)], ("CURSOR_AGENT", "1"), &[]);
    }
}
