//! The growth laws as a picture: ages across, ratios to the first one upwards on a logarithmic scale, so that what
//! does not grow lies flat.

use std::fmt::Write as _;

use crate::table::Table;

/// Colours that differ also for those who see few colours; a second round of them is dashed.
const COLOURS: [&str; 8] = ["#0072b2", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#2b2b2b", "#e69f00", "#999999"];
/// The picture's frame, in its own units.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 460.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 340.0;

/// The picture.
pub(crate) fn draw(title: &str, table: &Table) -> String {
    let laws = table.laws();
    let highest = laws.iter().flat_map(|(_, ratios)| ratios).fold(10.0_f64, |most, ratio| most.max(*ratio));
    let (lowest, highest) = (0.1_f64.log10(), highest.log10().ceil());
    let x = |place: usize| LEFT + (RIGHT - LEFT) * place as f64 / (table.ages().len().max(2) - 1) as f64;
    let y = |ratio: f64| BOTTOM - (BOTTOM - TOP) * (ratio.max(0.1).log10() - lowest) / (highest - lowest);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 400\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"820\" height=\"400\" fill=\"white\"/>\n",
    );
    // Writing to a string cannot fail.
    let mut line = |text: String| {
        let _infallible = writeln!(svg, "{text}");
    };
    line(format!("<text x=\"{LEFT}\" y=\"22\">{title}: ratios to the first age</text>"));
    let mut power = lowest;
    while power <= highest {
        let (ratio, at) = (10.0_f64.powf(power), y(10.0_f64.powf(power)));
        line(format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#ddd\"/>"));
        line(format!("<text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{ratio} ×</text>", at + 4.0));
        power += 1.0;
    }
    // What each age may have.
    let budget: Vec<String> = table
        .ages()
        .iter()
        .enumerate()
        .map(|(place, age)| format!("{:.1},{:.1}", x(place), y(age.allowance())))
        .collect();
    line(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"red\" stroke-dasharray=\"2 4\"/>", budget.join(" ")));
    for (place, age) in table.ages().iter().enumerate() {
        line(format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(place),
            BOTTOM + 20.0,
            age.title()
        ));
    }
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (place, (row, ratios)) in laws.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let dashes = if place < COLOURS.len() { "" } else { " stroke-dasharray=\"6 3\"" };
        let points: Vec<String> =
            ratios.iter().enumerate().map(|(place, ratio)| format!("{:.1},{:.1}", x(place), y(*ratio))).collect();
        line(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            points.join(" ")
        ));
        if let Some(last) = ratios.last() {
            labels.push((y(*last), format!("fill=\"{colour}\">{}: {last:.1} ×", row.name().replace('`', ""))));
        }
    }
    // Labels that would lie over each other give way downwards, but stay in the picture.
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = TOP - 10.0;
    for (place, (wanted, label)) in labels.iter().enumerate() {
        let lowest = BOTTOM + 40.0 - 14.0 * (labels.len() - place) as f64;
        let at = f64::max(f64::min(wanted + 4.0, lowest), free);
        line(format!("<text x=\"{}\" y=\"{at:.1}\" {label}</text>", RIGHT + 8.0));
        free = at + 14.0;
    }
    line("</svg>".to_owned());
    svg
}
