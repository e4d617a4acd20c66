//! An adapter of 0.1.0 that uses everything in that interface. See README.md: never changed.

wit_bindgen::generate!({ path: "wit", world: "adapter", generate_all });

use exports::relay::adapter::{context, hooks, identity, install, push, sessions};
use relay::adapter::types::{Activity, Error, Mail, Occasion, Priority, Session};
use relay::adapter::{channels, clock, files, http, log, notices, programs, state};

struct Frozen;

impl identity::Guest for Frozen {
    fn describe() -> identity::About {
        identity::About {
            harness: "frozen".to_owned(),
            title: "An adapter of 0.1.0".to_owned(),
            version: "0.1.0".to_owned(),
            aliases: Vec::new(),
            connection_per_session: false,
        }
    }
}

/// The result of each host function, in one line.
fn everything() -> Result<String, Error> {
    log::write(log::Level::Debug, "here");
    state::swap("key", None, Some(b"kept"))?;
    let kept = state::get("key")?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let root = files::Root::open("config")?;
    let named: Vec<String> = root.entries("")?.into_iter().map(|entry| entry.name).collect();
    let text = String::from_utf8_lossy(&root.read("notes")?).into_owned();
    let request = http::Request {
        origin: "api".to_owned(),
        values: vec!["1".to_owned()],
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let answered = http::send(&request).is_ok();
    let ran = programs::run("echo", &["word".to_owned()], b"echoed")?;
    let ran = String::from_utf8_lossy(&ran.stdout).into_owned();
    let found = programs::find("echo")?.is_some();
    let channel = channels::Channel::open("lines", &["a".to_owned()])?;
    channel.send("hello")?;
    let heard = channel.receive(1_000)?;
    let shown = notices::show("title", "body").is_ok();
    Ok(format!(
        "{} {kept:?} {:?} {named:?} {text} {answered} {ran} {found} {heard:?} {shown}",
        clock::now(),
        state::keys("")?
    ))
}

fn session(id: &str) -> Session {
    Session { id: id.to_owned(), parent: None, workdir: "/".to_owned(), process: None, route_hint: None }
}

impl hooks::Guest for Frozen {
    fn read(call: hooks::Call) -> Result<hooks::Reading, Error> {
        let seen = session(&call.payload);
        Ok(hooks::Reading {
            events: vec![
                hooks::Event::Alive(seen.clone()),
                hooks::Event::Activity((call.payload.clone(), Activity::Idle)),
                hooks::Event::Rebound(("before".to_owned(), call.payload.clone())),
                hooks::Event::UserSpoke(call.payload.clone()),
                hooks::Event::Ended(call.payload),
            ],
            speaker: Some(seen),
            occasion: Some(Occasion::Resume),
            max_bytes: 1_000,
            attended: true,
            watches_wake_file: true,
            edits: vec!["a.rs".to_owned()],
        })
    }

    fn answer(_call: hooks::Call, _found: hooks::Findings) -> Result<hooks::Reply, Error> {
        Ok(hooks::Reply { stdout: Some(everything()?), stderr: None, exit_code: 0, shows_mail: false })
    }
}

impl sessions::Guest for Frozen {
    fn detect(seen: sessions::Caller) -> Result<Option<sessions::Detection>, Error> {
        let found =
            |id: String| sessions::Detection { session: session(&id), certainty: sessions::Certainty::Inherited };
        Ok(seen.meta.map(found))
    }

    fn discover() -> Result<Vec<Session>, Error> {
        Ok(vec![session("one")])
    }

    fn activity_of(id: String) -> Result<Activity, Error> {
        Err(Error::NotFound(id))
    }
}

impl context::Guest for Frozen {
    fn protocol(base: String, _moment: Occasion, _agent: Option<String>) -> Result<Option<String>, Error> {
        Ok(Some(base))
    }
}

impl push::Guest for Frozen {
    fn routes(_to: Session) -> Result<Vec<push::Route>, Error> {
        Ok(vec![push::Route {
            name: "message".to_owned(),
            carries: push::Carries::Message,
            proves: push::DeliveryStatus::Shown,
            when: vec![Activity::Idle, Activity::Busy],
            least: Priority::Normal,
            max_bytes: 10,
            timeout_ms: 5,
        }])
    }

    fn deliver(_to: Session, _route: String, _mail: Mail) -> Result<push::Receipt, Error> {
        Ok(push::Receipt { status: push::DeliveryStatus::Accepted, evidence: None })
    }

    fn confirm(_to: Session, _route: String, sent: push::Receipt) -> Result<push::Receipt, Error> {
        Ok(sent)
    }
}

impl install::Guest for Frozen {
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn propose(setup: install::Setup) -> Result<install::Plan, Error> {
        Ok(install::Plan { edits: Vec::new(), next_steps: setup.program })
    }

    fn check(_setup: install::Setup) -> Result<Vec<install::Finding>, Error> {
        let finding =
            install::Finding { severity: install::Severity::Ok, what: "fine".to_owned(), fix: Some("none".to_owned()) };
        Ok(vec![finding])
    }
}

export!(Frozen);
