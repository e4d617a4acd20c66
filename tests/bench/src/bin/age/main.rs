//! Measures what a data folder's age costs: the same commands on a day of mail, a month, a year, and ten years at a
//! tenth of the volume, all in turns, so that the ratios to the day are fair.
//!
//! Run by `make bench-age`. `--help` lists what can be chosen. The folders are written in the store's own format by
//! the store itself, compared with records that the product wrote, and read back before anything is measured.

mod check;
mod counts;
mod filling;
mod folder;
mod long_lived;
mod measuring;
mod options;
mod plot;
mod records;
mod rows;
mod samples;
mod shapes;
mod table;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use bench::Failure;
use bench::report::{self, Report};

use crate::folder::{AgedFolder, Backend};
use crate::measuring::Phase;
use crate::options::Options;

fn main() -> ExitCode {
    match measure() {
        Ok(code) => code,
        Err(failure) => report::ended(Err(failure)),
    }
}

fn measure() -> Result<ExitCode, Failure> {
    let report = Report::to_standard_output();
    let Some(options) = Options::of(std::env::args().skip(1))? else {
        report.row(options::HELP.trim_end());
        return Ok(ExitCode::SUCCESS);
    };
    let (program, scratch) = bench::subject()?;
    let root = options.keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(shapes::check(&program, &scratch.path().join("shapes")))?;
    report.row("a record of each kind has the keys of the product's own");
    let mut is_over = false;
    for backend in Backend::of(&options) {
        report.section(&backend.title(&options));
        if !options.counts_alone {
            is_over |= measure_on(&runtime, backend, &program, &root, &options, &report)?;
        }
        if options.counts {
            for over in counts::measure(backend, &program, &root, &report)? {
                is_over = true;
                report.row(&format!("OVER: {over}"));
            }
        }
    }
    Ok(if is_over && options.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Fills the folders of one backend, measures them and prints the table. Returns whether a row is over its budget.
fn measure_on(
    runtime: &tokio::runtime::Runtime,
    backend: Backend,
    program: &Path,
    root: &Path,
    options: &Options,
    report: &Report,
) -> Result<bool, Failure> {
    let mut folders: Vec<AgedFolder> = Vec::new();
    for age in &options.ages {
        let began = Instant::now();
        let folder = runtime.block_on(AgedFolder::ready(backend, *age, program, root, options))?;
        let told = folder.told(began.elapsed());
        report.row(&told);
        folders.push(folder);
    }
    folder::settle_disk()?;
    let mut measured = measuring::measure(&folders, Phase::Before, options, report);
    folders.iter().try_for_each(AgedFolder::note_what_was_used)?;
    if options.gc {
        let collected: Vec<AgedFolder> = folders.iter().map(AgedFolder::copy_to_collect).collect::<Result<_, _>>()?;
        measured.extend(measuring::measure(&collected, Phase::Collecting, options, report));
        measured.extend(measuring::measure(&collected, Phase::After, options, report));
        collected.into_iter().try_for_each(AgedFolder::discard_copy)?;
    }
    let table = table::Table::new(&options.ages, measured);
    for row in table.markdown() {
        report.row(&row);
    }
    for over in table.over_budget() {
        report.row(&format!("OVER: {over}"));
    }
    if let Some(plot) = options.plot.as_deref() {
        let path: PathBuf = backend.plot_path(plot);
        std::fs::write(&path, plot::draw(&backend.title(options), &table))?;
    }
    Ok(!table.over_budget().is_empty())
}
