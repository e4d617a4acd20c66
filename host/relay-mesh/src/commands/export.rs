//! `relay-mesh export`: a conversation as one file.

use std::path::PathBuf;

use mesh::names::AgentName;
use view::ThreadView;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::exporting::{Form, MOST, text, write};
use crate::runs::permission::mail_reader;
use crate::shapes::counted;

/// Write a conversation as one file: a page, Markdown or JSON
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh export build --format html --out build.html\n  \
    relay-mesh export 01JD8Z3K5V0000000000000000 --format md\n  \
    relay-mesh export build --format json | jq '.messages | length'\n\n\
    The page needs no other file, loads nothing and runs nothing, whatever agents wrote into it. The last 10,000 messages \
    are written. A file that is there is replaced, whole or not at all; only you may read it.")]
pub(crate) struct Args {
    /// A thread's name, or the id of one of its messages; the first characters of the id are enough
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The form
    #[arg(long, value_enum)]
    format: Form,
    /// The file [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Look as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let reader = mail_reader(context, &open, self.agent).await?;
        let thread = open.mesh.mail_thread(&reader, &self.thread, MOST).await?;
        let view = ThreadView::from(&thread);
        match &self.out {
            None => context.printer.data(&text(&view, self.format)?)?,
            Some(path) => {
                write(&view, self.format, path)?;
                let are_in = if view.messages.len() == 1 { "is in" } else { "are in" };
                context.printer.say(&format!(
                    "{} {are_in} {}",
                    counted(view.messages.len(), "message"),
                    path.display()
                ));
            }
        }
        if thread.earlier > 0 {
            context.printer.say(&format!("{} earlier messages are left out", thread.earlier));
        }
        context.warn_of_damage(thread.damaged);
        Ok(Exit::Success)
    }
}
