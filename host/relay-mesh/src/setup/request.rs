//! The setup requested from an adapter, made from the command line before any file is read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use adapters::OwnInstallation;
use mcp::Profile;
use mesh::ports::harness::{Action, Finding, Scope, Server, Setup};

use crate::config::Origin;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::install_channel::shell_word;
use crate::own_path::own_path;

/// The name of our MCP server in a harness's settings.
pub(crate) const SERVER_NAME: &str = "relay-mesh";

/// The server's URL for a harness's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a URL of a server: write it as in `http://127.0.0.1:7423/mcp`")]
pub(crate) struct InvalidHostUrl(String);

impl ServerUrl {
    /// The URL at which this machine's server offers MCP.
    pub(crate) fn of_listener(listen: impl fmt::Display) -> ServerUrl {
        ServerUrl(format!("http://{listen}/mcp"))
    }
}

impl FromStr for ServerUrl {
    type Err = InvalidHostUrl;

    fn from_str(text: &str) -> Result<ServerUrl, InvalidHostUrl> {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        // A user name and password would end up in a file that a team commits.
        let fit = authority.is_some_and(|authority| !authority.is_empty() && !authority.contains('@'));
        if fit && text.chars().all(|character| character.is_ascii_graphic()) {
            Ok(ServerUrl(text.to_owned()))
        } else {
            Err(InvalidHostUrl(text.chars().filter(|character| !character.is_control()).take(80).collect()))
        }
    }
}

/// How the harness reaches our server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The harness starts its own, with these groups of tools; by default those of the settings.
    Stdio(Option<Profile>),
    /// It connects to the long-lived server.
    Http(ServerUrl),
}

/// How a harness must call this installation of relay-mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The program's absolute path, which lasts.
    pub(crate) program: PathBuf,
    /// The data folder, if the user chose another than the default.
    pub(crate) data_folder: Option<PathBuf>,
}

impl Installation {
    /// The current program, with the data folder chosen on this command line. One from a settings file need not be
    /// passed on: the harness's own processes read that file too.
    pub(crate) fn of(context: &Context) -> Result<Installation, CommandError> {
        let program = own_path(context.environment.get("PATH")).map_err(|source| Failure {
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

    /// The same for a harness that relay-mesh starts itself.
    pub(crate) fn for_runs(&self) -> OwnInstallation {
        OwnInstallation { program: vec![self.program.display().to_string()], environment: self.environment() }
    }

    /// Variables by which our own processes find the same data folder.
    fn environment(&self) -> Vec<(String, String)> {
        let folder = self.data_folder.as_deref().map(Path::display);
        folder.map(|folder| ("RELAY_DIR".to_owned(), folder.to_string())).into_iter().collect()
    }
}

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
    let environment = installation.environment();
    Setup { action, scope, server, server_name: SERVER_NAME.to_owned(), program: vec![program], environment }
}

/// The command line that writes a setup again: for the same scope and folder, with the same transport and tools.
/// `data_folder` is one that only this command line names. Of a setup that was only guessed, no address is named: it may
/// be that of another server.
pub(crate) fn command_line(
    harness: &str,
    setup: &Setup,
    is_guess: bool,
    folder: &Path,
    data_folder: Option<&Path>,
) -> String {
    let mut line = format!("relay-mesh install {harness}");
    match setup.scope {
        Scope::User => line.push_str(" --user"),
        Scope::Project => line.push_str(&format!(" --project {}", shell_word(folder))),
    }
    match &setup.server {
        Server::Http(_) if is_guess => line.push_str(" --http-url URL"),
        Server::Http(url) => line.push_str(&format!(" --http-url {}", shell_word(Path::new(url)))),
        Server::Stdio(words) => {
            if let Some(tools) = words.iter().skip_while(|word| *word != "--tools").nth(1) {
                line.push_str(&format!(" --tools {tools}"));
            }
        }
    }
    if let Some(folder) = data_folder {
        line.push_str(&format!(" --dir {}", shell_word(folder)));
    }
    line
}

/// A finding of an adapter, which knows neither the folder nor the transport: the install that its fix names becomes
/// the whole command line.
pub(crate) fn with_command_line(finding: Finding, harness: &str, line: &str) -> Finding {
    let short = format!("`relay-mesh install {harness}`");
    Finding { fix: finding.fix.map(|fix| fix.replace(&short, &format!("`{line}`"))), ..finding }
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Severity;

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
            &Reach::Http(ServerUrl::of_listener("127.0.0.1:7423")),
            Some("/data"),
            r#"http://127.0.0.1:7423/mcp; hooks by /opt/relay-mesh; [("RELAY_DIR", "/data")]"#,
        );
    }

    #[test]
    fn a_fix_is_a_command_line_that_can_be_copied() {
        let installation = Installation { program: PathBuf::from("/opt/relay-mesh"), data_folder: None };
        let tools = || Reach::Stdio(Some("reservations".parse().expect("a group")));
        let http = || Reach::Http(ServerUrl::of_listener("127.0.0.1:7423"));
        for (scope, reach, is_guess, folder, data_folder, expected) in [
            (Scope::Project, Reach::Stdio(None), false, ".", None, "--project ."),
            (Scope::User, tools(), true, ".", None, "--user --tools core,reservations"),
            (Scope::Project, http(), false, "/a b", None, "--project '/a b' --http-url http://127.0.0.1:7423/mcp"),
            (Scope::Project, http(), true, ".", None, "--project . --http-url URL"),
            (Scope::User, Reach::Stdio(None), false, ".", Some("/data"), "--user --dir /data"),
        ] {
            let setup = setup(Action::Install, scope, &reach, &installation);
            let line = command_line("codex", &setup, is_guess, Path::new(folder), data_folder.map(Path::new));
            assert_eq!(line, format!("relay-mesh install codex {expected}"));
            let fix = Some("run `relay-mesh install codex` again".to_owned());
            let finding = Finding { severity: Severity::Broken, what: "no server".to_owned(), fix };
            let told = with_command_line(finding, "codex", &line).fix;
            assert_eq!(told, Some(format!("run `relay-mesh install codex {expected}` again")));
        }
    }

    #[test]
    fn a_url_is_checked_at_the_edge() {
        for good in ["http://127.0.0.1:7423/mcp", "https://relay.example/mcp", "http://[::1]:7423/mcp"] {
            assert!(good.parse::<ServerUrl>().is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:7423", "http://", "http:///mcp", "ftp://x/", "http://a b/", "http://me:secret@x/mcp"]
        {
            assert!(bad.parse::<ServerUrl>().is_err(), "{bad}");
        }
    }
}
