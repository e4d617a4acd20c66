//! The state of the view, and how news and presses change it.

use std::collections::VecDeque;

use mesh::ports::machine::Instant;

use super::agents::{self, AgentLine, AgentRow};
use super::news::{LogRow, News, Overview};
use super::rows::{Column, OF_FOUND, OF_MESSAGES, Row, Tab};
use super::selection::Selection;
use super::typing::Typing;
use crate::{MessageView, RecipientView, SearchHitView, ThreadMessageView, ThreadSummaryView, ThreadView};

/// So many events of the log are kept.
const LOGGED: usize = 1_000;

/// A part of the view that can have the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// The agents.
    #[default]
    Agents,
    /// The lists, or the open conversation.
    Middle,
    /// What is chosen, with its delivery.
    Detail,
}

impl Pane {
    /// Every pane, in order.
    pub const ALL: [Pane; 3] = [Pane::Agents, Pane::Middle, Pane::Detail];
}

/// What the middle shows.
#[derive(Clone, Copy, Debug)]
pub enum Middle<'a> {
    /// The list of a tab.
    List(Tab),
    /// What a search found.
    Found(&'a SearchResult),
    /// A conversation.
    Thread(&'a OpenThread),
}

/// A conversation that is open.
#[derive(Clone, Debug)]
pub struct OpenThread {
    /// Its name.
    pub name: String,
    /// What was last read of it; none until it is read.
    pub thread: Option<ThreadView>,
    pub(super) chosen: Selection,
    /// Whether the newest message is chosen and the next one will be.
    pub(super) follows: bool,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The words.
    pub words: String,
    /// The best messages; none until the search has ended.
    pub hits: Option<Vec<SearchHitView>>,
    /// How many there are in all.
    pub found: usize,
    pub(super) chosen: Selection,
}

/// What was done, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The sentence.
    pub text: String,
    /// Whether something went wrong.
    pub is_bad: bool,
}

/// What a person watches and works in.
#[derive(Clone, Debug, Default)]
pub struct Live {
    pub(super) overview: Overview,
    /// Whether the mesh was read. Before that, who is here may be known, but not what waits for them.
    is_read: bool,
    /// The time of the newest thing that came in, for "2 h ago".
    now: Instant,
    /// The agents as they are listed.
    pub(super) agents: Vec<AgentRow>,
    pub(super) threads: Vec<ThreadSummaryView>,
    are_threads_read: bool,
    pub(super) log: VecDeque<LogRow>,
    pub(super) open: Option<OpenThread>,
    pub(super) found: Option<SearchResult>,
    pub(super) tab: Option<Tab>,
    pub(super) focus: Pane,
    /// The list that had the focus last: the detail is about what is chosen there.
    pub(super) about: Pane,
    pub(super) agent: Selection,
    pub(super) items: [Selection; Tab::ALL.len()],
    /// What was searched for: lists show only what has it.
    pub(super) narrowed: String,
    pub(super) typing: Option<Typing>,
    pub(super) note: Option<Note>,
    /// Why the mesh cannot be read now.
    lost: Option<String>,
    /// Lines of the detail above its first visible one.
    pub(super) scrolled: usize,
    pub(super) helps: bool,
}

impl Live {
    /// The time of the newest thing that is known.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the mesh was read. Before that, who is here may be known, but not what waits for them.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Whether the conversations were read.
    pub fn are_threads_read(&self) -> bool {
        self.are_threads_read
    }

    /// Why what is shown is only the last known state, if it is.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref().or(self.overview.out_of_reach.as_deref())
    }

    /// What could not be read, one sentence each.
    pub fn damaged(&self) -> &[String] {
        &self.overview.damaged
    }

    /// The machine that the mesh is read on; empty before it was read.
    pub fn machine(&self) -> &str {
        &self.overview.machine
    }

    /// Which pane has the focus.
    pub fn focus(&self) -> Pane {
        self.focus
    }

    /// The list whose chosen item the detail is about.
    pub fn about(&self) -> Pane {
        self.about
    }

    /// Which tab is shown.
    pub fn tab(&self) -> Tab {
        self.tab.unwrap_or(Tab::Threads)
    }

    /// What is being typed.
    pub fn typing(&self) -> Option<&Typing> {
        self.typing.as_ref()
    }

    /// What was done last, or why it was not.
    pub fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    /// Whether all keys are shown.
    pub fn helps(&self) -> bool {
        self.helps
    }

    /// Lines of the detail above its first visible one.
    pub fn scrolled(&self) -> usize {
        self.scrolled
    }

    /// The detail has so many lines beyond those that are seen: it is scrolled no further.
    pub fn fit_detail(&mut self, beyond: usize) {
        self.scrolled = self.scrolled.min(beyond);
    }

    /// What lists are narrowed down to, folded; none if they show everything.
    pub(super) fn filter(&self) -> Option<String> {
        Some(mesh::folded(self.narrowed.trim())).filter(|folded| !folded.is_empty())
    }

    /// What lists are narrowed down to, as it was typed.
    pub fn narrowed(&self) -> &str {
        &self.narrowed
    }

    /// The agents that are listed.
    pub(super) fn listed_agents(&self) -> Vec<&AgentRow> {
        match self.filter() {
            None => self.agents.iter().collect(),
            Some(filter) => self.agents.iter().filter(|agent| agent.has(&filter)).collect(),
        }
    }

    /// The lines of the list of agents.
    pub fn agent_lines(&self) -> Vec<AgentLine<'_>> {
        agents::lines(&self.listed_agents())
    }

    /// How many agents there are, whatever the filter leaves of them.
    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// How many agents need the person.
    pub fn needing(&self) -> usize {
        self.agents.iter().filter(|agent| agent.group == super::Group::NeedsYou).count()
    }

    /// The place of the chosen agent among those that are listed.
    pub fn agent_at(&self) -> usize {
        self.agent.at()
    }

    /// The chosen agent.
    pub fn chosen_agent(&self) -> Option<&AgentRow> {
        let name = self.agent.chosen()?;
        self.agents.iter().find(|agent| agent.name() == name)
    }

    /// What the middle shows.
    pub fn middle(&self) -> Middle<'_> {
        match (self.tab(), &self.open, &self.found) {
            (Tab::Threads, Some(open), _) => Middle::Thread(open),
            (Tab::Threads, None, Some(found)) => Middle::Found(found),
            (tab, _, _) => Middle::List(tab),
        }
    }

    /// The columns of what the middle shows.
    pub fn middle_columns(&self) -> &'static [Column] {
        match self.middle() {
            Middle::List(tab) => tab.columns(),
            Middle::Found(_) => &OF_FOUND,
            Middle::Thread(_) => &OF_MESSAGES,
        }
    }

    /// How many items the middle shows.
    pub fn middle_count(&self) -> usize {
        match self.middle() {
            Middle::List(tab) => self.listed(tab).len(),
            Middle::Found(found) => found.hits.as_ref().map_or(0, Vec::len),
            Middle::Thread(open) => open.thread.as_ref().map_or(0, |thread| thread.messages.len()),
        }
    }

    /// The rows of the middle from one place to another, those that are seen.
    pub fn middle_rows(&self, places: std::ops::Range<usize>) -> Vec<Row> {
        let (skip, take) = (places.start, places.len());
        match self.middle() {
            Middle::List(tab) => {
                self.listed(tab).into_iter().skip(skip).take(take).map(|at| self.row(tab, at)).collect()
            }
            Middle::Found(found) => {
                found.hits.iter().flatten().skip(skip).take(take).map(|hit| self.hit_row(hit)).collect()
            }
            Middle::Thread(open) => {
                let messages = open.thread.iter().flat_map(|thread| &thread.messages);
                messages.skip(skip).take(take).map(|one| self.message_row(one)).collect()
            }
        }
    }

    /// The place of the chosen item among those of the middle.
    pub fn middle_at(&self) -> usize {
        match self.middle() {
            Middle::List(tab) => self.items[tab.number()].at(),
            Middle::Found(found) => found.chosen.at(),
            Middle::Thread(open) => open.chosen.at(),
        }
    }

    /// The chosen message of the open conversation.
    pub fn chosen_message(&self) -> Option<&ThreadMessageView> {
        let open = self.open.as_ref()?;
        let id = open.chosen.chosen()?;
        open.thread.as_ref()?.messages.iter().find(|one| one.message.id == id)
    }

    /// The place of the chosen item of a tab in its whole list.
    pub(super) fn chosen_item(&self, tab: Tab) -> Option<usize> {
        let key = self.items[tab.number()].chosen()?;
        (0..self.count(tab)).find(|at| self.key(tab, *at) == key)
    }

    /// Takes in what is new. What is chosen stays chosen.
    pub fn take(&mut self, news: News) {
        match news {
            // What was read before says more.
            News::Agents(..) if self.is_read => {}
            News::Agents(now, agents) => {
                self.now = self.now.max(now);
                self.overview.agents = agents;
                self.agents = agents::arranged(&self.overview);
            }
            News::Overview(overview) => {
                self.now = self.now.max(overview.now);
                self.agents = agents::arranged(&overview);
                self.overview = *overview;
                (self.is_read, self.lost) = (true, None);
            }
            News::Threads(threads) => {
                self.threads = threads;
                self.are_threads_read = true;
            }
            News::Thread(typed, thread) => {
                // One that was left meanwhile may still be read.
                let is_open = |open: &&mut OpenThread| open.name == typed || open.name == thread.thread;
                if let Some(open) = self.open.as_mut().filter(is_open) {
                    // It may have been opened by the id of one of its messages.
                    open.name.clone_from(&thread.thread);
                    open.thread = Some(*thread);
                }
            }
            News::Sent(message, recipients) => self.take_message(*message, recipients),
            News::Found(words, hits, found) => {
                if let Some(result) = self.found.as_mut().filter(|result| result.words == words) {
                    (result.hits, result.found) = (Some(hits), found);
                }
            }
            News::Log(rows) => {
                self.now = rows.iter().map(|row| row.at).fold(self.now, Instant::max);
                // The newest is shown first.
                rows.into_iter().for_each(|row| self.log.push_front(row));
                self.log.truncate(LOGGED);
            }
            News::Lost(why) => self.lost = Some(why),
            News::NoThread(_, why) => self.note = Some(Note { text: why, is_bad: true }),
            News::Done(text) => self.note = Some(Note { text, is_bad: false }),
            News::Failed(text) => self.note = Some(Note { text, is_bad: true }),
        }
        self.settle();
    }

    /// A message that was stored is shown at once; what is read later says the same and more.
    fn take_message(&mut self, message: MessageView, recipients: Vec<String>) {
        self.now = self.now.max(message.at.0);
        let known = self.threads.iter().position(|thread| thread.thread == message.thread);
        let mut summary = match known {
            Some(at) => self.threads.remove(at),
            None => ThreadSummaryView {
                thread: message.thread.clone(),
                subject: message.subject.clone(),
                agents: Vec::new(),
                messages: 0,
                waiting: 0,
                first: message.at,
                last: message.at,
                last_from: message.from.clone(),
            },
        };
        summary.messages += 1;
        summary.waiting += recipients.len();
        (summary.last, summary.last_from) = (message.at, message.from.clone());
        summary.agents.extend(recipients.iter().cloned().chain([message.from.clone()]));
        summary.agents.sort_unstable();
        summary.agents.dedup();
        self.threads.insert(0, summary);
        let open = self.open.as_mut().and_then(|open| open.thread.as_mut());
        let Some(thread) = open.filter(|thread| thread.thread == message.thread) else { return };
        if thread.messages.iter().all(|one| one.message.id != message.id) {
            let recipients = recipients.into_iter().map(|to| RecipientView::just_stored(to, &message)).collect();
            thread.messages.push(ThreadMessageView { message, recipients });
        }
    }

    /// Has every selection follow its list.
    pub(super) fn settle(&mut self) {
        let mut agent = std::mem::take(&mut self.agent);
        agent.settle(&self.agent_keys());
        self.agent = agent;
        for tab in Tab::ALL {
            let mut selection = std::mem::take(&mut self.items[tab.number()]);
            selection.settle(&self.item_keys(tab));
            self.items[tab.number()] = selection;
        }
        if let Some(OpenThread { thread: Some(thread), chosen, follows, .. }) = &mut self.open {
            let keys: Vec<&str> = thread.messages.iter().map(|one| one.message.id.as_str()).collect();
            chosen.settle(&keys);
            if *follows {
                chosen.choose(&keys, usize::MAX);
            }
        }
        if let Some(SearchResult { hits: Some(hits), chosen, .. }) = &mut self.found {
            chosen.settle(&hits.iter().map(|hit| hit.message.id.as_str()).collect::<Vec<_>>());
        }
    }

    pub(super) fn agent_keys(&self) -> Vec<&str> {
        self.listed_agents().into_iter().map(AgentRow::name).collect()
    }

    pub(super) fn item_keys(&self, tab: Tab) -> Vec<&str> {
        self.listed(tab).into_iter().map(|at| self.key(tab, at)).collect()
    }
}
