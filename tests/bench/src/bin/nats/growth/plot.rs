//! What was measured, as a table in Markdown and as a picture: messages that wait, in powers of ten, across, and
//! milliseconds upwards, both logarithmic, so that what does not grow lies flat.

use std::fmt::Write as _;
use std::time::Duration;

use super::Step;

/// A colour for each question, told apart also by those who see few colours.
const COLOURS: [&str; 8] = ["#0072b2", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#2b2b2b", "#e69f00", "#999999"];
/// The picture's frame, in its own units.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 490.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 320.0;

/// The rows of the table.
pub(super) fn table(questions: &[&str], steps: &[Step]) -> Vec<String> {
    let head: Vec<String> =
        steps.iter().map(|step| format!("{} agents, {} messages", step.agents, step.messages)).collect();
    let mut rows = vec![format!("| p50 | {} |", head.join(" | ")), format!("|---|{}", "---|".repeat(steps.len()))];
    for (place, question) in questions.iter().enumerate() {
        let cells: Vec<String> = steps.iter().map(|step| spoken(milliseconds(step.took[place]))).collect();
        rows.push(format!("| {question} | {} |", cells.join(" | ")));
    }
    let sizes = |what: &str, of: fn(&Step) -> u64| {
        let cells: Vec<String> = steps.iter().map(|step| format!("{:.1} MB", of(step) as f64 / 1e6)).collect();
        format!("| {what} | {} |", cells.join(" | "))
    };
    rows.push(sizes("the server's memory", |step| step.memory));
    rows.push(sizes("the stream of messages on disk", |step| step.disk));
    rows
}

/// The picture.
pub(super) fn draw(questions: &[&str], steps: &[Step]) -> String {
    let times = || steps.iter().flat_map(|step| step.took.iter().map(|took| milliseconds(*took)));
    let lowest = times().fold(f64::MAX, f64::min).log10().floor();
    let highest = times().fold(f64::MIN, f64::max).log10().ceil().max(lowest + 1.0);
    let x = |place: usize| LEFT + (RIGHT - LEFT) * place as f64 / (steps.len().max(2) - 1) as f64;
    let y = |power: f64| BOTTOM - (BOTTOM - TOP) * (power - lowest) / (highest - lowest);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 380\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"760\" height=\"380\" fill=\"white\"/>\n\
         <text x=\"70\" y=\"22\">What is asked of one agent, while agents and mail of all others grow (p50)</text>\n",
    );
    // Writing to a string cannot fail.
    let mut line = |text: String| {
        let _infallible = writeln!(svg, "{text}");
    };
    let mut power = lowest;
    while power <= highest {
        let at = y(power);
        line(format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#ddd\"/>"));
        let label = spoken(10_f64.powf(power));
        line(format!("<text x=\"62\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", at + 4.0));
        power += 1.0;
    }
    for (place, step) in steps.iter().enumerate() {
        for (row, text) in [format!("{}", step.messages), format!("{} agents", step.agents)].iter().enumerate() {
            let at = BOTTOM + 18.0 + 14.0 * row as f64;
            line(format!("<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=\"middle\">{text}</text>", x(place)));
        }
    }
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (place, (question, colour)) in questions.iter().zip(COLOURS).enumerate() {
        let at = |step: &Step| y(milliseconds(step.took[place]).log10());
        let points: Vec<String> =
            steps.iter().enumerate().map(|(number, step)| format!("{:.1},{:.1}", x(number), at(step))).collect();
        line(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        ));
        if let Some(last) = steps.last() {
            let text = format!("{}: {}", question.replace('`', ""), spoken(milliseconds(last.took[place])));
            labels.push((at(last), format!("fill=\"{colour}\">{text}")));
        }
    }
    // Labels that would lie over each other give way downwards.
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = 0.0;
    for (wanted, label) in labels {
        let at = f64::max(wanted + 4.0, free);
        line(format!("<text x=\"{}\" y=\"{at:.1}\" {label}</text>", RIGHT + 8.0));
        free = at + 14.0;
    }
    line("<text x=\"280\" y=\"370\" text-anchor=\"middle\">messages that wait, of so many agents</text>".to_owned());
    line("</svg>".to_owned());
    svg
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A time as people read it.
fn spoken(milliseconds: f64) -> String {
    let (number, unit) = if milliseconds < 1e3 { (milliseconds, "ms") } else { (milliseconds / 1e3, "s") };
    match number < 10.0 && number.fract() != 0.0 {
        true => format!("{number:.1} {unit}"),
        false => format!("{number:.0} {unit}"),
    }
}
