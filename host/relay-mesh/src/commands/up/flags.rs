//! Whether the server that runs does what the flags of `up` ask for. A server keeps the flags by which it was started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::config::{Origin, Setting, Settings};
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::server::ServerRecord;
use crate::server::record::Serves;

/// Refuses flags that a running server would not heed.
pub(super) fn check(settings: &Settings, record: &ServerRecord) -> Result<(), CommandError> {
    let unmet = unmet(settings, record);
    if unmet.is_empty() {
        return Ok(());
    }
    Err(Failure {
        what: format!("the running server {}", unmet.join(", and it ")),
        hint: Some("stop it by `relay-mesh down`, and then start it with these flags".to_owned()),
        exit: Exit::Failure,
        source: None,
    }
    .into())
}

/// What the running server does otherwise, for each flag that was given.
fn unmet(settings: &Settings, record: &ServerRecord) -> Vec<String> {
    let wanted = Serves::of(settings);
    let serves = record.serves.as_ref();
    let mut unmet = Vec::new();
    if by_flag(&settings.listen) && !listens_at(&record.listen, settings.listen.value) {
        unmet.push(format!("listens at {}, and not at {}", record.listen, settings.listen.value));
    }
    if by_flag(&settings.plugins) && serves.is_none_or(|serves| folders(serves) != folders(&wanted)) {
        let adapters = wanted.plugins.join(", ");
        unmet.push(match serves {
            Some(serves) if serves.plugins.is_empty() => format!("takes no adapters from {adapters}"),
            Some(serves) => format!("takes adapters from {}, and not from {adapters}", serves.plugins.join(", ")),
            None => format!("does not say whether it takes adapters from {adapters}"),
        });
    }
    if by_flag(&settings.tools) && serves.is_none_or(|serves| serves.tools != wanted.tools) {
        unmet.push(match serves {
            Some(serves) => format!("offers the tools {}, and not {}", serves.tools, wanted.tools),
            None => format!("does not say whether it offers the tools {}", wanted.tools),
        });
    }
    // There is only a flag for none.
    if by_flag(&settings.token) && serves.is_none_or(|serves| serves.asks_for_token != wanted.asks_for_token) {
        unmet.push(match serves {
            Some(_) => "asks for a token".to_owned(),
            None => "does not say whether it asks for a token".to_owned(),
        });
    }
    unmet
}

fn by_flag<T>(setting: &Setting<T>) -> bool {
    setting.origin == Origin::Flags
}

/// Whether a server that listens there is what was asked for. Port 0 asks for any port.
fn listens_at(listen: &str, wanted: SocketAddr) -> bool {
    let is_wanted = |at: SocketAddr| at.ip() == wanted.ip() && (wanted.port() == 0 || at.port() == wanted.port());
    listen.parse().is_ok_and(is_wanted)
}

/// The folders themselves, however they were named.
fn folders(serves: &Serves) -> Vec<PathBuf> {
    let real = |folder: &String| Path::new(folder).canonicalize().unwrap_or_else(|_| PathBuf::from(folder));
    serves.plugins.iter().map(real).collect()
}

#[cfg(test)]
mod tests {
    use mesh::ports::machine::Process;

    use super::*;
    use crate::config::{TokenUse, Values};
    use crate::environment::Environment;

    /// The settings of `up` with these flags, in a home without any.
    fn settings(flags: Values) -> Settings {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().display().to_string();
        let variables = [("HOME", home.as_str()), ("RELAY_TOOLS", "core,asks"), ("RELAY_HTTP", "127.0.0.1:9")];
        Settings::load(flags, &Environment::from(variables), folder.path()).expect("settings")
    }

    fn record(serves: Option<Serves>) -> ServerRecord {
        ServerRecord {
            process: Process { pid: 1, start: 1, space: None },
            machine: "here".to_owned(),
            listen: "127.0.0.1:7423".to_owned(),
            url: "http://127.0.0.1:7423/mcp".to_owned(),
            events: None,
            store: None,
            serves,
            version: "0.1.0".to_owned(),
        }
    }

    fn flags() -> Values {
        Values {
            listen: Some("127.0.0.1:7423".parse().expect("an address")),
            plugins: Some(vec!["/adapters".into()]),
            token: Some(TokenUse::Off),
            tools: Some("core,runs".parse().expect("a group")),
            ..Values::default()
        }
    }

    #[test]
    fn the_same_flags_again_are_met_and_what_no_flag_says_is_not_compared() {
        let same = settings(flags());
        let running = record(Some(Serves::of(&same)));
        assert_eq!(unmet(&same, &running), Vec::<String>::new());
        assert_eq!(unmet(&settings(Values::default()), &running), Vec::<String>::new());
        assert_eq!(unmet(&settings(Values::default()), &record(None)), Vec::<String>::new());
        let any_port = Values { listen: Some("127.0.0.1:0".parse().expect("an address")), ..Values::default() };
        assert_eq!(unmet(&settings(any_port), &running), Vec::<String>::new());
    }

    #[test]
    fn a_flag_that_the_running_server_does_not_heed_is_refused() {
        let usual = record(Some(Serves { tools: "core".to_owned(), asks_for_token: true, plugins: Vec::new() }));
        let other = Values { listen: Some("127.0.0.1:8000".parse().expect("an address")), ..flags() };
        assert_eq!(
            unmet(&settings(other), &usual),
            [
                "listens at 127.0.0.1:7423, and not at 127.0.0.1:8000",
                "takes no adapters from /adapters",
                "offers the tools core, and not core,runs",
                "asks for a token",
            ]
        );
        let refused = check(&settings(Values { token: Some(TokenUse::Off), ..Values::default() }), &usual);
        assert_eq!(refused.map_err(|error| error.to_string()), Err("the running server asks for a token".to_owned()));
        // An older server does not say how it serves.
        assert_eq!(unmet(&settings(flags()), &record(None)).len(), 3);
    }
}
