//! Parses a pattern into its branches. Every error names its position.

use super::automaton::{Branch, Step};
use super::class::{Class, IN_COMPONENT, ListedRanges};

/// The longest text of a pattern, in bytes.
pub const LONGEST_GLOB: usize = 512;
/// Maximum number of steps of all alternatives together. Bounds the cost of a comparison.
const MOST_STEPS: usize = 2048;
/// The characters with a special meaning.
pub(super) const SPECIAL: [char; 6] = ['*', '?', '[', '{', '}', '\\'];

/// Why a text is not a pattern, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{glob}` is not a pattern: {flaw}{}", place(*at))]
pub struct InvalidGlob {
    /// The text of the pattern.
    pub glob: String,
    /// The character with the flaw, counted from one; zero if the flaw is in the whole text.
    pub at: usize,
    /// What is wrong there.
    pub flaw: Flaw,
}

impl InvalidGlob {
    pub(super) fn new(glob: &str, at: usize, flaw: Flaw) -> InvalidGlob {
        InvalidGlob { glob: glob.chars().take(80).collect(), at, flaw }
    }
}

fn place(at: usize) -> String {
    if at == 0 { String::new() } else { format!(" (at character {at})") }
}

/// What can be wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// Longer than [`LONGEST_GLOB`].
    #[error("it is longer than {LONGEST_GLOB} bytes")]
    TooLong,
    /// The braces stand for too many alternatives.
    #[error("its braces stand for too many alternatives")]
    TooMany,
    /// A `[` without its `]`.
    #[error("this `[` is never closed")]
    OpenClass,
    /// `[]` or `[!]`.
    #[error("a class of characters names at least one")]
    EmptyClass,
    /// `[z-a]`.
    #[error("this range runs backwards")]
    BackwardRange,
    /// `[a/b]`.
    #[error("a class of characters cannot hold a `/`")]
    SlashInClass,
    /// A `{` without its `}`.
    #[error("this `{{` is never closed")]
    OpenBrace,
    /// A `}` without its `{`.
    #[error("this `}}` closes nothing")]
    StrayBrace,
    /// A `\` at the end.
    #[error("nothing follows this `\\`")]
    TrailingBackslash,
    /// `a**` or `***`.
    #[error("`**` stands for whole folders and is written alone between slashes")]
    CrampedStars,
    /// A NUL.
    #[error("no path holds this character")]
    Impossible,
    /// It begins with a slash.
    #[error("it begins with a `/`, and paths are relative to the top of the repository")]
    Absolute,
    /// Nothing can ever match it.
    #[error("no path can match it")]
    Nowhere,
}

/// Part of a pattern, with its position.
#[derive(Clone, Debug)]
enum PatternPart {
    /// One character.
    One(Class),
    /// A `*`, and its position.
    Star(usize),
    /// `{…}`.
    Choice(Vec<Vec<PatternPart>>),
}

pub(super) fn branches(text: &str) -> Result<Vec<Branch>, InvalidGlob> {
    let whole = |flaw| InvalidGlob::new(text, 0, flaw);
    if text.is_empty() {
        return Err(whole(Flaw::Empty));
    }
    if text.len() > LONGEST_GLOB {
        return Err(whole(Flaw::TooLong));
    }
    if text.starts_with('/') {
        return Err(InvalidGlob::new(text, 1, Flaw::Absolute));
    }
    let mut reader = Reader { characters: text.chars().collect(), at: 0 };
    let parts = reader.parts(Depth::Top).map_err(|(at, flaw)| InvalidGlob::new(text, at, flaw))?;
    let mut rows = vec![Vec::new()];
    expand(&parts, &mut rows).map_err(whole)?;
    let mut branches = Vec::with_capacity(rows.len());
    let mut steps = 0;
    for row in rows {
        let branch = branch(row).map_err(|at| InvalidGlob::new(text, at, Flaw::CrampedStars))?;
        steps += branch.len();
        branches.push(branch);
    }
    if steps > MOST_STEPS { Err(whole(Flaw::TooMany)) } else { Ok(branches) }
}

/// Whether a text is obviously a valid pattern, without parsing it. Only a yes is certain.
pub(super) fn is_plainly_right(text: &str) -> bool {
    let stars_are_roomy = |component: &str| component == "**" || !component.contains("**");
    !text.is_empty()
        && text.len() <= LONGEST_GLOB
        && !text.starts_with('/')
        && !text.contains(['[', '{', '}', '\\', '\0'])
        && text.split('/').all(stars_are_roomy)
}

/// The text that every path of a pattern begins and ends with, as far as it is visible without parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends<'t> {
    prefix: &'t str,
    suffix: &'t str,
}

pub(super) fn ends(text: &str) -> Ends<'_> {
    let prefix = text.split(SPECIAL).next().unwrap_or(text);
    let suffix = match text.rsplit_once(['*', '?']) {
        // Braces, classes and escapes would need parsing.
        _ if text.contains(['[', '{', '}', '\\']) || text.ends_with('/') => "",
        None => text,
        // `**/` may match no folder at all, and then there is no slash.
        Some((before, behind)) if before.ends_with('*') => behind.strip_prefix('/').unwrap_or(behind),
        Some((_, behind)) => behind,
    };
    Ends { prefix, suffix }
}

impl Ends<'_> {
    /// Whether one path could begin and end as both require. A quick test: only a no is certain.
    pub(super) fn may_meet(self, other: Ends<'_>) -> bool {
        let begins = self.prefix.bytes().zip(other.prefix.bytes()).all(|(one, other)| one == other);
        let ends = self.suffix.bytes().rev().zip(other.suffix.bytes().rev()).all(|(one, other)| one == other);
        begins && ends
    }
}

/// What ends a list of parts: the end of the text, or a comma or brace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    InBraces,
}

struct Reader {
    characters: Vec<char>,
    at: usize,
}

/// A flaw and its position, counted from one.
type FlawAt = (usize, Flaw);

impl Reader {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.get(self.at).copied();
        self.at += usize::from(character.is_some());
        character
    }

    /// Parses to the end of the text; within braces, to the comma or brace that ends an alternative.
    fn parts(&mut self, depth: Depth) -> Result<Vec<PatternPart>, FlawAt> {
        let mut parts = Vec::new();
        while let Some(character) = self.next() {
            let at = self.at;
            match character {
                '\0' => return Err((at, Flaw::Impossible)),
                '*' => parts.push(PatternPart::Star(at)),
                '?' => parts.push(PatternPart::One(IN_COMPONENT)),
                '[' => parts.push(PatternPart::One(self.class(at)?)),
                '{' => parts.push(self.choice(at)?),
                '}' | ',' if depth == Depth::InBraces => {
                    self.at -= 1;
                    return Ok(parts);
                }
                '}' => return Err((at, Flaw::StrayBrace)),
                '\\' => parts.push(PatternPart::One(Class::One(self.escaped(at)?))),
                letter => parts.push(PatternPart::One(Class::One(letter))),
            }
        }
        Ok(parts)
    }

    fn escaped(&mut self, at: usize) -> Result<char, FlawAt> {
        match self.next() {
            None => Err((at, Flaw::TrailingBackslash)),
            Some('\0') => Err((at + 1, Flaw::Impossible)),
            Some(letter) => Ok(letter),
        }
    }

    /// Parses the alternatives after the `{` at `opened`.
    fn choice(&mut self, opened: usize) -> Result<PatternPart, FlawAt> {
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.parts(Depth::InBraces)?);
            match self.next() {
                Some('}') => return Ok(PatternPart::Choice(alternatives)),
                Some(_) => {}
                None => return Err((opened, Flaw::OpenBrace)),
            }
        }
    }

    /// Parses the characters after the `[` at `opened`.
    fn class(&mut self, opened: usize) -> Result<Class, FlawAt> {
        let mut taken = ListedRanges::These;
        if matches!(self.characters.get(self.at), Some('!' | '^')) {
            taken = ListedRanges::AllOthers;
            self.at += 1;
        }
        let mut ranges = Vec::new();
        loop {
            let first = match self.next() {
                None => return Err((opened, Flaw::OpenClass)),
                Some(']') if ranges.is_empty() => return Err((opened, Flaw::EmptyClass)),
                Some(']') => return Ok(Class::listed(&ranges, taken)),
                Some('/') => return Err((self.at, Flaw::SlashInClass)),
                Some('\\') => self.escaped(self.at)?,
                Some(letter) => letter,
            };
            let begins = self.at;
            let is_range = self.characters.get(self.at) == Some(&'-')
                && self.characters.get(self.at + 1).is_some_and(|behind| *behind != ']');
            let last = if is_range {
                self.at += 1;
                match self.next() {
                    None => return Err((opened, Flaw::OpenClass)),
                    Some('\\') => self.escaped(self.at)?,
                    Some(letter) => letter,
                }
            } else {
                first
            };
            if last < first {
                return Err((begins, Flaw::BackwardRange));
            }
            ranges.push((first, last));
        }
    }
}

/// Appends parts to each row. Every choice multiplies the rows.
fn expand(parts: &[PatternPart], rows: &mut Vec<Vec<PatternPart>>) -> Result<(), Flaw> {
    for part in parts {
        match part {
            PatternPart::One(_) | PatternPart::Star(_) => rows.iter_mut().for_each(|row| row.push(part.clone())),
            PatternPart::Choice(alternatives) => {
                let mut more = Vec::new();
                for alternative in alternatives {
                    let mut chosen = rows.clone();
                    expand(alternative, &mut chosen)?;
                    more.append(&mut chosen);
                    if more.iter().map(Vec::len).sum::<usize>() > MOST_STEPS || more.len() > MOST_STEPS {
                        return Err(Flaw::TooMany);
                    }
                }
                *rows = more;
            }
        }
    }
    Ok(())
}

/// The branch of a row without braces. The error is the position of a `**` that is not alone between slashes.
fn branch(row: Vec<PatternPart>) -> Result<Branch, usize> {
    let is_slash = |part: Option<&PatternPart>| matches!(part, Some(PatternPart::One(Class::One('/'))));
    let mut steps = Vec::with_capacity(row.len() + 1);
    let mut index = 0;
    while let Some(part) = row.get(index) {
        match part {
            PatternPart::Star(at) if matches!(row.get(index + 1), Some(PatternPart::Star(_))) => {
                let begins = index == 0 || is_slash(row.get(index - 1));
                match row.get(index + 2) {
                    None if begins => {
                        steps.push(Step::Rest);
                        index += 2;
                    }
                    after if begins && is_slash(after) => {
                        steps.push(Step::Folders);
                        index += 3;
                        if index == row.len() {
                            steps.push(Step::Rest);
                        }
                    }
                    _ => return Err(*at),
                }
            }
            PatternPart::Star(_) => {
                steps.push(Step::Run);
                index += 1;
            }
            PatternPart::One(class) => {
                steps.push(Step::One(class.clone()));
                index += 1;
                if index == row.len() && is_slash(Some(part)) {
                    steps.push(Step::Rest);
                }
            }
            PatternPart::Choice(_) => unreachable!("braces were expanded before"),
        }
    }
    Ok(Branch::new(steps))
}
