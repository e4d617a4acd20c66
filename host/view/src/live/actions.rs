//! What can be done with what is chosen, and why not.

use mesh::names::AgentName;

use super::agents::AgentRow;
use super::press::Effect;
use super::rows::Tab;
use super::state::{Live, Middle, Pane};
use super::typing::{Compose, Prompt, Typing, file_name};
use crate::AskDetail;

/// What a person can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write to an agent, or to everybody in a conversation.
    Compose,
    /// Answer a question in words.
    Answer,
    /// Agree to a question.
    Yes,
    /// Refuse a question.
    No,
    /// Wake an agent.
    Wake,
    /// Pause an agent, or let it go on.
    Pause,
    /// Write a conversation into a file.
    Export,
    /// Show it on the page, in a browser.
    Browse,
}

/// What comes of an action that can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Something has to be typed first.
    Type(Typing),
    /// It is done outside.
    Effect(Effect),
    /// The question has to be seen first.
    Look(String),
}

impl Live {
    /// What comes of an action; the reason if it cannot be done.
    pub fn can(&self, action: Action) -> Result<Ready, String> {
        match action {
            Action::Compose => self.addressed().map(|compose| Ready::Type(Typing::of(Prompt::Compose(compose), ""))),
            Action::Answer => {
                let ask = self.asked()?;
                let prompt = Prompt::Answer { ask: ask.id.clone(), offers: ask.answers.join(", ") };
                Ok(Ready::Type(Typing::of(prompt, "")))
            }
            Action::Yes => self.agreed(self.asked()?, yes),
            Action::No => self.agreed(self.asked()?, no),
            Action::Wake => {
                let agent = self.agent_to("wake")?;
                if agent.detail.paused {
                    return Err(format!("{} is paused: `p` lets it go on", agent.name()));
                }
                Ok(Ready::Effect(Effect::Wake(agent.name().to_owned())))
            }
            Action::Pause => {
                let agent = self.agent_to("pause")?;
                let (machine, here) = (&agent.detail.machine, &self.overview.machine);
                match agent.detail.paused {
                    true => Ok(Ready::Effect(Effect::Resume(agent.name().to_owned()))),
                    false if machine != here => {
                        Err(format!("{} runs on the machine {machine}: pause it there", agent.name()))
                    }
                    false => Ok(Ready::Effect(Effect::Pause(agent.name().to_owned()))),
                }
            }
            Action::Export => {
                let thread = self.thread_at_hand().ok_or("choose a conversation first")?;
                let typing = Typing::of(Prompt::Export { thread: thread.to_owned() }, &file_name(thread));
                Ok(Ready::Type(typing))
            }
            Action::Browse => Ok(Ready::Effect(Effect::Browse(self.place_at_hand()))),
        }
    }

    /// The address on the page of what is chosen.
    fn place_at_hand(&self) -> String {
        if self.about == Pane::Agents {
            let agent = self.chosen_agent().map(|agent| agent.name().to_owned());
            return agent.map_or_else(|| "/ui/".to_owned(), |name| place("agents", &name));
        }
        match (self.middle(), self.thread_at_hand()) {
            (Middle::Thread(_), Some(thread)) => match self.chosen_message() {
                Some(one) => place("messages", &one.message.id),
                None => place("threads", thread),
            },
            (_, Some(thread)) => place("threads", thread),
            (Middle::List(Tab::Threads) | Middle::Found(_) | Middle::Thread(_), None) => "/ui/".to_owned(),
            (Middle::List(tab), None) => format!("/ui/{}", tab.word()),
        }
    }

    /// Nothing is answered that was not on screen.
    fn agreed(&self, ask: &AskDetail, words: fn(&AskDetail) -> Option<String>) -> Result<Ready, String> {
        match words(ask) {
            None => Err("that question wants words or a choice: press `a`".to_owned()),
            Some(_) if self.about != Pane::Middle || self.tab() != Tab::Asks => Ok(Ready::Look(ask.id.clone())),
            Some(words) => Ok(Ready::Effect(Effect::Answer { ask: ask.id.clone(), words })),
        }
    }

    /// The question at hand: the chosen one, else the oldest of the chosen agent.
    fn asked(&self) -> Result<&AskDetail, String> {
        if self.about == Pane::Agents {
            let agent = self.agent_to("answer")?;
            let asks = &self.overview.asks;
            let own = asks.iter().find(|ask| ask.by.agent.as_deref() == Some(agent.name()));
            return own.ok_or_else(|| format!("{} asks nothing", agent.name()));
        }
        if self.tab() != Tab::Asks {
            return Err("choose a question first, or an agent that asks one".to_owned());
        }
        if self.items[Tab::Asks.number()].has_slipped() {
            return Err("the question that you had chosen is gone; another one is chosen now".to_owned());
        }
        let chosen = self.chosen_item(Tab::Asks).map(|at| &self.overview.asks[at]);
        chosen.ok_or_else(|| "no question waits for you".to_owned())
    }

    /// The chosen agent, for an action.
    fn agent_to(&self, action: &str) -> Result<&AgentRow, String> {
        if self.about != Pane::Agents {
            return Err(format!("choose the agent to {action} first"));
        }
        if self.agent.has_slipped() {
            return Err("the agent that you had chosen is gone; another one is chosen now".to_owned());
        }
        self.chosen_agent().ok_or_else(|| "no agent is here".to_owned())
    }

    /// The conversation that is open or chosen.
    fn thread_at_hand(&self) -> Option<&str> {
        match self.middle() {
            Middle::Thread(open) => Some(&open.name),
            Middle::Found(found) => {
                let hits = found.hits.as_deref()?;
                hits.get(found.chosen.at()).map(|hit| hit.message.thread.as_str())
            }
            Middle::List(Tab::Threads) => self.chosen_item(Tab::Threads).map(|at| self.threads[at].thread.as_str()),
            Middle::List(_) => None,
        }
    }

    /// To whom a message would go, in which conversation, and in reply to what.
    fn addressed(&self) -> Result<Compose, String> {
        if self.about == Pane::Agents {
            let to = vec![self.agent_to("write to")?.name().to_owned()];
            return Ok(Compose { to, ..Compose::default() });
        }
        let shell = AgentName::shell();
        // What the user sent is from `shell`, which has no inbox.
        let addressed = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            names.filter(|name| *name != shell.as_str()).map(str::to_owned).collect()
        };
        let thread = self.thread_at_hand();
        let mut reply_to = None;
        let to = match self.middle() {
            Middle::Thread(_) => match self.chosen_message() {
                Some(one) if one.message.from != shell.as_str() => {
                    reply_to = Some(one.message.id.clone());
                    vec![one.message.from.clone()]
                }
                Some(one) => addressed(&mut one.recipients.iter().map(|recipient| recipient.to.as_str())),
                None => Vec::new(),
            },
            Middle::Found(found) => {
                let hit = found.hits.as_deref().and_then(|hits| hits.get(found.chosen.at()));
                addressed(&mut hit.iter().map(|hit| hit.message.from.as_str()))
            }
            Middle::List(Tab::Threads) => {
                let agents = self.chosen_item(Tab::Threads).map(|at| &self.threads[at].agents);
                addressed(&mut agents.into_iter().flatten().map(String::as_str))
            }
            Middle::List(_) => Vec::new(),
        };
        if to.is_empty() {
            return Err("choose an agent or a conversation first".to_owned());
        }
        Ok(Compose { to, thread: thread.map(str::to_owned), reply_to })
    }
}

/// An address on the page. Whatever a name is made of, it is one part of the path.
fn place(what: &str, name: &str) -> String {
    let mut address = format!("/ui/{what}/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => address.push(char::from(byte)),
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

/// The words that agree to a question; none if it has no such answer.
pub(super) fn yes(ask: &AskDetail) -> Option<String> {
    if ask.answers.iter().any(|answer| answer == "allow") {
        return Some("allow".to_owned());
    }
    let says_yes = |text: &str| ["yes", "allow", "approve"].iter().any(|word| text.eq_ignore_ascii_case(word));
    let choice = ask.choices.iter().find(|choice| says_yes(&choice.id) || says_yes(&choice.label));
    choice.map(|choice| choice.id.clone())
}

/// The words that refuse a question: a choice that says so, else what every question takes.
pub(super) fn no(ask: &AskDetail) -> Option<String> {
    let choice = ask.choices.iter().find(|choice| choice.id.eq_ignore_ascii_case("no"));
    Some(choice.map_or_else(|| "refuse".to_owned(), |choice| choice.id.clone()))
}
