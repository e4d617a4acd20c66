//! `relay-mesh asks answer`.

use mesh::ports::machine::Machine as _;

use crate::answering::{Answered, give};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::asks::AskShape;
use crate::shapes::driven::AgreedShape;

pub(in crate::commands) async fn answer(id: &str, words: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let Answered { ask, agreed } = give(id, words, context, &open).await?;
    context.printer.show(&AskShape::of(&ask, open.machine.now()))?;
    let mut exit = Exit::Success;
    for agreed in agreed? {
        if agreed.outcome.is_err() {
            exit = Exit::Failure;
        }
        context.printer.show(&AgreedShape::of(&agreed))?;
    }
    Ok(exit)
}
