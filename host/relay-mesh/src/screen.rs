//! How text fits a terminal: tables as wide as it is, characters that take two columns, colours of states. In a pipe nothing
//! is cut and nothing is left out.

use std::io::{self, IsTerminal};

use ui::cut;
use unicode_width::UnicodeWidthStr;

use crate::environment::Environment;
use crate::render::table;
use crate::unix;

/// The narrowest and the widest terminal that text is fitted to.
const COLUMNS: std::ops::RangeInclusive<usize> = 20..=400;
/// Spaces between two columns.
const GAP: usize = 2;

/// When standard output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The terminal that text is fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// How many columns it has.
    pub(crate) columns: usize,
    /// Whether states are coloured. Colour never carries meaning alone.
    pub(crate) is_coloured: bool,
    /// Whether what was shown can be replaced by what is shown next.
    pub(crate) redraws: bool,
}

impl Screen {
    /// The terminal of standard output. A pipe is none, unless the user wants colour in it: then it is one without an edge.
    pub(crate) fn of(environment: &Environment, when: ColourWhen) -> Option<Screen> {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            let endless = Screen { columns: usize::MAX, is_coloured: true, redraws: false };
            return (when == ColourWhen::Always).then_some(endless);
        }
        let columns = columns(unix::process::columns(&stdout), environment);
        let is_dumb = environment.get("TERM") == Some("dumb");
        let is_coloured = match when {
            ColourWhen::Always => true,
            ColourWhen::Never => false,
            ColourWhen::Auto => !is_dumb && environment.get("NO_COLOR").is_none(),
        };
        Some(Screen { columns, is_coloured, redraws: !is_dumb })
    }

    /// Whether it has no edge: then nothing is left out either.
    pub(crate) fn is_endless(&self) -> bool {
        self.columns == usize::MAX
    }

    /// A table that is at most as wide as the screen. The columns of the highest rank are left out first, those that may
    /// be cut are made narrower, the widest first, and what is still too wide is cut at the edge.
    pub(crate) fn table(&self, columns: &[Column], rows: &[Vec<String>]) -> String {
        let natural: Vec<usize> = (0..columns.len())
            .map(|at| {
                rows.iter().map(|row| row[at].width()).chain([columns[at].name.width()]).max().unwrap_or_default()
            })
            .collect();
        let least = |at: usize| natural[at].min(columns[at].least);
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        let total = |shown: &[usize], width: &dyn Fn(usize) -> usize| {
            shown.iter().map(|at| width(*at)).sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        while total(&shown, &least) > self.columns {
            let Some(highest) =
                shown.iter().copied().filter(|at| columns[*at].rank > 0).max_by_key(|at| columns[*at].rank)
            else {
                break;
            };
            shown.retain(|at| *at != highest);
        }
        let mut widths = natural.clone();
        while total(&shown, &|at| widths[at]) > self.columns {
            let widest = shown.iter().copied().filter(|at| widths[*at] > least(*at)).max_by_key(|at| widths[*at]);
            let Some(widest) = widest else { break };
            widths[widest] -= 1;
        }
        let head: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
        let lines = std::iter::once((&head, false)).chain(rows.iter().map(|row| (row, true)));
        lines.map(|(row, is_data)| self.line(columns, &shown, &widths, row, is_data)).collect::<Vec<_>>().join("\n")
    }

    fn line(&self, columns: &[Column], shown: &[usize], widths: &[usize], row: &[String], is_data: bool) -> String {
        let (mut line, mut width) = (String::new(), 0);
        for (number, at) in shown.iter().copied().enumerate() {
            // A screen that is too narrow for the columns that stay cuts the last of them.
            let left = self.columns.saturating_sub(width);
            let cell = cut(&row[at], widths[at].min(left));
            let code = columns[at].paint.filter(|_| self.is_coloured && is_data).and_then(|paint| paint(&row[at]));
            let cell_width = cell.width();
            match code {
                Some(code) => line.push_str(&format!("\u{1b}[{code}m{cell}\u{1b}[0m")),
                None => line.push_str(&cell),
            }
            width += cell_width;
            if number + 1 < shown.len() {
                let padding = (widths[at] - cell_width.min(widths[at]) + GAP).min(self.columns.saturating_sub(width));
                line.push_str(&" ".repeat(padding));
                width += padding;
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }

    /// Rows in columns, of which nothing is cut. If they are wider than the screen, the last cell of each stands below its
    /// row.
    pub(crate) fn last_below(&self, head: &[&str], rows: &[Vec<String>]) -> String {
        let beside = table(head, rows);
        let Some((_, head)) = head.split_last().filter(|_| beside.lines().any(|line| line.width() > self.columns))
        else {
            return beside;
        };
        let others: Vec<Vec<String>> = rows.iter().map(|row| row[..head.len()].to_vec()).collect();
        let above = table(head, &others);
        let below = std::iter::once("").chain(rows.iter().map(|row| row[head.len()].as_str()));
        let lines = above.lines().zip(below).flat_map(|(row, cell)| {
            let cell = (!cell.is_empty()).then(|| self.broken(&format!("  {cell}")));
            std::iter::once(row.to_owned()).chain(cell.into_iter().flatten())
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Each line of a text, cut at the edge.
    pub(crate) fn cut_lines(&self, text: &str) -> String {
        text.lines().map(|line| cut(line, self.columns)).collect::<Vec<_>>().join("\n")
    }
}

/// A column of a table.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    /// It is never narrower than this, if its cells are not.
    least: usize,
    /// A column of the highest rank is left out first; one of rank 0 never.
    rank: u8,
    /// The code of a cell's colour.
    paint: Option<fn(&str) -> Option<&'static str>>,
}

impl Column {
    /// A column whose cells are never cut.
    pub(crate) const fn whole(name: &'static str, rank: u8) -> Column {
        Column { name, least: usize::MAX, rank, paint: None }
    }

    /// A column whose cells may be cut to so many columns of the screen.
    pub(crate) const fn cut(name: &'static str, least: usize, rank: u8) -> Column {
        Column { name, least, rank, paint: None }
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn painted(self, paint: fn(&str) -> Option<&'static str>) -> Column {
        Column { paint: Some(paint), ..self }
    }
}

/// The colour of a state, as the number of a terminal's code.
pub(crate) fn colour_of_state(state: &str) -> Option<&'static str> {
    match state {
        "busy" | "running" => Some("32"),
        "needs-input" => Some("1;35"),
        "idle" => Some("36"),
        "paused" | "held" => Some("33"),
        "undeliverable" | "expired" | "failed" => Some("31"),
        "away" | "offline" => Some("2"),
        _ => None,
    }
}

impl Screen {
    /// Sentences behind a label, broken between words. What follows stands below their beginning, or further left if the
    /// screen is narrow.
    pub(crate) fn labelled(&self, label: &str, text: &str) -> String {
        labelled(label, label.width(), text, self.columns)
    }

    /// Lines of sentences, each broken between words.
    pub(crate) fn sentences(&self, text: &str) -> String {
        sentences(text, self.columns)
    }

    /// A line of sentences, broken between words: see [`broken`].
    pub(crate) fn broken(&self, line: &str) -> Vec<String> {
        broken(line, self.columns)
    }
}

/// Lines of sentences, each broken between words.
pub(crate) fn sentences(text: &str, columns: usize) -> String {
    text.lines().flat_map(|line| broken(line, columns)).collect::<Vec<_>>().join("\n")
}

/// A line of sentences, broken between words. What follows stands below the beginning of its text: in `  NAME  WORDS`
/// below the words.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let first = wrapped(line, columns).into_iter().next().unwrap_or_default();
    let rest = line.get(first.len()..).unwrap_or_default().trim_start();
    if rest.is_empty() {
        return vec![line.to_owned()];
    }
    let (margin, text) = line.split_at(line.len() - line.trim_start().len());
    let gap = text.find("  ").filter(|_| !margin.is_empty());
    let below = gap.map(|gap| margin.len() + text.len() - text[gap..].trim_start().len());
    let indent = below.filter(|below| *below <= columns / 2).unwrap_or(margin.len() + 2);
    let rest = wrapped(rest, columns.saturating_sub(indent));
    let below = rest.into_iter().map(|part| format!("{:indent$}{}", "", part.trim_end()));
    std::iter::once(first.trim_end().to_owned()).chain(below).collect()
}

/// Parts of a line that take no more columns, without the space at which they are broken. A word that is longer, such as
/// a path, stays whole, so that it can be copied: the terminal breaks it.
fn wrapped(text: &str, columns: usize) -> Vec<&str> {
    let (mut parts, mut start, mut width) = (Vec::new(), 0, 0);
    let mut at = 0;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ').width();
        if width > 0 && width + bare > columns && !text[start..at].trim().is_empty() {
            parts.push(&text[start..at]);
            (start, width) = (at, 0);
        }
        at += word.len();
        width += word.width();
    }
    parts.push(&text[start..]);
    parts
}

/// How wide the terminal of standard error is; none in a pipe.
pub(crate) fn columns_of_errors(environment: &Environment) -> Option<usize> {
    let stderr = io::stderr();
    stderr.is_terminal().then(|| columns(unix::process::columns(&stderr), environment))
}

fn columns(measured: Option<u16>, environment: &Environment) -> usize {
    let told = environment.get("COLUMNS").and_then(|columns| columns.parse::<usize>().ok());
    let measured = measured.map_or(0, usize::from);
    // A terminal that does not say how wide it is.
    let columns = [told.unwrap_or(0), measured, 80].into_iter().find(|columns| *columns > 0).unwrap_or(80);
    columns.clamp(*COLUMNS.start(), *COLUMNS.end())
}

/// A text behind a label that takes `width` columns, broken between words.
pub(crate) fn labelled(label: &str, width: usize, text: &str, columns: usize) -> String {
    if columns == usize::MAX {
        return format!("{label}{text}");
    }
    // A label that takes much of a narrow screen stands on a line with the first words alone.
    let indent = if width <= columns / 2 { width } else { 2 };
    let mut told = String::new();
    for (number, line) in text.split('\n').enumerate() {
        let room = if number == 0 { columns.saturating_sub(width) } else { columns.saturating_sub(indent) };
        let first = wrapped(line, room).into_iter().next().unwrap_or_default();
        let rest = line.get(first.len()..).unwrap_or_default().trim_start();
        match number {
            0 => told.push_str(&format!("{label}{}", first.trim_end())),
            _ => told.push_str(&format!("\n{:indent$}{}", "", first.trim_end())),
        }
        if !rest.is_empty() {
            for part in wrapped(rest, columns.saturating_sub(indent)) {
                told.push_str(&format!("\n{:indent$}{}", "", part.trim_end()));
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_narrow_screen_has_no_room_for_stands_below() {
        let rows = [["alice", "stored", ""], ["alice", "read", "a reply of many words"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let on = |columns| {
            let screen = Screen { columns, is_coloured: false, redraws: true };
            screen.last_below(&["TO", "STATUS", "EVIDENCE"], &rows)
        };
        assert_eq!(
            on(36),
            "TO     STATUS  EVIDENCE\n\
             alice  stored\n\
             alice  read    a reply of many words"
        );
        assert_eq!(
            on(20),
            "TO     STATUS\n\
             alice  stored\n\
             alice  read\n  a reply of many\n    words"
        );
    }

    #[test]
    fn a_line_is_broken_between_words_and_a_path_stays_whole() {
        for (line, expected) in [
            ("one two three", "one two\n  three"),
            ("token: /a/path/that/is/long", "token:\n  /a/path/that/is/long"),
            ("/a/path/that/is/long now", "/a/path/that/is/long\n  now"),
            ("  NAME  words of it", "  NAME\n    words\n    of it"),
            ("", ""),
        ] {
            assert_eq!(broken(line, 10).join("\n"), expected, "{line}");
        }
    }

    const HEAD: [Column; 4] = [
        Column::cut("AGENT", 6, 0),
        Column::whole("PRESENCE", 0).painted(colour_of_state),
        Column::whole("HEARD", 1),
        Column::cut("ABOUT", 8, 2),
    ];

    fn rows() -> Vec<Vec<String>> {
        [
            ["worker-2", "busy", "just now", "writes the parser, and then the tests of it, and then the documents"],
            ["レビュー担当", "needs-input", "12 min ago", "日本語のテキストはここで切られます、そして続きます"],
            ["👩‍💻-pair", "offline", "2 d ago", ""],
        ]
        .map(|row| row.map(str::to_owned).to_vec())
        .to_vec()
    }

    fn shown(columns: usize) -> String {
        Screen { columns, is_coloured: false, redraws: false }.table(&HEAD, &rows())
    }

    #[test]
    fn a_table_is_never_wider_than_the_screen() {
        for columns in 20..=200 {
            for line in shown(columns).lines() {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
        }
        assert!(shown(200).contains("and then the documents"), "nothing is cut if there is room enough");
    }

    #[test]
    fn what_tells_least_is_left_out_first_and_what_is_cut_says_so() {
        assert!(shown(40).starts_with("AGENT "), "{}", shown(40));
        assert!(!shown(38).contains("ABOUT") && shown(38).contains("HEARD"), "{}", shown(38));
        assert!(!shown(24).contains("HEARD") && shown(24).contains("PRESENCE"), "{}", shown(24));
        assert!(shown(60).contains("writes the") && shown(60).contains('…'), "{}", shown(60));
    }

    #[test]
    fn columns_stand_below_each_other_whatever_is_in_them() {
        let place = |line: &str, word: &str| line.split(word).next().map(|before| before.width());
        let text = shown(80);
        let lines: Vec<&str> = text.lines().collect();
        let expected = place(lines[0], "PRESENCE");
        for (line, word) in [(lines[1], "busy"), (lines[2], "needs-input"), (lines[3], "offline")] {
            assert_eq!(place(line, word), expected, "{text}");
        }
    }

    #[test]
    fn colour_changes_no_width_and_is_left_out_if_it_is_not_wanted() {
        let coloured = Screen { columns: 80, is_coloured: true, redraws: false }.table(&HEAD, &rows());
        assert!(
            coloured.contains("\u{1b}[32mbusy\u{1b}[0m") && coloured.contains("\u{1b}[1;35mneeds-input"),
            "{coloured}"
        );
        let plain =
            ["32", "1;35", "2", "0"].iter().fold(coloured, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
        assert_eq!(plain, shown(80));
    }

    #[test]
    fn sentences_are_broken_between_words_and_stand_below_their_beginning() {
        let broken =
            |line: &str, columns: usize| Screen { columns, is_coloured: false, redraws: true }.broken(line).join("\n");
        assert_eq!(broken("a short one", 20), "a short one");
        assert_eq!(broken("signed by a key that nobody has seen", 20), "signed by a key that\n  nobody has seen");
        assert_eq!(
            broken("  name  what it is allowed to do", 20),
            "  name  what it is\n        allowed to\n        do"
        );
        assert_eq!(broken("  a-very-long-name  what it does here", 24), "  a-very-long-name  what\n    it does here");
        assert_eq!(broken("x", usize::MAX), "x");
    }
}
