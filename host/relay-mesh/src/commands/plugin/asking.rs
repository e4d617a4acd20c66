//! Consent: says in plain words what an adapter would be able to do, and asks the user on a terminal. Elsewhere the
//! command line has to name each grant.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};

use adapters::grants::REPLACES_BUILT_IN;
use adapters::{Consent, grants};

use crate::context::Context;
use crate::errors::{CommandError, Failure, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::render::printable_line;
use crate::setup::agreement::is_yes;

// The consent that the user gave on the command line. No doc comment: clap would make it the help of a command
// that has none of its own.
#[derive(clap::Args, Debug)]
pub(super) struct ConsentArgs {
    /// Grant this, by the name that is shown beside it; may be given several times
    #[arg(long = "grant", value_name = "GRANT", value_delimiter = ',')]
    grants: Vec<String>,
    /// Do not ask; grant only what `--grant` names
    #[arg(long, short)]
    yes: bool,
}

/// What the user is asked to agree to.
#[derive(Debug)]
pub(super) struct Question {
    /// The adapter's name.
    pub(super) adapter: String,
    /// The requests that the user has not decided on before: name, and what it allows.
    pub(super) requests: Vec<(String, String)>,
    /// Names of built-in adapters that it wants to use, each with its owner, unless the user has agreed before.
    pub(super) claims: Vec<(String, &'static str)>,
}

/// Whether there is a user to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Standard input and standard error are a terminal.
    Terminal,
    /// A script, a pipe, an agent.
    Nobody,
}

impl Audience {
    /// No one with JSON: nothing is shown before the question then, and users shall see what they agree to.
    pub(super) fn of(context: &Context) -> Audience {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        match context.printer.format() {
            Format::Text if is_terminal => Audience::Terminal,
            Format::Text | Format::Json => Audience::Nobody,
        }
    }
}

/// The decision on a question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Grant this.
    Give(Consent),
    /// Ask the user whether to grant this.
    Ask(Consent),
    /// There is no user to ask, or the flags are not enough.
    Refuse(Refusal),
}

/// Why nothing is granted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The command line names a grant that the adapter does not ask for.
    NotAsked(String),
    /// `--yes` without a `--grant`.
    Unnamed,
    /// No user to ask, and no `--yes`.
    Unasked,
    /// It would take over this name of this built-in adapter.
    Replaces(String, &'static str),
}

/// Decides what to grant, to ask or to refuse.
pub(super) fn decide(question: &Question, said: &ConsentArgs, audience: Audience) -> Decision {
    let known = |grant: &&String| question.requests.iter().any(|(asked, _)| asked == *grant);
    let is_claim = |grant: &&String| grant.as_str() == REPLACES_BUILT_IN && !question.claims.is_empty();
    let is_state = |grant: &&String| grant.as_str() == grants::STATE;
    if let Some(stray) = said.grants.iter().find(|grant| !known(grant) && !is_claim(grant) && !is_state(grant)) {
        return Decision::Refuse(Refusal::NotAsked(stray.clone()));
    }
    let replaces_built_in = said.grants.iter().any(|grant| is_claim(&grant));
    let claimed = question.claims.first().filter(|_| !replaces_built_in);
    let named: BTreeSet<String> = said.grants.iter().filter(known).cloned().collect();
    match (said.yes, audience, claimed) {
        // Taking the name of a built-in adapter needs a `--grant` of its own.
        (true, Audience::Terminal | Audience::Nobody, Some((name, owner)))
        | (false, Audience::Nobody, Some((name, owner))) => Decision::Refuse(Refusal::Replaces(name.clone(), owner)),
        (true, Audience::Terminal | Audience::Nobody, None) => {
            if said.grants.is_empty() && !question.requests.is_empty() {
                Decision::Refuse(Refusal::Unnamed)
            } else {
                Decision::Give(Consent { grants: named, replaces_built_in })
            }
        }
        (false, Audience::Nobody, None) => Decision::Refuse(Refusal::Unasked),
        (false, Audience::Terminal, _) => {
            let all = || question.requests.iter().map(|(name, _)| name.clone()).collect();
            let grants = if said.grants.is_empty() { all() } else { named };
            Decision::Ask(Consent { grants, replaces_built_in: !question.claims.is_empty() })
        }
    }
}

/// Carries the decision out. Returns the consent, or none if the user said no.
pub(super) fn agree(
    context: &Context,
    question: &Question,
    said: &ConsentArgs,
) -> Result<Option<Consent>, CommandError> {
    match decide(question, said, Audience::of(context)) {
        Decision::Give(consent) => Ok(Some(consent)),
        Decision::Ask(consent) => {
            let count = consent.grants.len() + usize::from(consent.replaces_built_in);
            let what = match (count, question.requests.len() + question.claims.len().min(1)) {
                (0, _) => "nothing".to_owned(),
                (given, asked) if given == asked => "all of this".to_owned(),
                (given, asked) => format!("{given} of these {asked}"),
            };
            let how = if count > 1 { "y/N, or the names of those to give" } else { "y/N" };
            context.printer.on_standard_error(&format!("Install {} and give it {what}? [{how}] ", question.adapter));
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer).map_err(StreamError::Input)?;
            agreed(&answer, consent, question).map_err(|refusal| refused(question, &refusal))
        }
        Decision::Refuse(refusal) => Err(refused(question, &refusal)),
    }
}

/// What the user's answer gives: all, nothing, or what it names.
fn agreed(answer: &str, consent: Consent, question: &Question) -> Result<Option<Consent>, Refusal> {
    if is_yes(answer) {
        return Ok(Some(consent));
    }
    let named: BTreeSet<String> =
        answer.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if named.is_empty() || named.iter().all(|word| ["n", "no"].contains(&word.to_ascii_lowercase().as_str())) {
        return Ok(None);
    }
    let takes_name = |grant: &String| grant == REPLACES_BUILT_IN && consent.replaces_built_in;
    if let Some(stray) = named.iter().find(|grant| !consent.grants.contains(*grant) && !takes_name(grant)) {
        return Err(Refusal::NotAsked(stray.clone()));
    }
    let replaces_built_in = named.iter().any(takes_name);
    match question.claims.first() {
        Some((name, owner)) if !replaces_built_in => Err(Refusal::Replaces(name.clone(), owner)),
        Some(_) | None => {
            let grants = named.into_iter().filter(|grant| grant != REPLACES_BUILT_IN).collect();
            Ok(Some(Consent { grants, replaces_built_in }))
        }
    }
}

fn refused(question: &Question, refusal: &Refusal) -> CommandError {
    let name = &question.adapter;
    let mut flags: Vec<String> = question.requests.iter().map(|(grant, _)| format!("--grant {grant}")).collect();
    if !question.claims.is_empty() {
        flags.push(format!("--grant {REPLACES_BUILT_IN}"));
    }
    if flags.is_empty() {
        flags.push("--yes".to_owned());
    } else {
        flags.insert(0, "--yes".to_owned());
    }
    let flags = flags.join(" ");
    match refusal {
        Refusal::NotAsked(grant) => CommandError::usage(
            &format!("the adapter `{name}` does not ask for `{grant}`"),
            &match question.requests.as_slice() {
                [] => "it asks for nothing; leave out `--grant`".to_owned(),
                requests => format!("it asks for {}", listed(requests)),
            },
        ),
        Refusal::Unnamed => CommandError::usage(
            "`--yes` gives nothing that the command line does not name",
            &format!("name what it shall have: {flags}; `--yes --grant state` gives it next to nothing"),
        ),
        Refusal::Unasked => CommandError::from(Failure {
            what: format!(
                "nothing was installed, because without a terminal no user can agree to what `{name}` would be able to do"
            ),
            hint: Some(format!("run it in a terminal, or name what it shall have: {flags}")),
            exit: Exit::Refused,
            source: None,
        }),
        Refusal::Replaces(claimed, owner) => CommandError::from(Failure {
            what: format!("the name `{claimed}` belongs to the built-in adapter `{owner}`"),
            hint: Some(format!("if this adapter is to replace it: {flags}; else ask its author for another name")),
            exit: Exit::Refused,
            source: None,
        }),
    }
}

fn listed(requests: &[(String, String)]) -> String {
    requests.iter().map(|(grant, _)| format!("`{}`", printable_line(grant))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `claims` are names of built-in adapters with their owners; `expected` is the decision.
    fn check(flags: &str, audience: Audience, claims: &[(&str, &'static str)], requests: &[&str], expected: &str) {
        let mut said = ConsentArgs { grants: Vec::new(), yes: false };
        for word in flags.split_whitespace() {
            if word == "--yes" { said.yes = true } else { said.grants.push(word.to_owned()) }
        }
        let question = Question {
            adapter: "toy".to_owned(),
            requests: requests.iter().map(|name| ((*name).to_owned(), "something".to_owned())).collect(),
            claims: claims.iter().map(|(name, owner)| ((*name).to_owned(), *owner)).collect(),
        };
        let words = |verb: &str, consent: Consent| {
            let replaces = if consent.replaces_built_in { " and the name" } else { "" };
            format!("{verb} {:?}{replaces}", consent.grants.into_iter().collect::<Vec<_>>().join(" "))
        };
        let told = match decide(&question, &said, audience) {
            Decision::Give(consent) => words("give", consent),
            Decision::Ask(consent) => words("ask for", consent),
            Decision::Refuse(refusal) => format!("{refusal:?}"),
        };
        assert_eq!(told, expected, "{flags} with {audience:?}");
        // Every refusal has a hint.
        if let Decision::Refuse(refusal) = decide(&question, &said, audience) {
            assert!(refused(&question, &refusal).hint().is_some_and(|hint| hint.contains('`') || hint.contains("--")));
        }
    }

    #[test]
    fn nothing_is_given_that_nobody_named_or_agreed_to() {
        use Audience::{Nobody, Terminal};
        let requests = ["roots.config", "notices"];
        check("", Terminal, &[], &requests, "ask for \"notices roots.config\"");
        check("notices", Terminal, &[], &requests, "ask for \"notices\"");
        check("", Nobody, &[], &requests, "Unasked");
        check("notices", Nobody, &[], &requests, "Unasked");
        check("--yes", Nobody, &[], &requests, "Unnamed");
        check("--yes", Terminal, &[], &requests, "Unnamed");
        check("--yes notices", Nobody, &[], &requests, "give \"notices\"");
        check("--yes notices roots.config", Terminal, &[], &requests, "give \"notices roots.config\"");
        check("--yes state", Nobody, &[], &requests, "give \"\"");
        check("--yes roots.other", Nobody, &[], &requests, "NotAsked(\"roots.other\")");
        check("--yes replaces-built-in", Nobody, &[], &requests, "NotAsked(\"replaces-built-in\")");
        check("--yes", Nobody, &[], &[], "give \"\"");
        check("", Nobody, &[], &[], "Unasked");
    }

    #[test]
    fn a_user_can_agree_to_a_part() {
        let question = |claims: &[(&str, &'static str)]| Question {
            adapter: "toy".to_owned(),
            requests: ["notices", "roots.config"].map(|name| (name.to_owned(), "something".to_owned())).to_vec(),
            claims: claims.iter().map(|(name, owner)| ((*name).to_owned(), *owner)).collect(),
        };
        let check = |answer: &str, claims: &[(&str, &'static str)], expected: &str| {
            let all = ["notices", "roots.config"].map(str::to_owned).into();
            let consent = Consent { grants: all, replaces_built_in: !claims.is_empty() };
            let told = match agreed(answer, consent, &question(claims)) {
                Ok(Some(consent)) => {
                    let name = if consent.replaces_built_in { " and the name" } else { "" };
                    format!("{}{name}", consent.grants.into_iter().collect::<Vec<_>>().join(" "))
                }
                Ok(None) => "nothing".to_owned(),
                Err(refusal) => format!("{refusal:?}"),
            };
            assert_eq!(told, expected, "{answer}");
        };
        let claims = [("claude", "claude-code")];
        check("y\n", &[], "notices roots.config");
        check("roots.config\n", &[], "roots.config");
        check("roots.config, notices\n", &[], "notices roots.config");
        check("\n", &[], "nothing");
        check("No\n", &[], "nothing");
        check("roots.other\n", &[], "NotAsked(\"roots.other\")");
        check("y notices\n", &[], "NotAsked(\"y\")");
        check("replaces-built-in\n", &[], "NotAsked(\"replaces-built-in\")");
        check("notices\n", &claims, "Replaces(\"claude\", \"claude-code\")");
        check("notices replaces-built-in\n", &claims, "notices and the name");
    }

    #[test]
    fn the_name_of_a_built_in_adapter_is_a_grant_of_its_own() {
        use Audience::{Nobody, Terminal};
        let claims = [("claude", "claude-code")];
        check("--yes notices", Nobody, &claims, &["notices"], "Replaces(\"claude\", \"claude-code\")");
        check("--yes notices replaces-built-in", Nobody, &claims, &["notices"], "give \"notices\" and the name");
        check("--yes replaces-built-in", Nobody, &claims, &[], "give \"\" and the name");
        check("", Nobody, &claims, &[], "Replaces(\"claude\", \"claude-code\")");
        check("", Terminal, &claims, &["notices"], "ask for \"notices\" and the name");
    }
}
