//! The adapter for GitHub Copilot CLI, whose agents are driven by the Agent Client Protocol.
//!
//! The README beside it says what it relies on and how each point was observed.

mod install;

use relay_mesh_sdk::optional::driver::acp::Acp;
use relay_mesh_sdk::optional::driver::{Action, Agent, Connection, Driver, Exchange, Extensions, Launch, Reach};
use relay_mesh_sdk::{About, Context, Error, Hooks, Identity, Push, Sessions};
use serde_json::{Map, Value, json};

/// The adapter for Copilot CLI.
pub struct Copilot;

const ACP: Acp = Acp { name: "acp" };

impl Identity for Copilot {
    fn describe() -> About {
        About {
            harness: "copilot".into(),
            title: "Copilot CLI".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            connection_per_session: true,
        }
    }
}

impl Sessions for Copilot {}
impl Context for Copilot {}
impl Push for Copilot {}
impl Hooks for Copilot {}

impl Driver for Copilot {
    fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
        let launch = Launch::of(ACP.name).option_if("model", agent.model.as_deref());
        let launch = match agent.reach {
            Reach::Look => launch.option("looking", []),
            Reach::Edit => launch.option("editing", []),
            Reach::Work => launch.option("working", []),
            Reach::Unguarded => launch.option("unguarded", []),
        };
        let launch = match agent.extensions {
            Extensions::None => launch,
            Extensions::Mesh | Extensions::All => {
                launch.option("own-server", []).file("servers.json", format!("{:#}\n", servers(agent)))
            }
        };
        Ok(vec![ACP.connection(launch)])
    }

    fn connect(_: &str) -> Result<Exchange, Error> {
        ACP.connect()
    }

    fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
        ACP.act(memory, action)
    }

    fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
        ACP.receive(memory, frames)
    }
}

/// Our server, as its settings have servers.
fn servers(agent: &Agent) -> Value {
    let ours = &agent.installation;
    let (command, arguments) = ours.server.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let variables = ours.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let server = json!({
        "type": "local",
        "command": command,
        "args": arguments,
        "env": variables.collect::<Map<_, _>>(),
        "tools": ["*"],
    });
    json!({"mcpServers": {&ours.server_name: server}})
}

relay_mesh_sdk::export!(Copilot, [driver], manifest = "../adapter.toml");

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::optional::driver::{Answer, Prompt, Reply};
    use relay_mesh_sdk::testing::{agent, converse};

    use super::*;

    /// With the real Copilot CLI and a model of its own provider settings.
    #[test]
    fn a_recorded_conversation_shows_its_user_the_command_and_not_the_models_description_of_it() {
        let prompt = |number: u32, text: &str| {
            let id = format!("5d20a1b2-0000-4000-8000-00000000000{number}");
            Action::Prompt(("ses_1".to_owned(), Prompt { id, text: text.to_owned(), by_user: true, context: None }))
        };
        let allow = || {
            let reply = Reply { question: String::new(), kept: None, answer: Answer::Allow };
            Action::Answer(("ses_1".to_owned(), reply))
        };
        let agent = Agent { extensions: Extensions::None, ..agent() };
        let actions = vec![
            Action::Begin(agent),
            prompt(1, "Say hello"),
            prompt(2, "Run it"),
            allow(),
            prompt(3, "Write it"),
            allow(),
        ];
        let said = converse::<Copilot>("acp", include_str!("../fixtures/driver/1.0.102-conversation.json"), actions);
        let expected = "ready, opened, idle, turn, busy, 1 shown, piece Hello., 1 answered, completed, idle, \
             turn, busy, 2 shown, needs-input, \
             asks Operation::Command(\"echo made > /home/u/app/made.txt\"), busy, \
             item Some(Operation::Command(\"echo made > /home/u/app/made.txt\")) None, \
             item None Some(true), piece Done., 2 answered, completed, idle, turn, busy, 3 shown, \
             needs-input, asks Operation::Files([\"/home/u/app/w.txt\"]), busy, \
             piece Info: /home/u/app/w.txt, item Some(Operation::Files([\"/home/u/app/w.txt\"])) None, \
             item None Some(true), piece Done., 3 answered, completed, idle";
        assert_eq!(said.expect("a conversation").join(", "), expected);
    }

    fn options(reach: Reach, extensions: Extensions) -> String {
        let offered = Copilot::connections(&Agent { reach, extensions, ..agent() }, None).expect("a connection");
        offered[0].start.choices.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_reach_is_kept_by_its_own_guards() {
        for (reach, expected) in [
            (Reach::Look, "looking"),
            (Reach::Edit, "editing"),
            (Reach::Work, "working"),
            (Reach::Unguarded, "unguarded"),
        ] {
            assert_eq!(options(reach, Extensions::None), expected);
            assert_eq!(options(reach, Extensions::Mesh), format!("{expected} own-server"));
        }
    }

    #[test]
    fn our_server_comes_by_its_settings() {
        let servers = servers(&agent());
        let ours = &servers["mcpServers"]["relay-mesh"];
        assert_eq!((&ours["command"], &ours["args"]), (&json!("/opt/bin/relay-mesh"), &json!(["mcp"])), "{servers}");
        assert_eq!(ours["env"]["RELAY_DIR"], "/srv/relay");
    }
}
