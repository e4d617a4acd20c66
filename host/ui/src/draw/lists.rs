//! The agents in their groups, and the lists of the middle.

use ratatui::buffer::Buffer;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;
use view::live::{AgentLine, AgentRow, Column, Dot, Live, Middle, Pane, Row, Tone};
use view::visible_line;

use super::{Screen, chosen, first_seen, pane, row, write};
use crate::palette::Palette;
use crate::text::{cut, fitted};

/// So many dots are shown of a message; how many more there are is a number.
const DOTS: usize = 8;
/// The last column is never narrower than this while another can be left out.
const LEAST: usize = 16;

/// The agents in their groups.
pub(super) fn agents(buffer: &mut Buffer, live: &Live, screen: &mut Screen) {
    let lines = live.agent_lines();
    let title = match live.narrowed() {
        "" => "Agents".to_owned(),
        narrowed => format!("Agents with “{narrowed}”"),
    };
    pane(buffer, screen, live, Pane::Agents, &title);
    let area = screen.areas.inside(Pane::Agents);
    let at = live.agent_at();
    let chosen_line = lines.iter().position(|line| matches!(line, AgentLine::Agent(place, _) if *place == at));
    let chosen_line = chosen_line.unwrap_or_default();
    let height = usize::from(area.height);
    let from = first_seen(screen.agents_from, chosen_line, lines.len(), height);
    // The heading of the first group is seen with its first agent.
    screen.agents_from = if chosen_line <= 1 && height > 1 { 0 } else { from };
    if lines.is_empty() {
        let text = match (live.is_read(), live.agent_count()) {
            (false, 0) => "reading the mesh…",
            (true, 0) => "no agents are here yet",
            (_, _) => "no agent has that; Esc shows all",
        };
        write(buffer, area, &Line::from(Span::styled(text, screen.palette.of(Tone::Faint))));
    }
    let names = lines.iter().filter_map(|line| match line {
        AgentLine::Agent(_, agent) => Some(agent.name().width()),
        AgentLine::Heading(..) => None,
    });
    let width = usize::from(area.width);
    let name_width = names.max().unwrap_or_default().clamp(6, (width / 2).max(6));
    for (number, line) in lines.iter().skip(screen.agents_from).enumerate() {
        let Some(area) = row(area, number) else { break };
        let line = match line {
            AgentLine::Heading(group, count) => {
                let style = screen.palette.of(group.tone()).add_modifier(Modifier::BOLD);
                Line::from(Span::styled(format!("{} ({count})", group.title()), style))
            }
            AgentLine::Agent(place, agent) => {
                let is_chosen = *place == at;
                let line = agent_line(screen.palette, agent, name_width, width, is_chosen);
                if is_chosen { line.style(chosen(Style::new(), live.focus() == Pane::Agents)) } else { line }
            }
        };
        write(buffer, area, &line);
    }
}

fn agent_line(palette: Palette, agent: &AgentRow, name_width: usize, width: usize, is_chosen: bool) -> Line<'static> {
    let unread = match agent.detail.agent.waiting {
        0 => String::new(),
        some @ 1..1_000 => some.to_string(),
        _ => "999+".to_owned(),
    };
    let mark = if is_chosen { "▸ " } else { "  " };
    let name = fitted(&visible_line(agent.name()), name_width);
    let mut line = Line::from(vec![
        Span::raw(mark),
        Span::styled(name, palette.of(agent.group.tone())),
        Span::styled(format!(" {unread:>4}"), palette.of(Tone::Strong)),
    ]);
    let left = width.saturating_sub(name_width + 2 + 5);
    let mut rest = vec![visible_line(agent.harness()).into_owned()];
    if agent.detail.paused {
        rest.insert(0, "paused".to_owned());
    }
    if !agent.task().is_empty() {
        rest.push(visible_line(agent.task()).into_owned());
    }
    if left > 4 {
        line.push_span(Span::styled(fitted(&format!(" {}", rest.join(" · ")), left), palette.of(Tone::Faint)));
    }
    line
}

/// A row with its times as they are told now.
struct DrawnRow {
    cells: Vec<String>,
    state: &'static str,
    dots: Vec<Dot>,
}

impl DrawnRow {
    fn of(row: Row, live: &Live) -> DrawnRow {
        let Row { cells, state, dots } = row;
        DrawnRow { cells: cells.iter().map(|cell| cell.text(live.now())).collect(), state, dots }
    }
}

/// What the middle shows.
pub(super) fn middle(buffer: &mut Buffer, live: &Live, screen: &mut Screen) {
    let count = live.middle_count();
    pane(buffer, screen, live, Pane::Middle, &title(live, count));
    let area = screen.areas.inside(Pane::Middle);
    if area.is_empty() {
        return;
    }
    if count == 0 {
        write(buffer, area, &Line::from(Span::styled(nothing(live), screen.palette.of(Tone::Faint))));
        return;
    }
    let height = usize::from(area.height).saturating_sub(1);
    screen.middle_from = first_seen(screen.middle_from, live.middle_at(), count, height);
    let from = screen.middle_from;
    let rows = live.middle_rows(from..(from + height).min(count)).into_iter();
    let rows: Vec<DrawnRow> = rows.map(|row| DrawnRow::of(row, live)).collect();
    let columns = live.middle_columns();
    let dots = rows.iter().map(|one| dots_width(&one.dots)).max().unwrap_or_default();
    let widths = widths(columns, &rows, usize::from(area.width).saturating_sub(2), dots);
    let heads: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    let head = DrawnRow { cells: heads, state: "", dots: Vec::new() };
    write(buffer, area, &table_line(screen.palette, &head, &widths, dots, false).style(screen.palette.of(Tone::Faint)));
    for (number, one) in rows.iter().enumerate() {
        let Some(area) = row(area, number + 1) else { break };
        let is_chosen = from + number == live.middle_at();
        let line = table_line(screen.palette, one, &widths, dots, is_chosen);
        let line = if is_chosen { line.style(chosen(Style::new(), live.focus() == Pane::Middle)) } else { line };
        write(buffer, area, &line);
    }
}

fn title(live: &Live, count: usize) -> String {
    match live.middle() {
        Middle::List(tab) => match live.narrowed() {
            "" => tab.title().to_owned(),
            narrowed => format!("{} with “{narrowed}”", tab.title()),
        },
        Middle::Found(found) if found.found > count => format!("{count} of {} with “{}”", found.found, found.words),
        Middle::Found(found) => format!("Found “{}”", found.words),
        Middle::Thread(open) => {
            let subject = open.thread.as_ref().map(|thread| thread.subject()).unwrap_or_default();
            let earlier = open.thread.as_ref().map_or(0, |thread| thread.earlier);
            let name = if subject.is_empty() { &open.name } else { subject };
            if earlier > 0 { format!("{name} ({earlier} earlier messages are left out)") } else { name.to_owned() }
        }
    }
}

/// What is said where there is nothing.
fn nothing(live: &Live) -> &'static str {
    match live.middle() {
        Middle::Found(found) if found.hits.is_none() => "searching…",
        Middle::Found(_) => "no message has these words; Esc goes back",
        Middle::Thread(open) if open.thread.is_none() => "reading…",
        Middle::Thread(_) => "no message of it is kept",
        Middle::List(tab) => match tab {
            view::live::Tab::Threads if !live.are_threads_read() => "reading the conversations…",
            _ if live.count(tab) > 0 => "nothing here has that; Esc shows all",
            view::live::Tab::Log => tab.empty(),
            _ if !live.is_read() => "reading the mesh…",
            tab => tab.empty(),
        },
    }
}

/// How wide the dots of a message are.
fn dots_width(dots: &[Dot]) -> usize {
    match dots.len() {
        0 => 0,
        few @ 1..=DOTS => few,
        many => DOTS + 1 + (many - DOTS).to_string().len(),
    }
}

/// How wide each column is: what its cells need, at most what it may take; the last one has what is left. One of no width
/// is left out.
fn widths(columns: &[Column], rows: &[DrawnRow], width: usize, dots: usize) -> Vec<usize> {
    let last = columns.len().saturating_sub(1);
    let needed = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cell.width());
        cells.chain([columns[at].name.width()]).max().unwrap_or_default().min(columns[at].width)
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(|at| if at == last { 0 } else { needed(at) }).collect();
    let taken = |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>();
    let of_dots = if dots > 0 { dots + 2 } else { 0 };
    while taken(&widths) + of_dots + LEAST > width {
        let shown = (0..last).filter(|at| widths[*at] > 0 && columns[*at].rank > 0);
        let Some(first_to_go) = shown.max_by_key(|at| columns[*at].rank) else { break };
        // What says who is made narrower before it is left out.
        let least = if columns[first_to_go].rank == 1 { 8 } else { 0 };
        widths[first_to_go] = if widths[first_to_go] > least && least > 0 { least } else { 0 };
    }
    widths[last] = width.saturating_sub(taken(&widths) + of_dots);
    widths
}

fn table_line(palette: Palette, one: &DrawnRow, widths: &[usize], dots: usize, is_chosen: bool) -> Line<'static> {
    let mut line = Line::from(Span::raw(if is_chosen { "▸ " } else { "  " }));
    let last = widths.len().saturating_sub(1);
    for (at, (cell, width)) in one.cells.iter().zip(widths).enumerate() {
        if at == last && dots > 0 {
            one.dots.iter().take(DOTS).for_each(|dot| {
                line.push_span(Span::styled(dot.glyph().to_string(), palette.of(dot.tone())));
            });
            let more = one.dots.len().saturating_sub(DOTS);
            let more = if more > 0 { format!("+{more}") } else { String::new() };
            let shown = one.dots.len().min(DOTS);
            line.push_span(Span::raw(fitted(&more, (dots + 2).saturating_sub(shown))));
        }
        if *width == 0 {
            continue;
        }
        let style = if at == last { Style::new() } else { palette.of_state(one.state) };
        let text = if at == last { cut(cell, *width) } else { format!("{}  ", fitted(cell, *width)) };
        line.push_span(Span::styled(text, style));
    }
    line
}
