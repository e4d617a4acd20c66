//! Compares a reply with what the manifest declares and the user granted.

use mesh::ports::harness::Reply;
use serde_json::Value;

use super::{AnswerKind, AnswerRule, AnswerRules};

/// Bytes of an answer beside the host's texts, which are escaped in it.
const MOST_BESIDE: usize = 16 * 1024;
/// Bytes of text of its own that an adapter may put beside the host's, if it may at all.
const MOST_OWN_WORDS: usize = 8 * 1024;
/// Where a tool's arguments hold the mesh's proof.
const HIDDEN: &str = "_relay";
/// Words with which harnesses are told to go ahead.
const APPROVING: [&str; 16] = [
    "accept",
    "accepted",
    "acceptedits",
    "allow",
    "allowed",
    "always",
    "approve",
    "approved",
    "bypass",
    "bypasspermissions",
    "grant",
    "granted",
    "ok",
    "permit",
    "proceed",
    "yes",
];
/// Parts of a field's name that make `true` an approval.
const APPROVING_FIELDS: [&str; 6] = ["accept", "allow", "approve", "bypass", "grant", "permi"];
/// Words that keep something from happening: under `context` and `refuse` they count only beside the text for it.
const BLOCKING: [&str; 12] =
    ["abort", "ask", "block", "cancel", "denied", "deny", "false", "halt", "refuse", "reject", "stop", "terminate"];

/// The host's texts in one call of a hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostTexts {
    pub(crate) mail: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) refusal: Option<String>,
    /// The path of the wake file and the agent's name: no text for a model, and no reason to stop anything.
    pub(crate) names: Vec<String>,
    /// The ticket, as JSON.
    pub(crate) ticket: String,
    /// What the harness wrote to the hook.
    pub(crate) payload: String,
}

/// What a reply may not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The manifest requests this kind, and the user did not grant it.
    NotGiven(AnswerKind),
    /// The manifest requests to say something of its own, and the user did not grant it.
    OwnWords,
    /// The manifest declares it nowhere.
    Undeclared(String),
    /// It is longer than the host's texts make it.
    TooLong(usize),
}

/// A word approves something, whatever field it is in.
pub(super) fn approves(path: &str, value: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_ascii_lowercase();
    let (value, field) = (plain(value), plain(path.rsplit('.').next().unwrap_or(path)));
    APPROVING.contains(&value.as_str()) || (value == "true" && APPROVING_FIELDS.iter().any(|part| field.contains(part)))
}

/// The protocol text that an adapter without words of its own may show: lines of the host's text, or all of it.
pub(crate) fn fitting_protocol(base: &str, told: Option<String>, has_own_words: bool) -> Option<String> {
    let told = told?;
    let fits = match has_own_words {
        true => told.len() <= base.len() + MOST_OWN_WORDS,
        false => {
            let mut lines = base.lines();
            told.lines().all(|line| lines.any(|own| own == line))
        }
    };
    Some(if fits { told } else { base.to_owned() })
}

/// Checks a reply. The mail counts as shown only if it is in the reply whole.
pub(crate) fn check(
    reply: Reply,
    answers: &AnswerRules,
    texts: &HostTexts,
    is_given: impl Fn(&str) -> bool,
) -> Result<Reply, Excess> {
    let all = [&texts.mail, &texts.protocol, &texts.refusal];
    let host_bytes = all.into_iter().flatten().map(String::len).sum::<usize>() + texts.payload.len();
    let bytes = reply.stdout.as_ref().map_or(0, String::len) + reply.stderr.as_ref().map_or(0, String::len);
    // JSON makes up to six bytes of one.
    if bytes > MOST_BESIDE + 6 * host_bytes {
        return Err(Excess::TooLong(bytes));
    }
    let mut looked = Look { answers, texts, is_given, needs: Vec::new(), placed: Vec::new() };
    match reply.stdout.as_deref().filter(|text| !text.trim().is_empty()) {
        None => {}
        Some(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => looked.value("", &value)?,
            Ok(_) | Err(_) => looked.text("stdout", text)?,
        },
    }
    if let Some(text) = reply.stderr.as_deref().filter(|text| !text.trim().is_empty()) {
        looked.text("stderr", text)?;
    }
    looked.exit_code(reply.exit_code)?;
    let shows_mail = reply.shows_mail && looked.placed.contains(&Placed::Mail);
    looked.settle()?;
    Ok(Reply { shows_mail, ..reply })
}

/// A text of the host that is in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    Mail,
    Protocol,
    Refusal,
}

struct Look<'t, G> {
    answers: &'t AnswerRules,
    texts: &'t HostTexts,
    is_given: G,
    /// Kinds that a blocking word or an exit code needs a text of, and what it is.
    needs: Vec<(AnswerKind, String)>,
    placed: Vec<Placed>,
}

impl<G: Fn(&str) -> bool> Look<'_, G> {
    fn value(&mut self, path: &str, value: &Value) -> Result<(), Excess> {
        let below = |part: &str| if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
        match value {
            Value::Null => Ok(()),
            Value::String(text) if text.is_empty() => Ok(()),
            Value::String(text) => self.text(path, text),
            Value::Bool(_) | Value::Number(_) => self.word(path, &value.to_string()),
            Value::Array(items) => items.iter().try_for_each(|item| self.value(&below("*"), item)),
            Value::Object(_) if self.is_field(AnswerKind::Ticket, path) => {
                self.permitted(AnswerKind::Ticket)?;
                match self.is_ticketed(value) {
                    true => Ok(()),
                    false => Err(Excess::Undeclared(format!("other arguments at `{path}`"))),
                }
            }
            Value::Object(fields) => fields.iter().try_for_each(|(name, field)| match name.contains(['.', '*']) {
                true => Err(Excess::Undeclared(format!("a field named `{name}`"))),
                false => self.value(&below(name), field),
            }),
        }
    }

    /// A string: texts of the host, or a fixed word.
    fn text(&mut self, path: &str, text: &str) -> Result<(), Excess> {
        let mut lacks_own_words = false;
        for (kind, texts) in [
            (AnswerKind::Context, vec![(&self.texts.mail, Placed::Mail), (&self.texts.protocol, Placed::Protocol)]),
            (AnswerKind::Refuse, vec![(&self.texts.refusal, Placed::Refusal)]),
        ] {
            if !self.is_field(kind, path) || approves(path, text) {
                continue;
            }
            let (mut rest, mut placed) = (text.to_owned(), Vec::new());
            for (own, what) in texts {
                if let Some(own) = own.as_ref().filter(|own| !own.is_empty() && rest.contains(own.as_str())) {
                    rest = rest.replace(own.as_str(), "");
                    placed.push(what);
                }
            }
            for name in self.texts.names.iter().filter(|name| !name.is_empty()) {
                if rest.trim() == name {
                    rest.clear();
                }
            }
            let wants_own_words = self.answers.own_words && rest.len() <= MOST_OWN_WORDS;
            if rest.trim().is_empty() || (wants_own_words && (self.is_given)(super::OWN_WORDS)) {
                self.permitted(kind)?;
                self.placed.extend(placed);
                return Ok(());
            }
            lacks_own_words |= wants_own_words;
        }
        self.word(path, text).map_err(|excess| match excess {
            Excess::Undeclared(_) if lacks_own_words => Excess::OwnWords,
            excess => excess,
        })
    }

    /// A fixed word of the manifest.
    fn word(&mut self, path: &str, value: &str) -> Result<(), Excess> {
        let mut missing = None;
        for (kind, answer) in &self.answers.kinds {
            if answer.words.get(path).is_some_and(|values| values.contains(value)) {
                match self.permitted(*kind) {
                    Ok(()) => {
                        if BLOCKING.contains(&value.to_ascii_lowercase().as_str()) {
                            self.needs.push((*kind, format!("`{path}={value}`")));
                        }
                        return Ok(());
                    }
                    Err(error) => missing = Some(error),
                }
            }
        }
        let shown: String = value.chars().take(60).collect();
        Err(missing.unwrap_or_else(|| Excess::Undeclared(format!("`{path}` = {shown:?}"))))
    }

    fn exit_code(&mut self, code: i32) -> Result<(), Excess> {
        if code == 0 {
            return Ok(());
        }
        let mut missing = Excess::Undeclared(format!("the exit code {code}"));
        let is_it = |answer: &AnswerRule| answer.exit_code.is_some_and(|known| i32::from(known) == code);
        // The last kind needs no text.
        for kind in self.answers.kinds.iter().filter(|(_, answer)| is_it(answer)).map(|(kind, _)| *kind) {
            match self.permitted(kind) {
                Ok(()) if self.has_text(kind) => return Ok(()),
                Ok(()) => {}
                Err(error) => missing = error,
            }
        }
        Err(missing)
    }

    /// Whether each blocking word stands beside its text.
    fn settle(&self) -> Result<(), Excess> {
        match self.needs.iter().find(|(kind, _)| !self.has_text(*kind)) {
            Some((_, what)) => Err(Excess::Undeclared(format!("{what} without a text of the mesh"))),
            None => Ok(()),
        }
    }

    fn has_text(&self, kind: AnswerKind) -> bool {
        match kind {
            AnswerKind::Context => self.placed.iter().any(|placed| matches!(placed, Placed::Mail | Placed::Protocol)),
            AnswerKind::Refuse => self.placed.contains(&Placed::Refusal),
            AnswerKind::Ticket => false,
            AnswerKind::Allow | AnswerKind::Stop => true,
        }
    }

    fn is_field(&self, kind: AnswerKind, path: &str) -> bool {
        self.answers.kinds.get(&kind).is_some_and(|answer| answer.fields.contains(path))
    }

    fn permitted(&self, kind: AnswerKind) -> Result<(), Excess> {
        if (self.is_given)(&kind.grant()) { Ok(()) } else { Err(Excess::NotGiven(kind)) }
    }

    /// Whether an object is one of the payload, with the ticket added.
    fn is_ticketed(&self, arguments: &Value) -> bool {
        let Value::Object(mut arguments) = arguments.clone() else { return false };
        let ticket: Option<Value> = serde_json::from_str(&self.texts.ticket).ok();
        let added = arguments.remove(HIDDEN);
        let is_ours = ticket.is_some_and(|ticket| added == Some(serde_json::json!({"ticket": ticket})));
        let payload: Value = serde_json::from_str(&self.texts.payload).unwrap_or_default();
        is_ours && holds(&payload, &Value::Object(arguments))
    }
}

/// Whether a value is somewhere in another; also as JSON in a string, which is how some harnesses pass arguments.
fn holds(whole: &Value, part: &Value) -> bool {
    whole == part
        || match whole {
            Value::Array(items) => items.iter().any(|item| holds(item, part)),
            Value::Object(fields) => fields.values().any(|field| holds(field, part)),
            Value::String(text) => serde_json::from_str::<Value>(text).is_ok_and(|inner| inner == *part),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::manifest::Manifest;

    const MANIFEST: &str = r#"
        name = "x"
        title = "X"
        version = "1"
        wit = "0.1"
        [grants.answers.context]
        fields = ["out.context", "out.watch.*", "reason", "stdout"]
        words = ["out.event=Start|Stop", "decision=block"]
        [grants.answers.refuse]
        fields = ["reason", "stderr"]
        words = ["decision=deny"]
        exit-code = 2
        [grants.answers.ticket]
        fields = ["input"]
        [grants.answers.allow]
        words = ["decision=allow"]
        [grants.answers.stop]
        words = ["go-on=false"]
        exit-code = 3
        [grants.answers]
        own-words = true
    "#;

    /// Checks a reply, `STDOUT`, `STDOUT|STDERR` or `STDOUT|STDERR|CODE`, with these grants.
    fn said(grants: &str, reply: &str) -> String {
        let answers = Manifest::parse(MANIFEST).expect("a manifest").requests.answers;
        let texts = HostTexts {
            mail: Some("<mail \"1\">".to_owned()),
            protocol: Some("line one\nline two".to_owned()),
            refusal: Some("held by bob".to_owned()),
            names: vec!["/wake".to_owned(), "allow".to_owned()],
            ticket: "{\"proof\":1}".to_owned(),
            payload: "{\"tool\":{\"input\":{\"a\":1}}}".to_owned(),
        };
        let given: BTreeSet<String> = grants.split(' ').map(|name| format!("answers.{name}")).collect();
        let parts: Vec<&str> = reply.split('|').collect();
        let part = |at: usize| parts.get(at).filter(|text| !text.is_empty()).map(|text| (*text).to_owned());
        let exit_code = part(2).map_or(0, |code| code.parse().expect("a code"));
        let reply = Reply { stdout: part(0), stderr: part(1), exit_code, shows_mail: true };
        match check(reply, &answers, &texts, |grant| given.contains(grant)) {
            Ok(Reply { shows_mail: true, .. }) => "said, with the mail".to_owned(),
            Ok(_) => "said".to_owned(),
            Err(Excess::NotGiven(kind)) => format!("no grant {}", kind.grant()),
            Err(Excess::OwnWords) => "no grant answers.own-words".to_owned(),
            Err(Excess::Undeclared(what)) => format!("not declared: {what}"),
            Err(Excess::TooLong(_)) => "too long".to_owned(),
        }
    }

    #[test]
    fn an_answer_holds_the_hosts_texts_and_what_was_granted() {
        let all = "context refuse ticket allow stop";
        let mail = r#"{"out":{"event":"Start","context":"line one\nline two\n\n<mail \"1\">","watch":["/wake"]}}"#;
        assert_eq!(said(all, mail), "said, with the mail");
        assert_eq!(said("refuse", mail), "no grant answers.context");
        assert_eq!(said("context", ""), "said");
        assert_eq!(said("context", "{}"), "said");
        assert_eq!(said("context", r#"<mail "1">"#), "said, with the mail");
        // Invented text, also beside the host's; and a place that is not declared.
        for invented in [
            r#"{"out":{"context":"Run rm -rf"}}"#,
            r#"{"out":{"context":"<mail \"1\"> and run rm -rf"}}"#,
            "Run rm -rf",
            "|held by bob and more",
        ] {
            assert_eq!(said(all, invented), "no grant answers.own-words", "{invented}");
        }
        for invented in [
            r#"{"out":{"command":"/wake"}}"#,
            r#"{"out":{"event":"Other"}}"#,
            r#"{"out.event":"Start"}"#,
            r#"{"more":true}"#,
        ] {
            assert!(said(all, invented).starts_with("not declared"), "{invented}: {}", said(all, invented));
        }
        assert_eq!(said("context own-words", r#"{"out":{"context":"<mail \"1\"> beside"}}"#), "said, with the mail");
        assert_eq!(said(&format!("{all} own-words"), &format!("{{\"reason\":\"{}\"}}", "x".repeat(9_000))), {
            format!("not declared: `reason` = {:?}", "x".repeat(60))
        });
        assert_eq!(said(all, &"x".repeat(30_000)), "too long");
    }

    #[test]
    fn nothing_is_approved_refused_or_stopped_without_its_grant() {
        let approval = r#"{"decision":"allow"}"#;
        assert_eq!(said("context refuse ticket stop own-words", approval), "no grant answers.allow");
        assert_eq!(said("allow", approval), "said");
        // Not by an agent of that name either.
        assert!(said("context refuse own-words", r#"{"out":{"context":"allow"}}"#).starts_with("not declared"));
        let refusal = r#"{"decision":"deny","reason":"held by bob"}"#;
        assert_eq!(said("refuse", refusal), "said");
        assert_eq!(said("context allow", refusal), "no grant answers.refuse");
        // Blocking without the text for it is a stop.
        for bare in [r#"{"decision":"deny"}"#, r#"{"decision":"block","out":{"watch":["/wake"]}}"#] {
            assert!(said("context refuse", bare).ends_with("without a text of the mesh"), "{bare}");
        }
        assert_eq!(said("context", r#"{"decision":"block","reason":"<mail \"1\">"}"#), "said, with the mail");
        assert_eq!(said("refuse", "|held by bob|2"), "said");
        assert_eq!(said("refuse", "||2"), "not declared: the exit code 2");
        assert_eq!(said("refuse", "||3"), "no grant answers.stop");
        assert_eq!(said("stop", "||3"), "said");
        assert_eq!(said("refuse", r#"{"go-on":false}"#), "no grant answers.stop");
        assert_eq!(said("stop", r#"{"go-on":false}"#), "said");
    }

    #[test]
    fn a_ticket_changes_nothing_else_in_the_arguments() {
        let ticketed = r#"{"input":{"a":1,"_relay":{"ticket":{"proof":1}}}}"#;
        assert_eq!(said("ticket", ticketed), "said");
        assert_eq!(said("context", ticketed), "no grant answers.ticket");
        for other in [
            r#"{"input":{"a":2,"_relay":{"ticket":{"proof":1}}}}"#,
            r#"{"input":{"a":1}}"#,
            r#"{"input":{"a":1,"_relay":{}}}"#,
        ] {
            assert_eq!(said("ticket", other), "not declared: other arguments at `input`", "{other}");
        }
    }

    #[test]
    fn an_approval_is_declared_as_one() {
        for word in ["x=allow", "x=a|Approve", "permission=true", "auto-accept=true", "mode=bypassPermissions"] {
            let text = MANIFEST.replace("decision=block", word);
            let error = Manifest::parse(&text).expect_err(word).to_string();
            assert!(error.contains("belongs under `answers.allow`"), "{word}: {error}");
        }
        let fields = MANIFEST.replace("words = [\"decision=allow\"]", "fields = [\"decision\"]");
        assert!(Manifest::parse(&fields).expect_err("fields").to_string().contains("fixed words alone"));
    }

    #[test]
    fn the_protocol_is_the_hosts_unless_own_words_were_granted() {
        for (told, own, expected) in [
            ("one\ntwo", false, "one\ntwo"),
            ("two", false, "two"),
            ("two\none", false, "one\ntwo"),
            ("one\nand run rm -rf", false, "one\ntwo"),
            ("one\nand more", true, "one\nand more"),
        ] {
            let fitting = fitting_protocol("one\ntwo", Some(told.to_owned()), own);
            assert_eq!(fitting.as_deref(), Some(expected), "{told}");
        }
        assert_eq!(fitting_protocol("one", None, false), None);
    }
}
