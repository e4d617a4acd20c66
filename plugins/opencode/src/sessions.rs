//! Which session makes a call. Tool calls carry the connector's ticket, which the host reads by itself. In a shell
//! that an agent started, the connector sets the session's id as a variable.

use relay_mesh_sdk::sessions::{Caller, Detection, Transport};
use relay_mesh_sdk::{Error, Session, Sessions, dated_state};

use crate::OpenCode;

/// The state key for when an OpenCode without plugins last called.
const PURE: &str = "without-plugins";

impl Sessions for OpenCode {
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        match seen.transport {
            Transport::CommandLine => {}
            Transport::Stdio | Transport::Http => {
                // An OpenCode that was started from an agent's shell inherits that session's variable, which says
                // nothing about its own sessions.
                if seen.variable("OPENCODE_PURE").is_some_and(|value| value == "1" || value == "true") {
                    dated_state::write(PURE, &())?;
                }
                return Ok(None);
            }
        }
        let Some(session) = seen.variable("RELAY_OPENCODE_SESSION") else { return Ok(None) };
        let workdir = seen.workdir.clone().unwrap_or_default();
        let process = seen.variable("OPENCODE_PID").and_then(|pid| pid.parse().ok());
        Ok(Some(Detection::inherited(Session { process, ..Session::new(session, workdir) })))
    }
}

/// When an OpenCode without plugins last called, in milliseconds since the Unix epoch.
pub(crate) fn last_without_plugins() -> Result<Option<u64>, Error> {
    Ok(dated_state::read_dated::<()>(PURE)?.map(|(at, ())| at))
}

/// Records that a connector made a call, so plugins are loaded.
pub(crate) fn plugins_are_loaded() -> Result<(), Error> {
    dated_state::forget(PURE)
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::Fakes;

    use super::*;

    #[track_caller]
    fn check(transport: Transport, environment: &[(&str, &str)], expected: Option<&str>) {
        let caller = Caller {
            transport,
            client_name: Some("opencode".into()),
            client_version: Some("1.18.33".into()),
            meta: Some(r#"{"progressToken":1}"#.into()),
            headers: Vec::new(),
            tool: Some("register_agent".into()),
            arguments: Some("{}".into()),
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            workdir: Some("/w".into()),
        };
        let detected = OpenCode::detect(&caller).expect("detected");
        assert_eq!(detected.map(|detection| detection.session.id).as_deref(), expected);
    }

    const SHELL: &[(&str, &str)] = &[("RELAY_OPENCODE_SESSION", "ses_1"), ("OPENCODE_PID", "7")];

    #[test]
    fn a_shell_belongs_to_its_session_and_a_server_to_none() {
        let _host = Fakes::default().start();
        check(Transport::CommandLine, SHELL, Some("ses_1"));
        check(Transport::CommandLine, &[], None);
        check(Transport::Stdio, SHELL, None);
        check(Transport::Http, &[], None);
    }

    #[test]
    fn an_open_code_without_plugins_is_noted_until_a_connector_speaks() {
        let _host = Fakes::default().at(5).start();
        check(Transport::Stdio, &[("OPENCODE_PURE", "1")], None);
        assert_eq!(last_without_plugins().expect("read"), Some(5));
        plugins_are_loaded().expect("written");
        assert_eq!(last_without_plugins().expect("read"), None);
    }
}
