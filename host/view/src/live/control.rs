//! What a press changes.

use super::actions::{Action, Ready};
use super::press::{Effect, Press};
use super::rows::Tab;
use super::selection::Selection;
use super::state::{Live, Middle, Note, OpenThread, Pane, SearchResult};
use super::typing::{Prompt, Typing};

impl Live {
    /// Does what was pressed. Returns what has to be done outside.
    pub fn press(&mut self, press: Press) -> Vec<Effect> {
        self.note = None;
        let effects = if self.typing.is_some() { self.type_on(press) } else { self.command(press) };
        self.agent.is_seen();
        self.items.iter_mut().for_each(Selection::is_seen);
        effects
    }

    fn command(&mut self, press: Press) -> Vec<Effect> {
        if self.helps && press != Press::Quit {
            self.helps = false;
            return Vec::new();
        }
        match press {
            Press::Move(by) => self.step(by),
            Press::First => self.step(isize::MIN),
            Press::Last => self.step(isize::MAX),
            Press::Pane(by) => {
                let at = Pane::ALL.iter().position(|pane| *pane == self.focus).unwrap_or_default();
                let count = Pane::ALL.len();
                self.focus_on(Pane::ALL[(at + if by < 0 { count - 1 } else { 1 }) % count]);
            }
            Press::Tab(by) => self.show(self.tab().further(by)),
            Press::ShowTab(tab) => self.show(tab),
            Press::Focus(pane) => self.focus_on(pane),
            Press::ChooseAgent(at) => {
                self.focus_on(Pane::Agents);
                self.scrolled = 0;
                self.on_agents(|selection, keys| selection.choose(keys, at));
            }
            Press::ChooseItem(at) => {
                self.focus_on(Pane::Middle);
                self.scrolled = 0;
                self.on_items(|selection, keys| selection.choose(keys, at));
            }
            Press::Enter => return self.enter(),
            Press::Leave => return self.leave(),
            Press::Search => self.typing = Some(Typing::of(Prompt::Search, "")),
            Press::Compose => return self.act(Action::Compose),
            Press::Answer => return self.act(Action::Answer),
            Press::Yes => return self.act(Action::Yes),
            Press::No => return self.act(Action::No),
            Press::Wake => return self.act(Action::Wake),
            Press::Pause => return self.act(Action::Pause),
            Press::Export => return self.act(Action::Export),
            Press::Browse => return self.act(Action::Browse),
            Press::Help => self.helps = true,
            Press::Quit => return vec![Effect::Quit],
            // Nothing is typed into.
            Press::Type(_) | Press::Edit(_) => {}
        }
        Vec::new()
    }

    fn type_on(&mut self, press: Press) -> Vec<Effect> {
        let Some(typing) = &mut self.typing else { return Vec::new() };
        match press {
            Press::Type(text) => typing.insert(&text),
            Press::Edit(edit) => typing.edit(edit),
            Press::Enter => return self.entered(),
            Press::Leave => {
                if typing.prompt == Prompt::Search {
                    self.narrowed.clear();
                }
                self.typing = None;
            }
            Press::Quit => return vec![Effect::Quit],
            // The mouse does nothing while something is typed.
            _ => {}
        }
        if let Some(Typing { prompt: Prompt::Search, line }) = &self.typing {
            line.text().clone_into(&mut self.narrowed);
        }
        self.settle();
        Vec::new()
    }

    /// Takes what was typed, or says what it lacks.
    fn entered(&mut self) -> Vec<Effect> {
        let Some(typing) = &self.typing else { return Vec::new() };
        match typing.effect() {
            Err(why) => {
                self.say(why);
                Vec::new()
            }
            Ok(effect) => {
                self.typing = None;
                if let Effect::Search(words) = &effect {
                    let was_open = self.open.take().is_some();
                    self.found =
                        Some(SearchResult { words: words.clone(), hits: None, found: 0, chosen: Selection::default() });
                    self.narrowed.clear();
                    self.show(Tab::Threads);
                    self.settle();
                    return if was_open { vec![Effect::Close, effect] } else { vec![effect] };
                }
                vec![effect]
            }
        }
    }

    fn act(&mut self, action: Action) -> Vec<Effect> {
        match self.can(action) {
            Ok(Ready::Effect(effect)) => return vec![effect],
            Ok(Ready::Type(typing)) => {
                if let Prompt::Answer { ask, .. } = &typing.prompt {
                    self.look_at(&ask.clone());
                }
                self.typing = Some(typing);
            }
            Ok(Ready::Look(ask)) => {
                self.look_at(&ask);
                let text = "this is what it asks: press again to answer".to_owned();
                self.note = Some(Note { text, is_bad: false });
            }
            Err(why) => self.say(&why),
        }
        Vec::new()
    }

    fn say(&mut self, why: &str) {
        self.note = Some(Note { text: why.to_owned(), is_bad: true });
    }

    /// Shows a question.
    fn look_at(&mut self, ask: &str) {
        self.show(Tab::Asks);
        self.narrowed.clear();
        self.settle();
        self.on_items(|selection, keys| selection.choose_key(keys, ask));
    }

    fn focus_on(&mut self, pane: Pane) {
        if pane != Pane::Detail && pane != self.about {
            self.scrolled = 0;
            self.about = pane;
        }
        self.focus = pane;
    }

    fn show(&mut self, tab: Tab) {
        self.tab = Some(tab);
        self.scrolled = 0;
        self.focus_on(Pane::Middle);
    }

    fn step(&mut self, by: isize) {
        match self.focus {
            Pane::Detail => self.scrolled = self.scrolled.saturating_add_signed(by),
            Pane::Agents => {
                self.scrolled = 0;
                self.on_agents(|selection, keys| selection.step(keys, by));
            }
            Pane::Middle => {
                self.scrolled = 0;
                self.on_items(|selection, keys| selection.step(keys, by));
            }
        }
    }

    fn on_agents(&mut self, change: impl FnOnce(&mut Selection, &[&str])) {
        let mut selection = std::mem::take(&mut self.agent);
        change(&mut selection, &self.agent_keys());
        self.agent = selection;
    }

    /// Changes what is chosen in the middle.
    fn on_items(&mut self, change: impl FnOnce(&mut Selection, &[&str])) {
        let tab = self.tab();
        match (tab, &mut self.open, &mut self.found) {
            (Tab::Threads, Some(OpenThread { thread, chosen, follows, .. }), _) => {
                let messages = thread.iter().flat_map(|thread| &thread.messages);
                let keys: Vec<&str> = messages.map(|one| one.message.id.as_str()).collect();
                change(chosen, &keys);
                *follows = chosen.at() + 1 >= keys.len();
            }
            (Tab::Threads, None, Some(SearchResult { hits, chosen, .. })) => {
                let keys: Vec<&str> = hits.iter().flatten().map(|hit| hit.message.id.as_str()).collect();
                change(chosen, &keys);
            }
            _ => {
                let mut selection = std::mem::take(&mut self.items[tab.number()]);
                change(&mut selection, &self.item_keys(tab));
                self.items[tab.number()] = selection;
            }
        }
    }

    fn enter(&mut self) -> Vec<Effect> {
        match self.focus {
            Pane::Detail => self.focus_on(self.about),
            Pane::Agents => {
                let Some(agent) = self.chosen_agent() else { return Vec::new() };
                let name = agent.name().to_owned();
                match self.overview.asks.iter().find(|ask| ask.by.agent.as_deref() == Some(name.as_str())) {
                    Some(ask) => self.look_at(&ask.id.clone()),
                    None => {
                        self.narrowed = name;
                        self.found = None;
                        let was_open = self.open.take().is_some();
                        self.show(Tab::Threads);
                        self.settle();
                        return if was_open { vec![Effect::Close] } else { Vec::new() };
                    }
                }
            }
            Pane::Middle => match self.middle() {
                Middle::Thread(_) => self.focus_on(Pane::Detail),
                Middle::Found(found) => {
                    let hit = found.hits.as_deref().and_then(|hits| hits.get(found.chosen.at()));
                    let Some(message) = hit.map(|hit| &hit.message) else { return Vec::new() };
                    let (thread, chosen) = (message.thread.clone(), Selection::awaiting(&message.id));
                    return self.open_thread(thread, chosen, false);
                }
                Middle::List(Tab::Threads) => {
                    let Some(at) = self.chosen_item(Tab::Threads) else { return Vec::new() };
                    let thread = self.threads[at].thread.clone();
                    return self.open_thread(thread, Selection::default(), true);
                }
                Middle::List(Tab::Asks) => return self.act(Action::Answer),
                Middle::List(Tab::Reservations | Tab::Commands | Tab::Runs | Tab::Stuck | Tab::Log) => {
                    self.focus_on(Pane::Detail);
                }
            },
        }
        Vec::new()
    }

    fn open_thread(&mut self, name: String, chosen: Selection, follows: bool) -> Vec<Effect> {
        self.scrolled = 0;
        self.open = Some(OpenThread { name: name.clone(), thread: None, chosen, follows });
        vec![Effect::Open(name)]
    }

    /// Goes one step back: what was opened last is closed first.
    fn leave(&mut self) -> Vec<Effect> {
        if self.focus == Pane::Detail {
            self.focus_on(self.about);
            return Vec::new();
        }
        match self.middle() {
            Middle::Thread(_) => {
                self.open = None;
                self.scrolled = 0;
                return vec![Effect::Close];
            }
            Middle::Found(_) => self.found = None,
            Middle::List(_) if !self.narrowed.is_empty() => {
                self.narrowed.clear();
                self.settle();
            }
            Middle::List(_) => self.focus_on(Pane::Agents),
        }
        Vec::new()
    }
}
