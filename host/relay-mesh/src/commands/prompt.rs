//! `relay-mesh prompt`: print what an agent should know of the mesh.

use mesh::HookError;
use mesh::messages::protocol::{CHEAT_SHEET, PROTOCOL};
use mesh::ports::harness::Occasion;
use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::Show;

/// Print what an agent should know of the mesh, for a prompt
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    claude -p \"$(relay-mesh prompt) Now review the parser.\"\n  \
    relay-mesh prompt --harness claude-code\n\n\
    Without --harness it explains the commands, for an agent with a shell; with it, the MCP tools, in the words \
    that the harness's sessions get by themselves.")]
pub(crate) struct Args {
    /// Explain the MCP tools instead, in the words for this harness
    #[arg(long, value_name = "HARNESS")]
    harness: Option<String>,
}

#[derive(Debug, Serialize)]
struct PromptShape {
    prompt: String,
}

impl Show for PromptShape {
    fn text(&self) -> String {
        self.prompt.clone()
    }
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let prompt = match self.harness {
            None => CHEAT_SHEET.to_owned(),
            Some(name) => {
                let open = context.open()?;
                let harness = open.mesh.harnesses().get(&name).await.map_err(HookError::from)?;
                let harness = harness.ok_or(HookError::UnknownHarness(name))?;
                let told = harness.protocol(PROTOCOL, Occasion::Start, None).await.map_err(HookError::from)?;
                told.unwrap_or_else(|| PROTOCOL.to_owned())
            }
        };
        context.printer.show(&PromptShape { prompt })?;
        Ok(Exit::Success)
    }
}
