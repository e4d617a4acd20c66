//! Measures how long an idle session takes to begin on a message: from when it is stored until the
//! harness first asks its model. What the harness takes by itself is measured in the same run, in turns
//! with it, by a prompt into a session of the same client with nothing of ours in it.
//!
//! Run by `make bench`, with the real clients and scripted models. The first argument says how many
//! messages each route carries; further ones name routes. A client that fails ends it with a panic that
//! says what was waited for.

mod route;
mod seat;

use std::process::ExitCode;
use std::time::Duration;

use bench::Failure;
use bench::report::Report;
use bench::sampling::median;

use crate::route::Route;

/// How many messages each route carries, where nobody says.
const MESSAGES: usize = 15;

fn main() -> ExitCode {
    bench::isolated(measure)
}

fn measure() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let messages = arguments.next().map_or(Ok(MESSAGES), |number| number.parse())?;
    let named: Vec<String> = arguments.collect();
    if let Some(unknown) = named.iter().find(|name| Route::ALL.iter().all(|route| route.name() != **name)) {
        let known = Route::ALL.map(Route::name).join(", ");
        return Err(format!("no route is called `{unknown}`; there are {known}").into());
    }
    let (relay_mesh, scratch) = bench::subject()?;
    let report = Report::to_standard_output();
    report.section(&format!("from stored to the harness's first model request, p50 of {messages} messages"));
    for route in
        Route::ALL.into_iter().filter(|route| named.is_empty() || named.iter().any(|name| name == route.name()))
    {
        let pairs = route::measure(route, messages, &relay_mesh, scratch.path());
        let middle = |of: &dyn Fn(&route::Pair) -> Duration| median(pairs.iter().map(of).collect());
        let (woken, prompted) = (middle(&|pair| pair.woken), middle(&|pair| pair.prompted));
        report.difference(route.name(), woken, prompted, route.budget());
        report.note("  until the mesh handed it over", middle(&|pair| pair.handed));
    }
    Ok(())
}
