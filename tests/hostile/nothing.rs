//! Every interface of an adapter except `identity`, answering that it does nothing: for components that the host
//! never asks for more. Expects the names that `wit_bindgen::generate!` makes.

/// Implements each interface except `identity` for a component.
macro_rules! does_nothing {
    ($component:ident) => {
        use exports::relay::adapter::{context, hooks, install, push, sessions};
        use relay::adapter::types::{Activity, Error, Mail, Occasion, Session};

        fn nothing<T>() -> Result<T, Error> {
            Err(Error::Unsupported("nothing is done here".to_owned()))
        }

        impl hooks::Guest for $component {
            fn read(_call: hooks::Call) -> Result<hooks::Reading, Error> {
                nothing()
            }

            fn answer(_call: hooks::Call, _found: hooks::Findings) -> Result<hooks::Reply, Error> {
                nothing()
            }
        }

        impl sessions::Guest for $component {
            fn detect(_seen: sessions::Caller) -> Result<Option<sessions::Detection>, Error> {
                nothing()
            }

            fn discover() -> Result<Vec<Session>, Error> {
                nothing()
            }

            fn activity_of(_id: String) -> Result<Activity, Error> {
                nothing()
            }
        }

        impl context::Guest for $component {
            fn protocol(_base: String, _moment: Occasion, _agent: Option<String>) -> Result<Option<String>, Error> {
                nothing()
            }
        }

        impl push::Guest for $component {
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

        impl install::Guest for $component {
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
    };
}
