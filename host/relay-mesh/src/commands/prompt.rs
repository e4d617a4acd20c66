//! `relay-mesh prompt`: what an agent should know of the mesh.

use mesh::HookError;
use mesh::harness::Occasion;
use mesh::protocol::{CHEAT_SHEET, PROTOCOL};
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
    Without a harness it tells of the commands, for an agent with a shell; with one, of the tools, in the words \
    that the harness's sessions are told by themselves.")]
pub(crate) struct Args {
    /// In the words for this harness, which has the tools
    #[arg(long, value_name = "HARNESS")]
    harness: Option<String>,
}

/// The text.
#[derive(Debug, Serialize)]
struct PromptShape {
    /// As it goes into a prompt.
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
