//! What is chosen of a list that changes: it stays on its item, wherever that goes.

/// What is chosen of a list. Items are known by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The key of the chosen item; none while the list is empty.
    chosen: Option<String>,
    /// Where it was last, for when it is gone.
    at: usize,
    /// Whether the chosen item went away since the last key press, so that another one is chosen now.
    slipped: bool,
}

impl Selection {
    /// A selection of an item that is not there yet.
    pub(crate) fn awaiting(key: &str) -> Selection {
        Selection { chosen: Some(key.to_owned()), ..Selection::default() }
    }

    /// The key of the chosen item.
    pub fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Where the chosen item is in the list.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether another item is chosen than at the last key press, because that one is gone.
    pub fn has_slipped(&self) -> bool {
        self.slipped
    }

    /// The person has seen what is chosen now.
    pub(crate) fn is_seen(&mut self) {
        self.slipped = false;
    }

    /// Follows the list: the same item if it is still there, else the one in its place, else the last.
    pub fn settle(&mut self, keys: &[&str]) {
        let Some(last) = keys.len().checked_sub(1) else {
            self.slipped |= self.chosen.is_some();
            *self = Selection { slipped: self.slipped, ..Selection::default() };
            return;
        };
        let chosen = self.chosen.as_deref();
        // Nearly always it is where it was.
        let same_place = keys.get(self.at).is_some_and(|key| Some(*key) == chosen);
        let place = if same_place { Some(self.at) } else { keys.iter().position(|key| Some(*key) == chosen) };
        self.slipped |= place.is_none() && chosen.is_some();
        self.put(keys, place.unwrap_or(self.at.min(last)));
    }

    /// Moves by so many items, and stops at the ends.
    pub fn step(&mut self, keys: &[&str], by: isize) {
        self.settle(keys);
        self.choose(keys, self.at.saturating_add_signed(by));
    }

    /// Chooses the item at a place, or the last one if the list is shorter.
    pub fn choose(&mut self, keys: &[&str], at: usize) {
        if let Some(last) = keys.len().checked_sub(1) {
            self.put(keys, at.min(last));
            self.slipped = false;
        }
    }

    /// Chooses an item by its key, if it is there.
    pub fn choose_key(&mut self, keys: &[&str], key: &str) {
        if let Some(at) = keys.iter().position(|one| *one == key) {
            self.choose(keys, at);
        }
    }

    fn put(&mut self, keys: &[&str], at: usize) {
        self.at = at;
        if self.chosen.as_deref() != Some(keys[at]) {
            self.chosen = Some(keys[at].to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn what_is_chosen_stays_chosen_while_the_list_changes_around_it() {
        for (before, choose, after, expected, slipped) in [
            ("a b c", 1, "a b c", Some("b"), false),
            ("a b c", 1, "x y a b c", Some("b"), false),
            ("a b c", 1, "c b a", Some("b"), false),
            ("a b c", 1, "a c", Some("c"), true),
            ("a b c", 2, "a b", Some("b"), true),
            ("a b c", 0, "", None, true),
            ("", 0, "a b", Some("a"), false),
        ] {
            let mut selection = Selection::default();
            selection.settle(&keys(before));
            selection.choose(&keys(before), choose);
            selection.settle(&keys(after));
            assert_eq!(
                (selection.chosen(), selection.has_slipped()),
                (expected, slipped),
                "{before}: {choose}, then {after}"
            );
        }
    }

    #[test]
    fn a_step_stops_at_the_ends() {
        let list = keys("a b c");
        let mut selection = Selection::default();
        for (by, expected) in [(1, "b"), (5, "c"), (-1, "b"), (-9, "a"), (isize::MAX, "c"), (isize::MIN, "a")] {
            selection.step(&list, by);
            assert_eq!(selection.chosen(), Some(expected), "{by}");
        }
    }

    proptest! {
        /// However a list changes, what is chosen is one of its items, and an item that stays is kept.
        #[test]
        fn it_is_always_one_of_the_items(
            lists in proptest::collection::vec(proptest::collection::btree_set("[a-f]", 0..6), 1..8),
            steps in proptest::collection::vec(-3_isize..4, 8),
        ) {
            let mut selection = Selection::default();
            for (list, by) in lists.iter().zip(steps) {
                let list: Vec<&str> = list.iter().map(String::as_str).collect();
                let before = selection.chosen().map(str::to_owned);
                selection.settle(&list);
                if let Some(before) = before.filter(|before| list.contains(&before.as_str())) {
                    prop_assert_eq!(selection.chosen(), Some(before.as_str()));
                }
                prop_assert_eq!(selection.chosen().is_none(), list.is_empty());
                selection.step(&list, by);
                prop_assert_eq!(selection.chosen(), list.get(selection.at()).copied());
            }
        }
    }
}
