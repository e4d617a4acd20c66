//! What {{title}}'s hooks mean, and how to answer them.
//!
//! The hook's command is relay-mesh. The host gives the payload to `read`, looks up mail, protocol and
//! reservations, and gives what it found to `answer`, on the same instance.

use relay_mesh_sdk::hooks::{Call, Event, Findings, Reading, Reply, in_context};
use relay_mesh_sdk::payload::{Fields, absolute, carries_mail};
use relay_mesh_sdk::{Activity, Error, Hooks, Occasion, Session, turns};
use serde_json::{Value, json};

use crate::Harness;

/// How much mail fits into one answer, in bytes.
const ROOM: u32 = 6_000;

impl Hooks for Harness {
    fn read(call: &Call) -> Result<Reading, Error> {
        let fields = Fields::of(call)?;
        let workdir = fields.required("cwd")?;
        let session = Session::new(fields.required("session")?, &workdir);
        let does = |activity| Event::Activity((session.id.clone(), activity));
        let spoken = |events| Reading { speaker: Some(session.clone()), events, ..Reading::nothing() };
        Ok(match call.name.as_str() {
            "session-start" => {
                turns::remove_old()?;
                Reading {
                    occasion: Some(match fields.required("source")?.as_str() {
                        "resumed" => Occasion::Resume,
                        _ => Occasion::Start,
                    }),
                    max_bytes: ROOM,
                    attended: true,
                    ..spoken(vec![Event::Alive(session.clone()), does(Activity::Idle)])
                }
            }
            // If our hook made this prompt of mail at the end of a turn, it is not the user's.
            "prompt" if carries_mail(&fields.required("text")?) => spoken(vec![does(Activity::Busy)]),
            "prompt" => Reading {
                max_bytes: ROOM,
                attended: true,
                ..spoken(vec![does(Activity::Busy), Event::UserSpoke(session.id.clone())])
            },
            // The host refuses an edit of a file that another agent has reserved.
            "before-tool" => {
                let file = fields.value().pointer("/input/file").and_then(Value::as_str);
                let file = file.filter(|_| fields.optional("tool").as_deref() == Some("write"));
                Reading {
                    edits: file.map(|file| absolute(file, &workdir)).into_iter().collect(),
                    ..spoken(vec![does(Activity::Busy)])
                }
            }
            "after-tool" => {
                let registered = fields.required("tool")?.ends_with("/register_agent");
                Reading {
                    max_bytes: ROOM,
                    occasion: registered.then_some(Occasion::Registration),
                    ..spoken(vec![does(Activity::Busy)])
                }
            }
            // Mail that waits now keeps the session going, a few times in a row.
            "turn-end" => {
                let max_bytes = if turns::may_go_on(&session.id, fields.flag("again")?)? { ROOM } else { 0 };
                Reading { max_bytes, ..spoken(vec![does(Activity::Idle)]) }
            }
            "session-end" => {
                turns::forget_blocks(&session.id)?;
                Reading { events: vec![Event::Ended(session.id)], ..Reading::nothing() }
            }
            other => return Err(Error::Unsupported(format!("{{title}}'s hook `{other}` has no meaning for the mesh"))),
        })
    }

    fn answer(call: &Call, found: Findings) -> Result<Reply, Error> {
        let Findings { mail, protocol, refusal, .. } = found;
        let shows_mail = mail.is_some();
        Ok(match call.name.as_str() {
            "session-start" | "prompt" | "after-tool" => match in_context(protocol, mail.as_ref()) {
                Some(context) => Reply::stdout(json!({"context": context}).to_string()).showing(shows_mail),
                None => Reply::silent(),
            },
            "before-tool" => match refusal {
                Some(reason) => Reply::stdout(json!({"refuse": reason}).to_string()),
                None => Reply::silent(),
            },
            "turn-end" => match mail {
                Some(mail) => {
                    turns::count_block(&Fields::of(call)?.required("session")?)?;
                    Reply::stdout(json!({"continue": mail.text}).to_string()).showing(true)
                }
                None => Reply::silent(),
            },
            _ => Reply::silent(),
        })
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::{self, Fakes, hook, mail, nothing_found};

    use super::*;

    /// Checks what a recorded call means, and its answer if mail waits.
    fn check(name: &str, read: &str, answered: &str) {
        let call = testing::recorded(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), &format!("1.0-{name}"));
        let found = |reading: &Reading| Findings {
            mail: (reading.max_bytes > 0).then(|| mail("<mail>")),
            refusal: (!reading.edits.is_empty()).then(|| "it is held by `bob`".to_owned()),
            ..nothing_found()
        };
        let (reading, reply) = hook::<Harness>(&call, found).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(testing::reading(&reading, str::to_owned), read, "{name}");
        assert_eq!(testing::reply(&reply), answered, "{name}");
    }

    #[test]
    fn every_recorded_call_is_read_and_answered() {
        let _host = Fakes::default().start();
        let context = r#"0 | {"context":"<mail>"} | - | shows mail"#;
        let silence = "0 | - | - | no mail";
        check("session-start", "s1; alive s1; s1 Idle; protocol Start; fits 6000; attended", context);
        check("session-start-resumed", "s1; alive s1; s1 Idle; protocol Resume; fits 6000; attended", context);
        check("prompt", "s1; s1 Busy; user spoke in s1; fits 6000; attended", context);
        check("prompt-continued", "s1; s1 Busy", silence);
        check(
            "before-tool-write",
            "s1; s1 Busy; edits /home/u/app/a.txt",
            r#"0 | {"refuse":"it is held by `bob`"} | - | no mail"#,
        );
        check("before-tool-shell", "s1; s1 Busy", silence);
        check("after-tool", "s1; s1 Busy; fits 6000", context);
        check("after-tool-register", "s1; s1 Busy; protocol Registration; fits 6000", context);
        check("turn-end", "s1; s1 Idle; fits 6000", r#"0 | {"continue":"<mail>"} | - | shows mail"#);
        check("session-end", "nobody; s1 ended", silence);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let unknown = Harness::read(&Call::new("model-changed", r#"{"session":"s1","cwd":"/"}"#));
        assert!(matches!(unknown, Err(Error::Unsupported(_))), "{unknown:?}");
        let garbage = Harness::read(&Call::new("prompt", "not JSON"));
        assert!(matches!(garbage, Err(Error::Failed(_))), "{garbage:?}");
    }
}
