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
    dir = \"~/.relay-mesh\"            # $RELAY_DIR, --dir; or store = \"files:DIR\", $RELAY_STORE\n  \
    agent = \"alice\"                  # $RELAY_AGENT, --from, --agent\n  \
    team = \"backend\"                 # $RELAY_TEAM\n  \
    durability = \"disk\"              # or \"process\"; $RELAY_DURABILITY\n  \
    away-after = \"10m\"\n  \
    hold-after-stop = \"10m\"          # mail waits so long for your next prompt if you stopped a turn; yours alone\n  \
    background = false                # whether mail may have a session work that nobody has on screen; yours alone\n  \
    plugins = [\"~/adapters\"]         # $RELAY_PLUGINS; yours alone, not a project's\n  \
    tools = \"core,reservations,commands\"  # $RELAY_TOOLS, --tools: what an MCP client is shown\n  \
    repository = \"acme/shop\"         # a project's name on every machine [default: its git remote]\n\n  \
    [http]                           # yours alone, not a project's\n  \
    listen = \"127.0.0.1:7423\"        # $RELAY_HTTP, --http\n  \
    token = true                     # --no-token\n\n  \
    [nats]                           # with store = \"nats://HOST\"; yours alone; $RELAY_NATS_USER …, --nats-option user=…\n  \
    user = \"laptop-4f1c\"            # or token, nkey, credentials: files, never the secrets themselves\n  \
    password = \"~/.config/relay-mesh/nats-password\"\n  \
    ca = \"~/.config/relay-mesh/ca.pem\" # certificate and key, if the server asks for ours\n  \
    domain = \"relay\"                # replicas, prefix: docs/nats.md\n\n  \
    [loops]                          # when agents stop waking each other without a user\n  \
    hops = 24\n  \
    per-pair = 30\n  \
    per-agent = 120\n  \
    window = \"10m\"\n  \
    rest = \"30m\"                    # a chain of messages ends after this much silence\n\n  \
    [reservations]                   # a project may set this for everyone who works in it\n  \
    mode = \"enforce\"               # or \"advise\": refuse an edit of what another agent holds, or only warn\n  \
    auto-reserve = false               # whether a file is reserved for the agent that edits it\n  \
    auto-reserve-ttl = \"10m\"\n\n  \
    [retention]                      # yours alone, not a project's; what `relay-mesh gc` deletes\n  \
    keep = \"7d\"                      # settled mail, events, ended sessions, silent agents\n  \
    expire-after = \"30d\"             # unread mail\n  \
    automatic = true                 # whether commands start a cleanup once a day\n\n  \
    [wake]                           # yours alone, not a project's; docs/coordination.md\n  \
    gateway = [\"my-agent\", \"--text\", \"{text}\"]\n\n\
    Examples:\n  \
    relay-mesh config\n  \
    relay-mesh config --json | jq -r '.settings[] | select(.origin != \"default\") | .key'")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        context.printer.show(&ConfigShape::from(&context.settings))?;
        Ok(Exit::Success)
    }
}
