//! Pages of the docs: their blocks, and their commands with what each of them prints.

use std::path::Path;

use crate::programs::Program;

/// The id that a page shows in place of each that is printed. In a command it stands for the last one that was printed
/// before, and its first ten characters for those of that one.
const EXAMPLE_ID: &str = "01JD8Z3K5V0000000000000000";
/// How much of an id a page writes where the beginning is enough.
const BEGINNING: usize = 10;

/// What stands between two lines of three backticks.
#[derive(Clone, Debug)]
pub struct PageBlock {
    /// The heading of the second level above; empty before the first.
    pub section: String,
    /// The word behind the backticks, such as `console`; empty if there is none.
    pub kind: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// A command of a page, in a block of the kind `console`.
#[derive(Clone, Debug)]
pub struct PageCommand {
    /// The heading of the second level above.
    pub section: String,
    /// The line behind `$ `.
    pub typed: String,
    /// Its exit code: what ` # exits with ` at the line's end says, else 0.
    pub exits: i32,
    /// What it prints, where `…` stands for anything in a line, and alone for any number of lines.
    pub prints: Vec<String>,
}

/// The text of a page, by its path in the repository.
///
/// # Panics
/// If there is none.
pub fn page(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The blocks of a page, in order.
pub fn page_blocks(path: &str) -> Vec<PageBlock> {
    let (mut section, mut open) = (String::new(), None::<PageBlock>);
    let mut all = Vec::new();
    for line in page(path).lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(kind), None) => {
                open = Some(PageBlock { section: section.clone(), kind: kind.to_owned(), lines: Vec::new() });
            }
            (Some(_), Some(block)) => all.push(block),
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    heading.clone_into(&mut section);
                }
            }
        }
    }
    all
}

/// The commands of a page's `console` blocks, in order.
///
/// # Panics
/// If such a block does not begin with a command.
pub fn page_commands(path: &str) -> Vec<PageCommand> {
    let mut all = Vec::new();
    for block in page_blocks(path).iter().filter(|block| block.kind == "console") {
        let mut of_block: Vec<PageCommand> = Vec::new();
        for line in block.lines.iter().filter(|line| !line.trim().is_empty()) {
            if let Some(typed) = line.strip_prefix("$ ") {
                let (typed, exits) = typed.split_once(" # exits with ").unwrap_or((typed, "0"));
                let exits = exits.parse().expect("an exit code");
                let section = block.section.clone();
                of_block.push(PageCommand { section, typed: typed.to_owned(), exits, prints: Vec::new() });
            } else {
                of_block.last_mut().expect("a block begins with a command").prints.push(line.clone());
            }
        }
        all.extend(of_block);
    }
    all
}

/// Runs commands one after the other, each in the shell that its section gets: a program that takes one more argument,
/// the script.
///
/// # Panics
/// If one ends or prints otherwise than the page says.
pub fn run_page(commands: &[PageCommand], shell: impl Fn(&str) -> Program) {
    let mut last = String::new();
    for PageCommand { section, typed, exits, prints } in commands {
        let typed = with_id(typed, &last);
        let outcome = shell(section).arg(format!("exec 2>&1\n{typed}")).run();
        assert_eq!(outcome.code, Some(*exits), "{section}: {typed}: {outcome:?}");
        let mut told = outcome.stdout.clone();
        for id in ids(&outcome.stdout) {
            told = told.replace(id, EXAMPLE_ID);
            id.clone_into(&mut last);
        }
        let told: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
        assert!(page_fits(prints, &told), "{section}: {typed}\nthe page: {prints:#?}\nit printed: {told:#?}");
    }
}

/// Whether lines are those of a page, where `…` stands for anything in a line, and alone for any number of lines. How
/// much space there is between words does not count.
pub fn page_fits(page: &[String], told: &[&str]) -> bool {
    match page.split_first() {
        None => told.is_empty(),
        Some((line, rest)) if line.trim() == "…" => (0..=told.len()).any(|skipped| page_fits(rest, &told[skipped..])),
        Some((line, rest)) => {
            told.split_first().is_some_and(|(first, others)| line_fits(line, first) && page_fits(rest, others))
        }
    }
}

fn line_fits(page: &str, told: &str) -> bool {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (page, told) = (spaced(page), spaced(told));
    let Some((start, rest)) = page.split_once('…') else { return page == told };
    let Some(mut left) = told.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(end)
}

/// A command with the id that was printed last in place of the example. Before the first one it stays as it is.
fn with_id(typed: &str, last: &str) -> String {
    match last.get(..BEGINNING) {
        Some(beginning) => typed.replace(EXAMPLE_ID, last).replace(&EXAMPLE_ID[..BEGINNING], beginning),
        None => typed.to_owned(),
    }
}

fn ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| {
        let of_an_id = |letter: char| letter.is_ascii_digit() || letter.is_ascii_uppercase();
        word.len() == EXAMPLE_ID.len() && word.starts_with('0') && word.chars().all(of_an_id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_fits_a_page_where_the_page_leaves_something_out() {
        for (page, told, expected) in [
            ("a  b", "a b\n", true),
            ("a …\n…\nz", "a 1\nb\nc\nz", true),
            ("a\n…", "a", true),
            ("…b… c", "ab1 c", true),
            ("a…a", "a", false),
            ("a", "a\nb", false),
            ("a\nb", "a", false),
        ] {
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(page_fits(&lines(page), &told.lines().collect::<Vec<_>>()), expected, "{page} | {told}");
        }
    }

    #[test]
    fn the_example_stands_for_the_last_id() {
        let told = "01M8HSKMV3Z38E9NXDK72CHZMK  stored for bob (0123456789ABCDEF)";
        let last = ids(told).last().unwrap_or_default();
        assert_eq!(last, "01M8HSKMV3Z38E9NXDK72CHZMK");
        for (typed, expected) in [
            ("message 01JD8Z3K5V0000000000000000", "message 01M8HSKMV3Z38E9NXDK72CHZMK"),
            ("asks answer 01JD8Z3K5V 8080", "asks answer 01M8HSKMV3 8080"),
            ("agents", "agents"),
        ] {
            assert_eq!(with_id(typed, last), expected);
            assert_eq!(with_id(typed, ""), typed);
        }
    }
}
