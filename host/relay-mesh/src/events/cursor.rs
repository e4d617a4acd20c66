//! The cursor of a line: where its follower goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mesh::names::AgentName;
use store::Position;

/// A position in the event log, in one inbox and in receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Next position in the event log.
    pub(crate) event_log: Position,
    /// Next position in the inbox.
    pub(crate) inbox: Position,
    /// Next position in the receipts of one inbox.
    pub(crate) receipts: Position,
    /// For those who follow the receipts of every inbox: the next position in each. One that is not named was not begun.
    pub(crate) all_receipts: Arc<BTreeMap<AgentName, Position>>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.event_log.0, self.inbox.0)?;
        // Written only for those who follow receipts.
        if self.all_receipts.is_empty() {
            return if self.receipts == Position::START { Ok(()) } else { write!(f, "-{}", self.receipts.0) };
        }
        for (number, (agent, position)) in self.all_receipts.iter().enumerate() {
            write!(f, "{}{agent}:{}", if number == 0 { '-' } else { ',' }, position.0)?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cursor: copy one from an event line, or write `start`")]
pub(crate) struct InvalidCursor(String);

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Cursor, InvalidCursor> {
        if text == "start" {
            return Ok(Cursor::default());
        }
        let cursor = parse(text);
        cursor.ok_or_else(|| InvalidCursor(text.chars().filter(|character| !character.is_control()).take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Cursor> {
    // A name may have dashes of its own.
    let mut parts = text.splitn(3, '-');
    let (event_log, inbox) = (position(parts.next()?)?, position(parts.next()?)?);
    let mut cursor = Cursor { event_log, inbox, ..Cursor::default() };
    match parts.next() {
        None => {}
        Some(receipts) if receipts.contains(':') => {
            let one = |part: &str| {
                let (agent, at) = part.split_once(':')?;
                Some((agent.parse().ok()?, position(at)?))
            };
            cursor.all_receipts = Arc::new(receipts.split(',').map(one).collect::<Option<_>>()?);
        }
        Some(receipts) => cursor.receipts = position(receipts)?,
    }
    Some(cursor)
}

fn position(digits: &str) -> Option<Position> {
    digits.parse().ok().map(Position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for text in ["0-0", "17-4", "17-4-9", "17-0-bob:9", "17-0-alice@core:1,bob-2:9"] {
            let cursor: Cursor = text.parse().expect(text);
            assert_eq!(cursor.to_string(), text);
        }
        assert_eq!("start".parse(), Ok(Cursor::default()));
        for wrong in
            ["", "17", "-1-2", "17-4-9-1", "17-4-", "17-4-bob", "17-4-bob:", "17-4-Bob!:9", "17-4-bob:9,", "a-b"]
        {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }
}
