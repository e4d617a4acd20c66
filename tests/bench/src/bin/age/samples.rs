//! The ids that the rows ask about: chosen while a folder is filled, kept beside it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use bench::Failure;
use serde_json::{Value, json};

/// How many ids of each kind are kept.
const KEPT: usize = 400;
/// How many of the oldest.
const OLDEST: usize = 20;

/// Ids of one kind, the newest first where the newest are kept. Each is asked about once, and from the start again when
/// all were.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    ids: VecDeque<String>,
    used: AtomicUsize,
}

impl Ids {
    /// Adds a newer one and forgets the oldest.
    pub(crate) fn push(&mut self, id: String) {
        self.ids.truncate(KEPT - 1);
        self.ids.push_front(id);
    }

    /// Adds one as long as there are few.
    fn push_early(&mut self, id: &str) {
        if self.ids.len() < OLDEST {
            self.ids.push_back(id.to_owned());
        }
    }

    /// The next ones.
    pub(crate) fn take(&self, count: usize) -> Result<Vec<String>, Failure> {
        let first = self.used.fetch_add(count, Ordering::Relaxed);
        let of = |place: usize| self.ids.get(place % self.ids.len().max(1)).cloned();
        (first..first + count).map(|place| of(place).ok_or("the folder has no such message".into())).collect()
    }

    /// The next one.
    pub(crate) fn one(&self) -> Result<String, Failure> {
        self.take(1)?.pop().ok_or("nothing was taken".into())
    }

    fn as_json(&self) -> Value {
        json!({ "ids": self.ids, "used": self.used.load(Ordering::Relaxed) })
    }

    fn parse(value: &Value) -> Option<Ids> {
        let ids = value["ids"].as_array()?.iter().map(|id| id.as_str().map(str::to_owned));
        let used = usize::try_from(value["used"].as_u64()?).ok()?;
        Some(Ids { ids: ids.collect::<Option<_>>()?, used: AtomicUsize::new(used) })
    }
}

/// All of a folder.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// When the folder was filled: the end of its last day, in milliseconds.
    pub(crate) filled: u64,
    /// How many messages it got.
    pub(crate) messages: u64,
    /// How many sessions.
    pub(crate) sessions: u64,
    /// Newest messages that the command line's agent read and did not acknowledge.
    pub(crate) read_by_shell: Ids,
    /// The same of the agent that the MCP rows speak for.
    pub(crate) read_by_session: Ids,
    /// Newest messages that this agent sent.
    pub(crate) sent_by_session: Ids,
    /// Oldest messages that it sent.
    pub(crate) oldest_by_session: Ids,
    /// Newest messages of another agent, for the user's own question.
    pub(crate) newest: Ids,
    /// Oldest messages of it.
    pub(crate) oldest: Ids,
}

impl Samples {
    /// Notes a message that was sent by the MCP rows' agent.
    pub(crate) fn note_sent_by_session(&mut self, id: &str, is_new: bool) {
        self.oldest_by_session.push_early(id);
        if is_new {
            self.sent_by_session.push(id.to_owned());
        }
    }

    /// Notes a message that the user may ask about.
    pub(crate) fn note_any(&mut self, id: &str, is_new: bool) {
        self.oldest.push_early(id);
        if is_new {
            self.newest.push(id.to_owned());
        }
    }

    fn lists(&self) -> [(&'static str, &Ids); 6] {
        [
            ("read-by-shell", &self.read_by_shell),
            ("read-by-session", &self.read_by_session),
            ("sent-by-session", &self.sent_by_session),
            ("oldest-by-session", &self.oldest_by_session),
            ("newest", &self.newest),
            ("oldest", &self.oldest),
        ]
    }

    /// Writes them to a file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut all = json!({ "filled": self.filled, "messages": self.messages, "sessions": self.sessions });
        for (name, ids) in self.lists() {
            all[name] = ids.as_json();
        }
        Ok(std::fs::write(path, all.to_string())?)
    }

    /// Reads what [`Samples::write`] wrote; none if there is no such file, or it is another rig's.
    pub(crate) fn read(path: &Path) -> Option<Samples> {
        let all: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let ids = |name: &str| Ids::parse(&all[name]);
        Some(Samples {
            filled: all["filled"].as_u64()?,
            messages: all["messages"].as_u64()?,
            sessions: all["sessions"].as_u64()?,
            read_by_shell: ids("read-by-shell")?,
            read_by_session: ids("read-by-session")?,
            sent_by_session: ids("sent-by-session")?,
            oldest_by_session: ids("oldest-by-session")?,
            newest: ids("newest")?,
            oldest: ids("oldest")?,
        })
    }

    /// Whether the same ids were used again and again.
    pub(crate) fn are_worn(&self) -> bool {
        [&self.read_by_shell, &self.read_by_session]
            .iter()
            .any(|ids| ids.used.load(Ordering::Relaxed) > 4 * ids.ids.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_ids_stay_and_each_is_taken_once() {
        let mut samples = Samples::default();
        for number in 0..1000 {
            samples.note_any(&number.to_string(), true);
        }
        assert_eq!(samples.newest.take(2).expect("ids"), ["999", "998"]);
        assert_eq!(samples.newest.one().expect("an id"), "997");
        assert_eq!(samples.newest.ids.len(), 400);
        assert_eq!(samples.oldest.one().expect("an id"), "0");
        assert!(Ids::default().one().is_err());
    }

    #[test]
    fn samples_come_back_from_their_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rig.json");
        let mut samples = Samples { filled: 7, ..Samples::default() };
        samples.note_any("a", true);
        samples.write(&path).expect("the folder is writable");
        let back = Samples::read(&path).expect("samples");
        assert_eq!((back.filled, back.newest.one().expect("an id")), (7, "a".to_owned()));
        assert!(Samples::read(&folder.path().join("absent")).is_none());
    }
}
