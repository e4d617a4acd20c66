//! One alternative of a pattern as a small automaton: a sequence of steps, each of which consumes characters or is
//! skipped.

use super::class::{ANY, Class, IN_COMPONENT, SLASH};

/// One step of a branch.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// One character: a letter, `?`, `[…]`.
    One(Class),
    /// `*`: any characters of one component.
    Run,
    /// `**/`: whole components, each with the slash after it.
    Folders,
    /// `**` at the end: anything.
    Rest,
}

/// A pattern without braces.
///
/// State `2i` is before step `i`; state `2i + 1` is within the components that step `i`, a
/// [`Step::Folders`], has begun to consume.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    steps: Vec<Step>,
    /// The literal text that every match begins with.
    prefix: String,
    /// The literal text that every match ends with.
    suffix: String,
}

pub(super) type State = usize;

impl Branch {
    pub(super) fn new(steps: Vec<Step>) -> Branch {
        let letter = |step: &Step| match step {
            Step::One(Class::One(letter)) => Some(*letter),
            Step::One(Class::Ranges(_)) | Step::Run | Step::Folders | Step::Rest => None,
        };
        let prefix: String = steps.iter().map_while(letter).collect();
        let mut suffix: Vec<char> = steps.iter().rev().map_while(letter).collect();
        suffix.reverse();
        Branch { prefix, suffix: suffix.into_iter().collect(), steps }
    }

    pub(super) fn of_path(path: &str) -> Branch {
        Branch::new(path.chars().map(|letter| Step::One(Class::One(letter))).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether one path could begin and end as both require. A quick test: only a no is certain.
    pub(super) fn may_meet(&self, other: &Branch) -> bool {
        let begins = self.prefix.bytes().zip(other.prefix.bytes()).all(|(one, other)| one == other);
        let ends = self.suffix.bytes().rev().zip(other.suffix.bytes().rev()).all(|(one, other)| one == other);
        begins && ends
    }

    /// The one text that it matches, if there is only one.
    pub(super) fn only(&self) -> Option<&str> {
        (self.prefix.chars().count() == self.steps.len()).then_some(self.prefix.as_str())
    }

    /// Whether the text may end in this state.
    pub(super) fn accepts(&self, state: State) -> bool {
        state == 2 * self.steps.len()
    }

    /// The transitions from a state: the characters (none for a step that is skipped) and the next state.
    pub(super) fn ways(&self, state: State) -> impl Iterator<Item = (Option<&Class>, State)> {
        let index = state / 2;
        let next = 2 * (index + 1);
        let within = state % 2 == 1;
        let ways = match self.steps.get(index) {
            None => [None, None],
            Some(Step::One(class)) => [Some((Some(class), next)), None],
            Some(Step::Run) => [Some((Some(&IN_COMPONENT), state)), Some((None, next))],
            Some(Step::Folders) if within => [Some((Some(&ANY), state)), Some((Some(&SLASH), next))],
            Some(Step::Folders) => [Some((Some(&IN_COMPONENT), state + 1)), Some((None, next))],
            Some(Step::Rest) => [Some((Some(&ANY), state)), Some((None, next))],
        };
        ways.into_iter().flatten()
    }

    /// Whether it matches a text, valid path or not.
    pub(super) fn matches(&self, text: &str) -> bool {
        if !text.starts_with(self.prefix.as_str()) {
            return false;
        }
        let mut states = vec![0];
        self.pass_by(&mut states);
        for character in text.chars() {
            let mut next = Vec::with_capacity(states.len() + 1);
            for state in &states {
                for (class, to) in self.ways(*state) {
                    if class.is_some_and(|class| class.contains(character)) && !next.contains(&to) {
                        next.push(to);
                    }
                }
            }
            self.pass_by(&mut next);
            states = next;
        }
        states.into_iter().any(|state| self.accepts(state))
    }

    /// Adds the states that are reached without a character.
    fn pass_by(&self, states: &mut Vec<State>) {
        let mut looked_at = 0;
        while let Some(state) = states.get(looked_at).copied() {
            looked_at += 1;
            for (class, to) in self.ways(state) {
                if class.is_none() && !states.contains(&to) {
                    states.push(to);
                }
            }
        }
    }
}
