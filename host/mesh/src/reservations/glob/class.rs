//! Sets of characters, and their intersection.

use std::borrow::Cow;

/// First and last character, as code points.
type Range = (u32, u32);

/// Every character that may be in a path.
const EVERYTHING: &[Range] = &[(1, 0xD7FF), (0xE000, 0x10_FFFF)];
/// The same without the slash.
const NO_SLASH: &[Range] = &[(1, 0x2E), (0x30, 0xD7FF), (0xE000, 0x10_FFFF)];

/// A set of characters.
#[derive(Clone, Debug)]
pub(super) enum Class {
    /// This one alone.
    One(char),
    /// All characters in these ranges.
    Ranges(Cow<'static, [Range]>),
}

/// The kind of a character in the rules for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ends a component.
    Slash,
    /// May make a component `.` or `..`, which is not a name.
    Dot,
    /// Anything else.
    Other,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Kind; 3] = [Kind::Slash, Kind::Dot, Kind::Other];

    pub(super) fn of(character: char) -> Kind {
        match character {
            '/' => Kind::Slash,
            '.' => Kind::Dot,
            _ => Kind::Other,
        }
    }
}

/// Every character.
pub(super) const ANY: Class = Class::Ranges(Cow::Borrowed(EVERYTHING));
/// Every character but the slash.
pub(super) const IN_COMPONENT: Class = Class::Ranges(Cow::Borrowed(NO_SLASH));
/// The slash.
pub(super) const SLASH: Class = Class::One('/');

impl Class {
    /// The characters in these ranges, or all others. Never the slash.
    pub(super) fn listed(ranges: &[(char, char)], taken: ListedRanges) -> Class {
        let mut listed: Vec<Range> = ranges.iter().map(|(first, last)| (*first as u32, *last as u32)).collect();
        listed.sort_unstable();
        let left = match taken {
            ListedRanges::These => meet(&listed, NO_SLASH),
            ListedRanges::AllOthers => meet(&complement(&listed), NO_SLASH),
        };
        Class::Ranges(Cow::Owned(left))
    }

    pub(super) fn contains(&self, character: char) -> bool {
        match self {
            Class::One(one) => *one == character,
            Class::Ranges(ranges) => {
                let number = character as u32;
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
            }
        }
    }

    /// A character of this kind that is in both sets, preferably a readable one.
    pub(super) fn common(&self, other: &Class, kind: Kind) -> Option<char> {
        let both = |character: char| self.contains(character) && other.contains(character);
        match (kind, self, other) {
            (Kind::Slash, _, _) => both('/').then_some('/'),
            (Kind::Dot, _, _) => both('.').then_some('.'),
            (Kind::Other, Class::One(one), _) | (Kind::Other, _, Class::One(one)) => {
                (Kind::of(*one) == Kind::Other && both(*one)).then_some(*one)
            }
            (Kind::Other, Class::Ranges(ours), Class::Ranges(theirs)) => {
                let readable = ('a'..='z').chain('0'..='9').chain('A'..='Z').find(|character| both(*character));
                readable.or_else(|| first_other(&meet(ours, theirs)))
            }
        }
    }
}

/// Whether a class lists its characters or the excluded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedRanges {
    /// The listed characters.
    These,
    /// All characters but the listed ones.
    AllOthers,
}

/// The first character that is neither slash nor dot.
fn first_other(ranges: &[Range]) -> Option<char> {
    let characters = ranges.iter().flat_map(|(first, last)| *first..=*last).filter_map(char::from_u32);
    // The walk skips at most two characters.
    characters.into_iter().find(|character| Kind::of(*character) == Kind::Other)
}

/// The intersection of two lists of ranges.
fn meet(ours: &[Range], theirs: &[Range]) -> Vec<Range> {
    let mut both = Vec::new();
    for (first, last) in ours {
        for (from, to) in theirs {
            let (low, high) = (*first.max(from), *last.min(to));
            if low <= high {
                both.push((low, high));
            }
        }
    }
    both
}

/// The characters in none of these ranges, which are sorted.
fn complement(ranges: &[Range]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut from = 0;
    for (first, last) in ranges {
        if *first > from {
            left.push((from, first - 1));
        }
        from = from.max(last + 1);
    }
    if from <= 0x10_FFFF {
        left.push((from, 0x10_FFFF));
    }
    left
}
