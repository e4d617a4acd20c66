//! `relay-mesh spawn approve`: agree to an agent that another one wants.

use mesh::asks::{Ask, AskKind, ConsentFor};

use crate::commands::asks::answer::answer;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

pub(super) async fn approve(id: Option<&str>, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let is_request = |ask: &Ask| matches!(ask.what, AskKind::Consent(ConsentFor::Spawn(_)));
    let id = match id {
        Some(id) => {
            let ask = open.mesh.find_ask(id).await?;
            if !is_request(&ask) {
                return Err(CommandError::usage(
                    &format!("question `{id}` is about something else"),
                    "`relay-mesh asks` shows it; `relay-mesh asks answer ID ANSWER` answers",
                ));
            }
            ask.id
        }
        None => {
            let waiting: Vec<Ask> = open.mesh.asks().await?.into_iter().filter(is_request).collect();
            match waiting.as_slice() {
                [one] => one.id,
                [] => return Err(not_one("no agent waits for you to agree", Exit::NotFound)),
                several => {
                    let what = format!("{} agents wait for you to agree", several.len());
                    return Err(not_one(&what, Exit::Usage));
                }
            }
        }
    };
    answer(&id.to_string(), "allow", context).await
}

fn not_one(what: &str, exit: Exit) -> CommandError {
    let hint = Some("`relay-mesh asks` shows what waits for you, with the ids".to_owned());
    Failure { what: what.to_owned(), hint, exit, source: None }.into()
}
