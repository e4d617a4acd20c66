//! What the items of a turn are as events, and how many of them a turn may have.

use std::collections::BTreeMap;
use std::path::Path;

use super::TurnEvent;
use crate::ports::driver::Operation;

/// The most events of items in one turn. The end of the turn says how many more there were.
pub const MOST_IN_TURN: u32 = 200;
/// The most items that are remembered from their beginning to their end.
const MOST_BEGUN: usize = 256;

/// A turn of a driven agent, as far as its events need it.
#[derive(Clone, Debug, Default)]
pub struct TurnWatch {
    /// What each item does, from when it began: at its end the harness may not say it again.
    begun: BTreeMap<String, Operation>,
    is_running: bool,
    told: u32,
    left_out: u32,
}

impl TurnWatch {
    /// A turn began.
    pub fn starts(&mut self) -> TurnEvent {
        *self = TurnWatch { is_running: true, ..TurnWatch::default() };
        TurnEvent::TurnStarted
    }

    /// A turn has ended. Returns how many of its events were left out.
    pub fn ends(&mut self) -> u32 {
        std::mem::take(self).left_out
    }

    /// Whether a turn has begun and not ended.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// An item began, or has ended with whether it succeeded.
    pub fn item(
        &mut self,
        id: &str,
        operation: Option<&Operation>,
        succeeded: Option<bool>,
        folder: &Path,
    ) -> Vec<TurnEvent> {
        let events = match (operation, succeeded) {
            (Some(operation), None) => {
                if self.begun.len() < MOST_BEGUN {
                    self.begun.insert(id.to_owned(), operation.clone());
                }
                vec![begins(operation)]
            }
            (None, None) => Vec::new(),
            (_, Some(succeeded)) => {
                let begun = self.begun.remove(id);
                operation.or(begun.as_ref()).map(|operation| ended(operation, succeeded, folder)).unwrap_or_default()
            }
        };
        events.into_iter().filter(|_| self.admits()).collect()
    }

    fn admits(&mut self) -> bool {
        let admitted = self.told < MOST_IN_TURN;
        if admitted {
            self.told += 1
        } else {
            self.left_out += 1
        }
        admitted
    }
}

fn begins(operation: &Operation) -> TurnEvent {
    let (item, text) = match operation {
        Operation::Command(command) => ("command", command.clone()),
        Operation::Files(paths) => ("files", paths.join(" ")),
        Operation::Tool(name, _) => ("tool", name.clone()),
        Operation::Other(text) => ("other", text.clone()),
    };
    TurnEvent::ItemStarted { item, text }
}

fn ended(operation: &Operation, succeeded: bool, folder: &Path) -> Vec<TurnEvent> {
    match operation {
        Operation::Command(command) => vec![TurnEvent::ShellCommand { command: command.clone(), succeeded }],
        Operation::Files(paths) if succeeded => {
            let path = |path: &String| TurnEvent::FileChanged { path: folder.join(path).display().to_string() };
            paths.iter().map(path).collect()
        }
        Operation::Files(_) | Operation::Tool(_, _) | Operation::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(watch: &mut TurnWatch, item: (&str, Option<Operation>, Option<bool>), expected: &str) {
        let (id, operation, succeeded) = item;
        let events = watch.item(id, operation.as_ref(), succeeded, Path::new("/work"));
        let words = events.iter().map(|event| match event {
            TurnEvent::ItemStarted { item, text } => format!("{} {item} {text}", event.kind()),
            TurnEvent::FileChanged { path } => format!("{} {path}", event.kind()),
            TurnEvent::ShellCommand { command, succeeded } => format!("{} {command} {succeeded}", event.kind()),
            other => other.kind().to_owned(),
        });
        assert_eq!(words.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn an_item_is_told_when_it_begins_and_what_it_did_when_it_has_ended() {
        let mut watch = TurnWatch::default();
        let command = || Operation::Command("make test".to_owned());
        check(&mut watch, ("1", Some(command()), None), "item-started command make test");
        // Claude Code and the Agent Client Protocol do not say it again.
        check(&mut watch, ("1", None, Some(true)), "shell-command make test true");
        check(&mut watch, ("1", Some(command()), Some(false)), "shell-command make test false");
        let files = || Operation::Files(vec!["a.rs".to_owned(), "/b.rs".to_owned()]);
        check(&mut watch, ("2", Some(files()), None), "item-started files a.rs /b.rs");
        check(&mut watch, ("2", Some(files()), Some(true)), "file-changed /work/a.rs, file-changed /b.rs");
        check(&mut watch, ("3", Some(files()), Some(false)), "");
        check(&mut watch, ("4", None, Some(true)), "");
        let tool = Operation::Tool("search".to_owned(), serde_json::Value::Null);
        check(&mut watch, ("5", Some(tool), None), "item-started tool search");
    }

    #[test]
    fn a_turn_of_a_thousand_items_adds_a_bounded_number_of_lines() {
        let mut watch = TurnWatch::default();
        watch.starts();
        let item = |watch: &mut TurnWatch, number: u32| {
            let operation = Operation::Command("x".repeat(10_000));
            let id = number.to_string();
            let mut events = watch.item(&id, Some(&operation), None, Path::new("/"));
            events.extend(watch.item(&id, None, Some(true), Path::new("/")));
            events.len()
        };
        let told: usize = (0..1_000).map(|number| item(&mut watch, number)).sum();
        assert_eq!(told, MOST_IN_TURN as usize);
        assert_eq!(watch.ends(), 2_000 - MOST_IN_TURN);
        assert_eq!(item(&mut watch, 1), 2, "the next turn begins anew");
    }
}
