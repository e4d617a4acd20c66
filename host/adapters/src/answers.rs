//! What an adapter may say to a harness through a hook. A reply is put together from the host's texts and from words of
//! the manifest: each place in it is declared there under a kind, and each kind is a grant. What is not declared, or not
//! granted, does not reach the harness.
//!
//! ```toml
//! [grants.answers.context]             # the mesh's texts for the model: mail, protocol, the wake file's path
//! fields = ["hookSpecificOutput.additionalContext", "hookSpecificOutput.watchPaths.*"]
//! words = ["hookSpecificOutput.hookEventName=SessionStart|PostToolUse"]
//!
//! [grants.answers.refuse]              # an edit that the mesh refuses
//! fields = ["stderr"]                  # plain text, as is `stdout`
//! exit-code = 2
//!
//! [grants.answers.ticket]              # the mesh's proof, added to a tool's arguments
//! fields = ["updated_input"]
//!
//! [grants.answers.allow]               # approves what the harness asks its user about
//! words = ["permission=allow"]
//!
//! [grants.answers.stop]                # stops the harness or a turn of its own accord
//! words = ["continue=false"]
//!
//! [grants.answers]
//! own-words = true                     # text of its own, beside the mesh's
//! ```
//!
//! A path is the names of the fields of the JSON object on standard output, with `*` for each item of an array.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use mesh::ports::harness::Reply;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

pub(crate) use check::{Excess, HostTexts, check, fitting_protocol};

/// A kind of thing that an answer to a hook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnswerKind {
    /// Puts the mesh's texts before the model.
    Context,
    /// Refuses an edit that the mesh refuses.
    Refuse,
    /// Adds the mesh's proof to a tool's arguments.
    Ticket,
    /// Approves what the harness asks its user about.
    Allow,
    /// Stops the harness, or a turn, of its own accord.
    Stop,
}

impl AnswerKind {
    const ALL: [AnswerKind; 5] =
        [AnswerKind::Context, AnswerKind::Refuse, AnswerKind::Ticket, AnswerKind::Allow, AnswerKind::Stop];

    fn name(self) -> &'static str {
        match self {
            AnswerKind::Context => "context",
            AnswerKind::Refuse => "refuse",
            AnswerKind::Ticket => "ticket",
            AnswerKind::Allow => "allow",
            AnswerKind::Stop => "stop",
        }
    }

    /// The grant's name.
    pub(crate) fn grant(self) -> String {
        format!("answers.{}", self.name())
    }

    /// The kind of a grant's second part.
    pub(crate) fn named(name: &str) -> Option<AnswerKind> {
        AnswerKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn allows(self) -> &'static str {
        match self {
            AnswerKind::Context => "put the mesh's own texts before the model, in answers to the harness's hooks",
            AnswerKind::Refuse => "refuse the edits that the mesh refuses, in answers to hooks",
            AnswerKind::Ticket => {
                "add the mesh's proof of who calls to the arguments of a tool, and change nothing else in them"
            }
            AnswerKind::Allow => "approve actions in your place: what the harness would ask you about happens unasked",
            AnswerKind::Stop => "stop the harness, a tool or a turn, of its own accord",
        }
    }
}

/// The grant to say something of one's own.
pub(crate) const OWN_WORDS: &str = "answers.own-words";

/// What the answers of one kind may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerRule {
    /// Where the host's texts may be.
    pub fields: BTreeSet<String>,
    /// Fixed words that may be at a place.
    pub words: BTreeMap<String, BTreeSet<String>>,
    /// The exit code with which the hook may end.
    pub exit_code: Option<u8>,
    /// The field that the harness shows its user and not its model. The host writes into it who sent the mail.
    pub notice: Option<String>,
    /// The hooks in whose answers the user sees it, if not in all.
    pub notice_hooks: BTreeSet<String>,
}

/// What answers to hooks may hold, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerRules {
    /// The kinds that the manifest requests.
    pub kinds: BTreeMap<AnswerKind, AnswerRule>,
    /// Whether it requests to say something of its own.
    pub own_words: bool,
}

impl AnswerRules {
    /// The grants for them, in plain words.
    pub(crate) fn words(&self) -> Vec<(String, String)> {
        let kinds = self.kinds.iter().map(|(kind, answer)| (kind.grant(), format!("{}{answer}", kind.allows())));
        let own = self.own_words.then(|| {
            let told = "put text of its own before the model, which no other agent and not the mesh has written";
            (OWN_WORDS.to_owned(), told.to_owned())
        });
        kinds.chain(own).collect()
    }
}

/// Puts a notice for the user into the field of a reply's JSON that is for them. An answer on standard error is the
/// model's alone. Returns whether the user sees it.
pub(crate) fn put_notice(answer: &AnswerRule, hook: &str, reply: &mut Reply, notice: &str) -> bool {
    let Some(field) = &answer.notice else { return false };
    if !answer.notice_hooks.is_empty() && !answer.notice_hooks.contains(hook) {
        return false;
    }
    let text = reply.stdout.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let fields: Option<serde_json::Map<String, Value>> = serde_json::from_str(text).ok();
    let fields = fields.filter(|told| reply.exit_code == 0 && reply.stderr.is_none() && !told.contains_key(field));
    let Some(mut told) = fields else { return false };
    told.insert(field.clone(), notice.into());
    reply.stdout = Some(Value::Object(told).to_string());
    true
}

impl std::fmt::Display for AnswerRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut places: Vec<String> = self.fields.iter().map(|field| format!("`{field}`")).collect();
        places.extend(self.words.iter().map(|(path, values)| {
            format!("`{path}={}`", values.iter().map(String::as_str).collect::<Vec<_>>().join("|"))
        }));
        places.extend(self.exit_code.map(|code| format!("exit code {code}")));
        places.extend(self.notice.as_ref().map(|field| format!("`{field}` tells the user who wrote")));
        if places.is_empty() { Ok(()) } else { write!(f, " ({})", places.join(", ")) }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RawAnswers {
    context: Option<Spanned<RawAnswer>>,
    refuse: Option<Spanned<RawAnswer>>,
    ticket: Option<Spanned<RawAnswer>>,
    allow: Option<Spanned<RawAnswer>>,
    stop: Option<Spanned<RawAnswer>>,
    #[serde(default)]
    own_words: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawAnswer {
    #[serde(default)]
    fields: BTreeSet<String>,
    #[serde(default)]
    words: Vec<String>,
    exit_code: Option<u8>,
    notice: Option<String>,
    #[serde(default)]
    notice_hooks: BTreeSet<String>,
}

/// Why a manifest's answers are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnswer {
    /// A word has another shape.
    #[error("`{0}` is not `path=word`")]
    NotAWord(String),
    /// A word approves something, under a kind that does not say so.
    #[error("`{0}` approves something: it belongs under `answers.allow`")]
    Approves(String),
    /// Texts of the host are no approval and no stop.
    #[error("`answers.{0}` holds fixed words alone, and no fields")]
    NoFields(&'static str),
}

impl RawAnswers {
    pub(crate) fn parse(self) -> Result<AnswerRules, (std::ops::Range<usize>, InvalidAnswer)> {
        let RawAnswers { context, refuse, ticket, allow, stop, own_words } = self;
        let mut kinds = BTreeMap::new();
        for (kind, raw) in AnswerKind::ALL.into_iter().zip([context, refuse, ticket, allow, stop]) {
            let Some(raw) = raw else { continue };
            let span = raw.span();
            kinds.insert(kind, raw.into_inner().parse(kind).map_err(|error| (span, error))?);
        }
        Ok(AnswerRules { kinds, own_words })
    }
}

impl RawAnswer {
    fn parse(self, kind: AnswerKind) -> Result<AnswerRule, InvalidAnswer> {
        if matches!(kind, AnswerKind::Allow | AnswerKind::Stop) && !self.fields.is_empty() {
            return Err(InvalidAnswer::NoFields(kind.name()));
        }
        let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for word in self.words {
            let split = word.split_once('=').filter(|(path, values)| !path.is_empty() && !values.is_empty());
            let (path, values) = split.ok_or_else(|| InvalidAnswer::NotAWord(word.clone()))?;
            if kind != AnswerKind::Allow && values.split('|').any(|value| check::approves(path, value)) {
                return Err(InvalidAnswer::Approves(word));
            }
            words.entry(path.to_owned()).or_default().extend(values.split('|').map(str::to_owned));
        }
        let notice = self.notice.filter(|field| !field.is_empty());
        let exit_code = self.exit_code.filter(|code| *code != 0);
        Ok(AnswerRule { fields: self.fields, words, exit_code, notice, notice_hooks: self.notice_hooks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_where_the_user_sees_it_or_nowhere() {
        let answer = AnswerRule {
            notice: Some("told".to_owned()),
            notice_hooks: ["Stop".to_owned()].into(),
            ..AnswerRule::default()
        };
        let check = |hook: &str, mut reply: Reply, expected: Option<&str>| {
            let before = reply.stdout.clone();
            let seen = put_notice(&answer, hook, &mut reply, "mail from bob");
            assert_eq!(seen, expected.is_some(), "{hook} {reply:?}");
            assert_eq!(reply.stdout.as_deref(), expected.or(before.as_deref()), "{hook}");
        };
        let said = |text: &str| Reply { stdout: Some(text.to_owned()), ..Reply::default() };
        check("Stop", Reply::default(), Some(r#"{"told":"mail from bob"}"#));
        check("Stop", said(r#"{"reason":"x"}"#), Some(r#"{"reason":"x","told":"mail from bob"}"#));
        check("Start", Reply::default(), None);
        check("Stop", said("plain text"), None);
        check("Stop", said(r#"{"told":"something else"}"#), None);
        check("Stop", Reply { exit_code: 2, ..Reply::default() }, None);
        check("Stop", Reply { stderr: Some("the mail".to_owned()), ..Reply::default() }, None);
    }
}
