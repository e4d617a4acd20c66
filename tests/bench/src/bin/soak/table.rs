//! The soak's table, for people, and for the README and docs/receipts.md, where it stands between two lines.

use std::path::Path;
use std::time::Duration;

use bench::Failure;
use bench::report::Report;

use crate::drive::{Deed, Drive};
use crate::ledger::{Fate, Judged};
use crate::player::Kind;

/// The table stands between these lines of a page.
const BEGINS: &str = "<!-- soak: `make soak CLIENTS=1 WRITE=1` writes this -->\n";
const ENDS: &str = "<!-- end of soak -->\n";
/// The pages with the table, below the repository's root.
const PAGES: [&str; 2] = ["README.md", "docs/receipts.md"];

/// Puts the table into the pages in place of the last one, with a sentence that says of which run it is.
pub(crate) fn write(drive: &Drive<'_>, judged: &Judged, run: &str) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = |deed: Deed| -> usize {
        let of_kind = drive.deeds.iter().filter(|((_, done), _)| *done == deed);
        of_kind.map(|(_, times)| times).sum()
    };
    let said = format!(
        "{run}: {} messages, {} kills, {} closed terminals, {} clears, {} times Esc. {} sessions that their client did \
         not know any more went on in new ones.\n\n{}\n",
        judged.fates.len(),
        done(Deed::Kill),
        done(Deed::Leave),
        done(Deed::Clear),
        done(Deed::Esc),
        done(Deed::Anew),
        rows(drive, judged).join("\n"),
    );
    for page in PAGES.map(|page| root.join(page)) {
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, replaced(&text, &said).ok_or("a page has no place for the table")?)?;
    }
    Ok(())
}

fn replaced(page: &str, said: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGINS)?;
    let (_, after) = rest.split_once(ENDS)?;
    Some(format!("{before}{BEGINS}{said}{ENDS}{after}"))
}

fn rows(drive: &Drive<'_>, judged: &Judged) -> Vec<String> {
    let mut rows = vec![
        "| harness | version | messages | shown | lost | repeated, marked | repeated, unmarked | out of order \
         | waiting, with a reason | median | p95 |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    for kind in Kind::ALL {
        let players: Vec<usize> = (0..drive.players.len()).filter(|at| drive.players[*at].kind == kind).collect();
        if players.is_empty() {
            continue;
        }
        let fates: Vec<&Fate> = players.iter().flat_map(|player| judged.of_player(*player)).collect();
        let count = |is: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
        let behind = judged.overtaken.iter().filter(|(id, _)| fates.iter().any(|fate| fate.id == *id)).count();
        let mut latencies: Vec<Duration> = fates.iter().filter_map(|fate| fate.latency).collect();
        latencies.sort();
        let quantile = |part: f64| {
            let at = ((latencies.len() as f64 - 1.0) * part).round().max(0.0) as usize;
            latencies.get(at).map_or_else(|| "-".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()))
        };
        rows.push(format!(
            "| {} | {} | {} | {} | {} | {} | {} | {behind} | {} | {} | {} |",
            kind.name(),
            kind.version(drive.stage),
            fates.len(),
            count(&|fate| fate.plain + fate.marked > 0),
            count(&Fate::is_lost),
            count(&|fate| fate.marked > 0),
            count(&Fate::is_repeated_unmarked),
            count(&|fate| fate.waits() && fate.reason.is_some()),
            quantile(0.5),
            quantile(0.95),
        ));
    }
    rows
}

pub(crate) fn print(report: &Report, drive: &Drive<'_>, judged: &Judged) {
    report.row("");
    for row in rows(drive, judged) {
        report.row(&row);
    }
    report.row("");
    for kind in Kind::ALL {
        let deed = |deed: Deed| drive.deeds.get(&(kind, deed)).copied().unwrap_or_default();
        report.row(&format!(
            "{}: {} sent by the shell, {} prompts, {} Esc, {} kills, {} closed, {} opened again, {} begun anew, \
             {} cleared",
            kind.name(),
            deed(Deed::Sent),
            deed(Deed::Prompt),
            deed(Deed::Esc),
            deed(Deed::Kill),
            deed(Deed::Leave),
            deed(Deed::Resume),
            deed(Deed::Anew),
            deed(Deed::Clear),
        ));
    }
    for id in &judged.missing {
        report.row(&format!("LOST from the store: {id}"));
    }
    for (earlier, later) in &judged.overtaken {
        report.row("OVERTAKEN, the first by the second:");
        for fate in judged.fates.iter().filter(|fate| [earlier, later].contains(&&fate.id)) {
            report.row(&format!("  {}: {:?}, {}, told first at {:?}", fate.id, fate.body, fate.history, fate.first));
        }
    }
    for fate in &judged.fates {
        let name = &drive.players[fate.player].name;
        let wrong = match fate {
            fate if fate.is_lost() => "LOST",
            fate if fate.is_repeated_unmarked() => "REPEATED without a mark",
            fate if fate.waits() && fate.reason.is_none() => "WAITS without a reason",
            fate if fate.waits() => "waits",
            _ => continue,
        };
        report.row(&format!(
            "{wrong}: {} for {name} from {}, {} ({} times plain, {} marked) {}",
            fate.id,
            fate.from,
            fate.history,
            fate.plain,
            fate.marked,
            fate.reason.as_deref().unwrap_or_default(),
        ));
    }
    for player in drive.players.iter().filter(|player| player.agent()["waiting"].as_u64() != Some(0)) {
        report.row(&format!("--- {} in the end: {}\n{}", player.name, player.agent(), player.screen()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_a_place_for_the_table_and_keep_the_rest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for page in PAGES {
            let text = std::fs::read_to_string(root.join(page)).expect("it is in the repository");
            let new = replaced(&text, "anew\n").unwrap_or_else(|| panic!("{page} has no place for it"));
            assert!(new.contains(&format!("{BEGINS}anew\n{ENDS}")), "{page}");
            let (before, _) = text.split_once(BEGINS).expect("it begins");
            let (_, after) = text.split_once(ENDS).expect("it ends");
            assert!(new.starts_with(before) && new.ends_with(after), "{page}");
        }
        assert_eq!(replaced("nothing", "anew"), None);
    }
}
