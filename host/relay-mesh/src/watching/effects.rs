//! Does what the user asks for, by the functions that the commands use, and as the user alone.

use std::path::Path;

use mesh::messages::Draft;
use mesh::{MailReader, Search, Sent};
use view::live::{Compose, Effect, News};
use view::{SearchHitView, ThreadView, counted};

use super::browser;
use crate::answering;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exporting::{self, Form};
use crate::render::Show as _;
use crate::runs::permission;
use crate::wake::{Reaching, reach};

/// So many messages of a search are shown.
const FOUND: usize = 200;

/// What is lost if it is not done; none for what only the view would show.
pub(super) fn loss(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Send { compose, .. } => Some(format!("your message to {}", compose.to.join(", "))),
        Effect::Answer { words, .. } => Some(format!("your answer `{words}`")),
        Effect::Wake(agent) => Some(format!("waking {agent}")),
        Effect::Pause(agent) => Some(format!("pausing {agent}")),
        Effect::Resume(agent) => Some(format!("letting {agent} go on")),
        Effect::Export { file, .. } => Some(format!("writing {file}")),
        Effect::Browse(_) => Some("opening the page".to_owned()),
        Effect::Search(_) | Effect::Open(_) | Effect::Close | Effect::Quit => None,
    }
}

/// Does it, and says what came of it.
pub(super) async fn carry_out(context: &Context, open: &Open, effect: Effect) -> News {
    match perform(context, open, effect).await {
        Ok(news) => news,
        Err(error) => News::Failed(error.in_one_line()),
    }
}

async fn perform(context: &Context, open: &Open, effect: Effect) -> Result<News, CommandError> {
    Ok(match effect {
        Effect::Search(words) => {
            let search = Search {
                words: words.split_whitespace().map(str::to_owned).collect(),
                limit: FOUND,
                ..Search::default()
            };
            let found = open.mesh.search(&MailReader::User, &search).await?;
            let hits = found.hits.iter().map(|hit| SearchHitView::of(hit, &search.words)).collect();
            News::Found(words, hits, found.found)
        }
        Effect::Send { compose: Compose { to, thread, reply_to }, body } => {
            permission::only_the_user(context, open, "write").await?;
            let caller = context.principal(open, None).await?;
            let reply_to = match reply_to {
                Some(id) => Some(open.mesh.id_of(&caller, &id).await?),
                None => None,
            };
            let sent = open.mesh.send(&caller, &to, Draft { body, thread, reply_to, ..Draft::default() }).await?;
            News::Done(sent_sentence(&sent))
        }
        Effect::Answer { ask, words } => {
            let given = answering::give(&ask, &words, context, open).await?;
            let who = given.ask.by.agent.as_ref().map_or_else(|| "the asker".to_owned(), ToString::to_string);
            let begun = given.agreed?;
            let failed = begun.iter().find_map(|agreed| agreed.outcome.as_ref().err());
            match failed {
                Some(why) => News::Failed(format!("answered, but the agent could not be started: {why}")),
                None => News::Done(format!("answered {who}: {words}")),
            }
        }
        Effect::Wake(agent) => {
            permission::only_the_user(context, open, "wake an agent").await?;
            let woken = reach(Reaching { to: Some(agent), ..Reaching::default() }, context, open).await?;
            let text = woken.text();
            let last = text.lines().last().unwrap_or_default().to_owned();
            if woken.woken { News::Done(last) } else { News::Failed(text.replace('\n', "; ")) }
        }
        Effect::Pause(agent) => {
            permission::only_the_user(context, open, "pause agents").await?;
            let name = open.mesh.resolve(&agent, None).await?;
            open.mesh.pause(Some(&[name])).await?;
            News::Done(format!("{agent} is paused; what comes for it is kept"))
        }
        Effect::Resume(agent) => {
            permission::only_the_user(context, open, "resume agents").await?;
            let name = open.mesh.resolve(&agent, None).await?;
            open.mesh.resume(Some(&[name])).await?;
            News::Done(format!("{agent} goes on"))
        }
        Effect::Export { thread, file } => {
            let path = context.workdir.join(&file);
            let found = open.mesh.mail_thread(&MailReader::User, &thread, exporting::MOST).await?;
            let view = ThreadView::from(&found);
            exporting::write(&view, form_of(&path), &path)?;
            News::Done(format!("{} are in {}", counted(view.messages.len(), "message"), path.display()))
        }
        Effect::Browse(place) => {
            permission::only_the_user(context, open, "open the page").await?;
            let address = browser::address(context, open, &place)?;
            match browser::open_it(&address, &context.environment) {
                true => News::Done(format!("{place} is open in your browser")),
                false => {
                    News::Failed("no browser can be opened here: `relay-mesh ui --web` prints an address".to_owned())
                }
            }
        }
        // These are not effects on the mesh: `watching` takes them before.
        Effect::Open(_) | Effect::Close | Effect::Quit => News::Done(String::new()),
    })
}

fn sent_sentence(sent: &Sent) -> String {
    let names: Vec<String> = sent.recipients.iter().map(|recipient| recipient.to.to_string()).collect();
    let held = sent.recipients.iter().find_map(|recipient| recipient.held.as_ref());
    let held = held.map(|why| format!("; waking is held back: {why}")).unwrap_or_default();
    format!("sent to {}{held}", names.join(", "))
}

/// The form that a file's ending asks for.
fn form_of(path: &Path) -> Form {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("md") => Form::Md,
        Some("json") => Form::Json,
        Some(_) | None => Form::Html,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_says_its_form() {
        for (file, form) in [
            ("build.html", Form::Html),
            ("build.md", Form::Md),
            ("build.json", Form::Json),
            ("build", Form::Html),
            ("a.b/notes.txt", Form::Html),
        ] {
            assert_eq!(form_of(Path::new(file)), form, "{file}");
        }
    }
}
