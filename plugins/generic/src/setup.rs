//! Setup by hand: we edit no file and give the user the exact text to paste.

use relay_mesh_sdk::install::{Server, Setup};
use relay_mesh_sdk::plan::{Draft, token_command};
use relay_mesh_sdk::{Error, Install};

use crate::Generic;
use crate::clients::CLIENTS;

impl Install for Generic {
    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        for client in CLIENTS {
            draft.next_step(client.step(setup));
        }
        draft.next_step(match setup.server {
            Server::Stdio(_) => "Restart the client, then ask its agent to call register_agent.".to_owned(),
            Server::Http(_) => format!(
                "Keep `relay-mesh serve` running, put what `{}` prints in place of TOKEN, restart the \
                 client, then ask its agent to call register_agent.",
                token_command(setup)
            ),
        });
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        draft.next_step(format!(
            "Remove the server `{}` from the settings of your client; relay-mesh has not written there.",
            setup.server_name
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::install::{Action, Scope};

    use super::*;

    fn setup(action: Action, scope: Scope, server: Server) -> Setup {
        Setup {
            action,
            scope,
            server,
            server_name: "relay-mesh".into(),
            program: vec!["/opt/relay-mesh".into()],
            environment: vec![("RELAY_DIR".into(), "/srv/relay".into())],
        }
    }

    fn stdio() -> Server {
        Server::Stdio(vec!["/opt/relay-mesh".into(), "mcp".into()])
    }

    fn steps(action: Action, scope: Scope, server: Server) -> String {
        let plan = Generic::propose(&setup(action, scope, server)).expect("there is a plan");
        assert_eq!(plan.edits, [], "nothing is ever edited");
        plan.next_steps.join("\n\n")
    }

    #[test]
    fn stdio_in_a_project() {
        insta::assert_snapshot!(steps(Action::Install, Scope::Project, stdio()));
    }

    #[test]
    fn http_for_a_user() {
        let server = Server::Http("http://127.0.0.1:7423/mcp".into());
        insta::assert_snapshot!(steps(Action::Install, Scope::User, server));
    }

    #[test]
    fn removing_is_left_to_the_person() {
        insta::assert_snapshot!(steps(Action::Remove, Scope::User, stdio()));
    }

    #[test]
    fn it_is_on_no_machine_in_particular() {
        assert_eq!(Generic::present(), Ok(None));
        assert_eq!(Generic::check(&setup(Action::Install, Scope::User, stdio())), Ok(Vec::new()));
    }
}
