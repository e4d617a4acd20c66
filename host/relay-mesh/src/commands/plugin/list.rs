//! `relay-mesh plugin list`: list the adapters, what they may do, and whether they work.

use adapters::{AdapterState, Compilation, Condition, Source, Unused};
use serde::Serialize;

use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line, table};
use crate::screen::{Column, Screen};
use crate::setup::shapes::{GrantLine, PluginLine, UnusedLine};
use crate::shapes::rfc3339;

/// Show every adapter: where it comes from, what it may do, whether it works
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  relay-mesh plugin list\n  relay-mesh plugin list --load --json")]
pub(super) struct Args {
    /// Load each adapter first, so that its faults show
    #[arg(long)]
    load: bool,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    list(context, if args.load { First::Carries } else { First::Nothing }).await
}

/// What to do before the list is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// Load each adapter.
    Carries,
    /// Run nothing.
    Nothing,
}

async fn list(context: &Context, first: First) -> Result<Exit, CommandError> {
    use mesh::ports::harness::Harnesses as _;

    let open = context.open()?;
    if first == First::Carries {
        for name in open.adapters.names() {
            // An error is part of the state that is shown below.
            let _shown_below = open.adapters.get(&name).await;
        }
    }
    let (states, unused) = open.adapters.states().await;
    context.printer.show(&Listing {
        adapters: states.into_iter().map(line).collect(),
        unused: unused.into_iter().map(unused_line).collect(),
    })?;
    Ok(Exit::Success)
}

fn line(state: AdapterState) -> PluginLine {
    PluginLine {
        name: state.name,
        title: state.title,
        version: state.version,
        source: match state.source {
            Source::BuiltIn => "built-in".to_owned(),
            Source::Installed(_) => "installed".to_owned(),
            Source::Plugin(path) => path.display().to_string(),
        },
        digest: state.digest.to_string(),
        wit: adapters::manifest::WIT.to_owned(),
        grants: state.grants.iter().map(GrantLine::of).collect(),
        state: condition(&state.condition),
        calls: state.counters.calls,
        faults: state.counters.faults,
        last_fault: state.counters.last_fault.map(|fault| fault.what),
        paused_until: state.counters.paused_until.map(rfc3339),
    }
}

pub(super) fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Disabled => "disabled".to_owned(),
        Condition::Unloaded => "not loaded".to_owned(),
        Condition::Loaded(Compilation::Cached) => "loaded from the cache".to_owned(),
        Condition::Loaded(Compilation::Fresh) => "compiled".to_owned(),
        Condition::Loaded(Compilation::Unkept) => "compiled, and not kept".to_owned(),
        Condition::Outdated(why) => format!("an older version answers: {why}"),
        Condition::Broken(why) => format!("broken: {why}"),
    }
}

fn unused_line(unused: Unused) -> UnusedLine {
    UnusedLine { path: unused.path.display().to_string(), why: unused.why }
}

#[derive(Debug, Serialize)]
struct Listing {
    /// One line for each adapter, by name.
    adapters: Vec<PluginLine>,
    /// Files in plugin folders that are not used.
    unused: Vec<UnusedLine>,
}

/// A narrow terminal has no room for all of them: the name and the state stay longest.
const COLUMNS: [Column; 10] = [
    Column::whole("NAME", 0),
    Column::cut("TITLE", 8, 6),
    Column::whole("VERSION", 1),
    Column::cut("SOURCE", 9, 2),
    Column::whole("DIGEST", 7),
    Column::whole("WIT", 8),
    Column::whole("GRANTS", 1),
    Column::whole("CALLS", 4),
    Column::whole("FAULTS", 3),
    Column::cut("STATE", 12, 0),
];

impl Listing {
    fn laid_out(&self, table: impl Fn(&[Vec<String>]) -> String, line: impl Fn(String) -> String) -> String {
        let rows: Vec<Vec<String>> = self.adapters.iter().map(row).collect();
        let unused = self
            .unused
            .iter()
            .map(|unused| line(printable_line(&format!("not used: {}: {}", unused.path, unused.why))));
        std::iter::once(table(&rows)).chain(unused).collect::<Vec<_>>().join("\n")
    }
}

impl Show for Listing {
    fn text(&self) -> String {
        let head = COLUMNS.map(|column| column.name());
        self.laid_out(|rows| table(&head, rows), |line| line)
    }

    fn text_on(&self, screen: &Screen) -> String {
        self.laid_out(|rows| screen.table(&COLUMNS, rows), |line| screen.sentences(&line))
    }
}

fn row(line: &PluginLine) -> Vec<String> {
    let given = line.grants.iter().filter(|grant| grant.given).count();
    let cells = [&line.name, &line.title, &line.version, &line.source];
    let mut row: Vec<String> = cells.into_iter().map(|cell| printable_line(cell)).collect();
    row.push(line.digest.chars().take(12).collect());
    row.push(line.wit.clone());
    row.push(format!("{given} of {}", line.grants.len()));
    row.push(line.calls.to_string());
    row.push(line.faults.to_string());
    let paused = line.paused_until.as_ref().map(|until| format!("paused until {until}"));
    let fault = line.last_fault.as_ref().map(|fault| format!("last fault: {fault}"));
    let state: Vec<String> = [Some(line.state.clone()), paused, fault].into_iter().flatten().collect();
    row.push(printable_line(&state.join("; ")));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_listed_with_what_it_is_lent_and_how_it_fared() {
        let grant = |name: &str, given| GrantLine { name: name.to_owned(), allows: "something".to_owned(), given };
        let adapter = PluginLine {
            name: "toy".to_owned(),
            title: "Toy".to_owned(),
            version: "1.0".to_owned(),
            source: "/p/toy.wasm".to_owned(),
            digest: "0123456789abcdef".to_owned(),
            wit: "0.1".to_owned(),
            grants: vec![grant("notices", false), grant("state", true)],
            state: condition(&Condition::Loaded(Compilation::Fresh)),
            calls: 3,
            faults: 1,
            last_fault: Some("it ran too long".to_owned()),
            paused_until: Some("noon".to_owned()),
        };
        let unused = vec![UnusedLine { path: "/p/x.wasm".to_owned(), why: "it is not a component".to_owned() }];
        let text = Listing { adapters: vec![adapter], unused }.text();
        assert_eq!(
            text,
            "NAME  TITLE  VERSION  SOURCE       DIGEST        WIT  GRANTS  CALLS  FAULTS  STATE\n\
             toy   Toy    1.0      /p/toy.wasm  0123456789ab  0.1  1 of 2  3      1       compiled; paused until noon; last fault: it ran too long\n\
             not used: /p/x.wasm: it is not a component"
        );
    }
}
