//! A component that does what the hook's name says: `answer:trap`, `read:loop`, `answer:file config notes.txt`. The
//! words after the colon name a misdeed or a host function.

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

mod deeds;
mod treachery;

use exports::relay::adapter::{context, hooks, identity, install, push, sessions};
use relay::adapter::types::{Activity, Error, Mail, Occasion, Session};

struct Hostile;

impl identity::Guest for Hostile {
    fn describe() -> identity::About {
        identity::About {
            harness: "hostile".to_owned(),
            title: "A hostile adapter".to_owned(),
            version: "0.1.0".to_owned(),
            aliases: Vec::new(),
            connection_per_session: true,
        }
    }
}

impl hooks::Guest for Hostile {
    fn read(call: hooks::Call) -> Result<hooks::Reading, Error> {
        let edits = match call.name.strip_prefix("read:") {
            Some(deed) => vec![deeds::perform(deed, &call)?],
            None => Vec::new(),
        };
        Ok(hooks::Reading { speaker: None, events: Vec::new(), occasion: None, max_bytes: 0, attended: false, watches_wake_file: false, edits })
    }

    fn answer(call: hooks::Call, _found: hooks::Findings) -> Result<hooks::Reply, Error> {
        let stdout = match call.name.strip_prefix("answer:") {
            Some(deed) => Some(deeds::perform(deed, &call)?),
            None => None,
        };
        Ok(hooks::Reply { stdout, stderr: None, exit_code: 0, shows_mail: false })
    }
}

impl sessions::Guest for Hostile {
    fn detect(seen: sessions::Caller) -> Result<Option<sessions::Detection>, Error> {
        if seen.meta.as_deref() == Some("sleep") {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
        Ok(None)
    }

    fn discover() -> Result<Vec<Session>, Error> {
        Ok(deeds::one_text_many_times())
    }

    fn activity_of(_id: String) -> Result<Activity, Error> {
        Ok(Activity::Idle)
    }
}

impl context::Guest for Hostile {
    fn protocol(base: String, _moment: Occasion, _agent: Option<String>) -> Result<Option<String>, Error> {
        Ok(Some(base))
    }
}

impl push::Guest for Hostile {
    fn routes(_to: Session) -> Result<Vec<push::Route>, Error> {
        Ok(Vec::new())
    }

    fn deliver(_to: Session, _route: String, _mail: Mail) -> Result<push::Receipt, Error> {
        Err(Error::Busy(7))
    }

    fn confirm(_to: Session, _route: String, sent: push::Receipt) -> Result<push::Receipt, Error> {
        Ok(sent)
    }
}

impl install::Guest for Hostile {
    fn present() -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn propose(_setup: install::Setup) -> Result<install::Plan, Error> {
        Ok(install::Plan { edits: Vec::new(), next_steps: Vec::new() })
    }

    fn check(_setup: install::Setup) -> Result<Vec<install::Finding>, Error> {
        Ok(Vec::new())
    }
}

export!(Hostile);
