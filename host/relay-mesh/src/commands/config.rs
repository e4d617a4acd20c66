//! `relay-mesh config`: every setting, its value, and where that came from.

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::settings::ConfigShape;

/// Show every setting and where it came from
#[derive(clap::Args, Debug)]
#[command(after_help = "The order: flags, environment, the project's .relay-mesh.toml (in this folder or the nearest \
    above), your own\n~/.config/relay-mesh/config.toml, defaults. An example of such a file:\n\n  \
    dir = \"~/.relay-mesh\"     # $RELAY_DIR, --dir; or store = \"files:DIR\"\n  \
    agent = \"alice\"           # $RELAY_AGENT, --from, --agent\n  \
    team = \"backend\"          # $RELAY_TEAM\n  \
    durability = \"disk\"       # or \"process\"; $RELAY_DURABILITY\n  \
    away-after = \"10m\"\n  \
    # How long mail waits for your next prompt if you stopped a turn; yours alone\n  \
    hold-after-stop = \"10m\"\n  \
    # How long a question waits for you before it is refused; yours alone\n  \
    ask-patience = \"10m\"\n  \
    # Whether mail starts turns in a session that no terminal shows; yours alone\n  \
    background = false\n  \
    plugins = [\"~/adapters\"]  # $RELAY_PLUGINS; yours alone, not a project's\n  \
    # What an MCP client is shown; $RELAY_TOOLS, --tools\n  \
    tools = \"core,reservations,commands\"\n  \
    # A project's name on every machine [default: its git remote]\n  \
    repository = \"acme/shop\"\n\n  \
    [adapters]                # those of others; yours alone\n  \
    # A list that `plugin search` reads: https or a file\n  \
    index = \"~/adapters.json\"\n  \
    refused-keys = []         # publishers whose keys were stolen\n\n  \
    [http]                    # yours alone, not a project's\n  \
    listen = \"127.0.0.1:7423\" # $RELAY_HTTP, --http\n  \
    token = true              # --no-token\n  \
    # Web pages that may call the server, with its token [default: none]\n  \
    origins = [\"http://localhost:6274\"]\n\n  \
    # With store = \"nats://HOST\"; yours alone; $RELAY_NATS_USER and so on\n  \
    [nats]\n  \
    # Or token, nkey, credentials: files, never the secrets themselves\n  \
    user = \"laptop-4f1c\"\n  \
    password = \"~/.config/relay-mesh/nats-password\"\n  \
    # And certificate and key, if the server asks for ours\n  \
    ca = \"~/.config/relay-mesh/ca.pem\"\n  \
    domain = \"relay\"          # replicas, prefix: docs/nats.md\n\n  \
    [loops]                   # when agents stop waking each other without a user\n  \
    hops = 24\n  \
    per-pair = 30\n  \
    per-agent = 120\n  \
    window = \"10m\"\n  \
    rest = \"30m\"              # a chain of messages ends after this much silence\n\n  \
    [reservations]            # a project may set this for all who work in it\n  \
    # Refuse an edit of what another agent holds, or \"advise\": only warn\n  \
    mode = \"enforce\"\n  \
    # Whether a file is reserved for the agent that edits it\n  \
    auto-reserve = false\n  \
    auto-reserve-ttl = \"10m\"\n\n  \
    [retention]               # yours alone; what `relay-mesh gc` deletes\n  \
    # Settled mail, events, ended sessions, silent agents\n  \
    keep = \"7d\"\n  \
    expire-after = \"30d\"      # unread mail\n  \
    automatic = true          # whether commands start a cleanup once a day\n\n  \
    [wake]                    # yours alone; docs/coordination.md\n  \
    gateway = [\"my-agent\", \"--text\", \"{text}\"]\n\n  \
    [codex]                   # threads of its tools; docs/codex-tools.md\n  \
    identity = \"reviewer\"     # $RELAY_CODEX_IDENTITY, --identity\n  \
    role = \"reviewer\"         # --role; and timeout, --timeout\n  \
    timeout = \"5m\"\n  \
    allow = [\"approval-policy=never\"] # yours alone, as program is\n\n  \
    [roles.reviewer]          # a project may only narrow what it may do\n  \
    harness = \"codex\"\n  \
    effort = \"high\"           # and model, approval-policy\n  \
    sandbox = \"read-only\"\n  \
    developer-instructions = \"~/prompts/reviewer.md\"\n\n\
    Examples:\n  \
    relay-mesh config\n  \
    relay-mesh config --json | jq -r '.settings[] | select(.origin != \"default\") | .key'")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        context.printer.show(&ConfigShape::from(&context.settings))?;
        Ok(Exit::Success)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// The example as it is printed, at the width of a small terminal.
    fn printed() -> String {
        let mut cli = crate::cli::Cli::command().term_width(80);
        cli.build();
        let help = cli.find_subcommand_mut("config").expect("the command").render_long_help().to_string();
        let (_, example) = help.split_once("An example of such a file:\n").expect("the example begins");
        let (example, _) = example.split_once("\nExamples:\n").expect("the example ends");
        example.to_owned()
    }

    #[test]
    fn the_example_is_a_file_of_settings_as_it_is_copied() {
        let example = printed();
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("config.toml");
        std::fs::write(&path, &example).expect("a file");
        let unknown = crate::config::unknown_in(&path).expect("it is well formed");
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(example.contains("hops = 24") && example.lines().count() > 40, "{example}");
        assert!(example.lines().all(|line| line.len() <= 80), "{example}");
    }
}
