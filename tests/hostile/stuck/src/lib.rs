//! A component that never says who it is: it is stopped while it is being loaded.

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "adapter", generate_all });

use exports::relay::adapter::{context, hooks, identity, install, push, sessions};
use relay::adapter::types::{Activity, Error, Mail, Moment, Session};

struct Stuck;

fn nothing<T>() -> Result<T, Error> {
    Err(Error::Unsupported("nothing is done here".to_owned()))
}

impl identity::Guest for Stuck {
    fn describe() -> identity::About {
        loop {
            core::hint::black_box(0);
        }
    }
}

impl hooks::Guest for Stuck {
    fn read(_call: hooks::Call) -> Result<hooks::Reading, Error> {
        nothing()
    }

    fn answer(_call: hooks::Call, _found: hooks::Findings) -> Result<hooks::Reply, Error> {
        nothing()
    }
}

impl sessions::Guest for Stuck {
    fn detect(_seen: sessions::Sighting) -> Result<Option<sessions::Detection>, Error> {
        nothing()
    }

    fn discover() -> Result<Vec<Session>, Error> {
        nothing()
    }

    fn activity_of(_id: String) -> Result<Activity, Error> {
        nothing()
    }
}

impl context::Guest for Stuck {
    fn protocol(_base: String, _moment: Moment, _agent: Option<String>) -> Result<Option<String>, Error> {
        nothing()
    }
}

impl push::Guest for Stuck {
    fn routes(_to: Session) -> Result<Vec<push::Route>, Error> {
        nothing()
    }

    fn deliver(_to: Session, _route: String, _mail: Mail) -> Result<push::Receipt, Error> {
        nothing()
    }

    fn confirm(_to: Session, _route: String, _sent: push::Receipt) -> Result<push::Receipt, Error> {
        nothing()
    }
}

impl install::Guest for Stuck {
    fn present() -> Result<Option<String>, Error> {
        nothing()
    }

    fn propose(_setup: install::Setup) -> Result<install::Plan, Error> {
        nothing()
    }

    fn check(_setup: install::Setup) -> Result<Vec<install::Finding>, Error> {
        nothing()
    }
}

export!(Stuck);
