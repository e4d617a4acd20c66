//! What an adapter is asked for: made from the command line, before anything is looked at.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mcp::Profile;
use mesh::harness::{Action, Scope, Server, Setup};

use crate::config::Origin;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// What our server is called in a harness's settings.
pub(crate) const SERVER_NAME: &str = "relay-mesh";

/// An address of the server, as it is put into a harness's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostUrl(String);

/// Why text is not such an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a URL of a server: write it as in `http://127.0.0.1:7423/mcp`")]
pub(crate) struct InvalidHostUrl(String);

impl HostUrl {
    /// The address at which the server of this machine serves MCP.
    pub(crate) fn of_listener(listen: impl fmt::Display) -> HostUrl {
        HostUrl(format!("http://{listen}/mcp"))
    }
}

impl FromStr for HostUrl {
    type Err = InvalidHostUrl;

    fn from_str(text: &str) -> Result<HostUrl, InvalidHostUrl> {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        // A name and a password would end up in a file that a team commits.
        let fit = authority.is_some_and(|authority| !authority.is_empty() && !authority.contains('@'));
        if fit && text.chars().all(|character| character.is_ascii_graphic()) {
            Ok(HostUrl(text.to_owned()))
        } else {
            Err(InvalidHostUrl(text.chars().filter(|character| !character.is_control()).take(80).collect()))
        }
    }
}

/// How the harness shall reach our server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It starts one for itself, which shows these groups of tools; those of the settings, where nothing is said.
    Stdio(Option<Profile>),
    /// It connects to the server.
    Http(HostUrl),
}

/// This installation of relay-mesh, as a harness must call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The absolute path of the program.
    pub(crate) program: PathBuf,
    /// The data folder, where the person chose one that is not the default.
    pub(crate) data_folder: Option<PathBuf>,
}

impl Installation {
    /// The program that runs now, with the data folder that this command line chose. One that a
    /// settings file names needs no handing on: the harness's own processes read that file too.
    pub(crate) fn of(context: &Context) -> Result<Installation, CommandError> {
        let program = std::env::current_exe().map_err(|source| Failure {
            what: "the path of this very program cannot be told".to_owned(),
            hint: Some("start it by its full path".to_owned()),
            exit: Exit::Failure,
            source: Some(Box::new(source)),
        })?;
        let dir = &context.settings.dir;
        let data_folder = match dir.origin {
            Origin::Flags | Origin::Environment => Some(dir.value.clone()),
            Origin::Project(_) | Origin::User(_) | Origin::Default => None,
        };
        Ok(Installation { program, data_folder })
    }
}

/// What the adapter is asked for.
pub(crate) fn setup(action: Action, scope: Scope, reach: &Reach, installation: &Installation) -> Setup {
    let program = installation.program.display().to_string();
    let server = match reach {
        Reach::Stdio(tools) => {
            let mut words = vec![program.clone(), "mcp".to_owned()];
            words.extend(tools.iter().flat_map(|tools| ["--tools".to_owned(), tools.to_string()]));
            Server::Stdio(words)
        }
        Reach::Http(url) => Server::Http(url.0.clone()),
    };
    let folder = installation.data_folder.as_deref().map(Path::display);
    let environment = folder.map(|folder| ("RELAY_DIR".to_owned(), folder.to_string())).into_iter().collect();
    Setup { action, scope, server, server_name: SERVER_NAME.to_owned(), program: vec![program], environment }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reach: &Reach, data_folder: Option<&str>, expected: &str) {
        let program = PathBuf::from("/opt/relay-mesh");
        let installation = Installation { program, data_folder: data_folder.map(PathBuf::from) };
        let setup = setup(Action::Install, Scope::Project, reach, &installation);
        let server = match &setup.server {
            Server::Stdio(words) => words.join(" "),
            Server::Http(url) => url.clone(),
        };
        assert_eq!(format!("{server}; hooks by {}; {:?}", setup.program.join(" "), setup.environment), expected);
    }

    #[test]
    fn a_harness_is_told_how_to_reach_this_very_program() {
        check(&Reach::Stdio(None), None, "/opt/relay-mesh mcp; hooks by /opt/relay-mesh; []");
        let tools = Some("reservations".parse().expect("a group"));
        check(
            &Reach::Stdio(tools),
            None,
            "/opt/relay-mesh mcp --tools core,reservations; hooks by /opt/relay-mesh; []",
        );
        check(
            &Reach::Http(HostUrl::of_listener("127.0.0.1:7423")),
            Some("/data"),
            r#"http://127.0.0.1:7423/mcp; hooks by /opt/relay-mesh; [("RELAY_DIR", "/data")]"#,
        );
    }

    #[test]
    fn a_url_is_checked_at_the_edge() {
        for good in ["http://127.0.0.1:7423/mcp", "https://relay.example/mcp", "http://[::1]:7423/mcp"] {
            assert!(good.parse::<HostUrl>().is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:7423", "http://", "http:///mcp", "ftp://x/", "http://a b/", "http://me:secret@x/mcp"]
        {
            assert!(bad.parse::<HostUrl>().is_err(), "{bad}");
        }
    }
}
