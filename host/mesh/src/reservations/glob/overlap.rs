//! Whether two branches share a path: a walk through the product of their automata and of the automaton of valid
//! paths.

use std::collections::HashSet;

use super::automaton::{Branch, State};
use super::class::Kind;

/// The state of the automaton of valid paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Within {
    /// At the beginning of a component, which must not be empty.
    Beginning,
    /// After a component's first dot.
    Dot,
    /// After `..`.
    DotDot,
    /// In a component that is a valid name.
    Name,
}

impl Within {
    /// The next state; none if no path continues so.
    fn after(self, kind: Kind) -> Option<Within> {
        match (self, kind) {
            (Within::Beginning | Within::Dot | Within::DotDot, Kind::Slash) => None,
            (Within::Beginning, Kind::Dot) => Some(Within::Dot),
            (Within::Dot, Kind::Dot) => Some(Within::DotDot),
            (Within::Name, Kind::Slash) => Some(Within::Beginning),
            (Within::DotDot | Within::Name, Kind::Dot)
            | (Within::Beginning | Within::Dot | Within::DotDot | Within::Name, Kind::Other) => Some(Within::Name),
        }
    }
}

/// Whether a text is a valid path in a repository: names between single slashes.
pub(super) fn is_path(text: &str) -> bool {
    let mut within = Within::Beginning;
    for character in text.chars() {
        match within.after(Kind::of(character)) {
            Some(next) if character != '\0' => within = next,
            Some(_) | None => return false,
        }
    }
    within == Within::Name
}

/// A state of all three automata, and how the walk reached it.
struct Visit {
    ours: State,
    theirs: State,
    within: Within,
    /// The previous visit and the character between them; none for the first visit. The character is none if a step
    /// was skipped.
    from: Option<(usize, Option<char>)>,
}

/// A path that both branches match, a short one because the search is breadth first.
pub(super) fn witness(ours: &Branch, theirs: &Branch) -> Option<String> {
    // Most reservations are of one file, and then there is only one path to try.
    for (one, other) in [(ours, theirs), (theirs, ours)] {
        if let Some(only) = one.only() {
            return (is_path(only) && other.matches(only)).then(|| only.to_owned());
        }
    }
    let mut visits = vec![Visit { ours: 0, theirs: 0, within: Within::Beginning, from: None }];
    let mut seen = HashSet::from([(0, 0, Within::Beginning)]);
    let mut index = 0;
    while let Some(Visit { ours: one, theirs: other, within, .. }) = visits.get(index) {
        let (one, other, within) = (*one, *other, *within);
        if ours.accepts(one) && theirs.accepts(other) && within == Within::Name {
            return Some(path_to(&visits, index));
        }
        let mut go = |ours, theirs, within, character| {
            if seen.insert((ours, theirs, within)) {
                visits.push(Visit { ours, theirs, within, from: Some((index, character)) });
            }
        };
        for (class, to) in ours.ways(one) {
            let Some(class) = class else {
                go(to, other, within, None);
                continue;
            };
            for (their_class, their_to) in theirs.ways(other) {
                let Some(their_class) = their_class else { continue };
                for kind in Kind::ALL {
                    if let Some(next) = within.after(kind)
                        && let Some(character) = class.common(their_class, kind)
                    {
                        go(to, their_to, next, Some(character));
                    }
                }
            }
        }
        for (class, to) in theirs.ways(other) {
            if class.is_none() {
                go(one, to, within, None);
            }
        }
        index += 1;
    }
    None
}

fn path_to(visits: &[Visit], last: usize) -> String {
    let mut characters = Vec::new();
    let mut at = last;
    while let Some((before, character)) = visits[at].from {
        characters.extend(character);
        at = before;
    }
    characters.iter().rev().collect()
}
