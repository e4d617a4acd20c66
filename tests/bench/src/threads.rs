//! What a long registry of threads costs: `codex threads` with 10,000 of a hundred days.

use std::path::Path;
use std::time::Duration;

use mesh::ports::driver::{Approvals, Tailoring};
use mesh::ports::machine::Instant;
use mesh::ports::runner::Reach;
use mesh::tool_threads::{ThreadRow, ThreadStatus};
use serde_json::Value;
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Key, Store};

use crate::{Failure, Subject, programs};
use bench::report::Report;
use bench::sampling::compare;

const DAYS: u64 = 100;
const EACH_DAY: u64 = 100;
/// How long a list of them may take.
const LISTED: Duration = Duration::from_millis(50);
/// A day in milliseconds.
const DAY: u64 = 24 * 3_600_000;
/// The first day, in days since 1970.
const FIRST: u64 = 20_000;

pub(crate) fn list(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("threads");
    // The product makes the folder.
    programs::output(programs::relay_mesh(&subject.relay_mesh, &data).arg("status"), "")?;
    fill(&data)?;
    let mut list = programs::relay_mesh(&subject.relay_mesh, &data);
    list.args(["codex", "threads", "--json"]);
    let printed: Value = serde_json::from_str(&programs::output(&mut list, "")?)?;
    let listed = printed["threads"].as_array().map_or(0, Vec::len);
    if listed as u64 != DAYS * EACH_DAY {
        return Err(format!("{listed} threads were listed").into());
    }
    let compared = compare(
        || programs::time(&mut list, None),
        || programs::time(&mut programs::command(&subject.baselines.hello), None),
    )?;
    report.figure("codex threads --json, 10,000 of 100 days", &compared);
    report.time("  and in itself", compared.subject, LISTED);
    Ok(())
}

/// Writes the values of the registry through the store, a day in each.
fn fill(data: &Path) -> Result<(), Failure> {
    let options = FilesOptions { durability: Durability::Process, ..FilesOptions::default() };
    let store = FilesStore::open(data, options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for day in FIRST..FIRST + DAYS {
        let rows = (0..EACH_DAY).map(|number| row(day * DAY + number * 1_000)).collect::<Result<Vec<_>, _>>()?;
        let key: Key = format!("threads/{day:06}").parse()?;
        runtime.block_on(store.swap(&key, None, Some(&serde_json::to_vec(&rows)?), Durability::Process))?;
    }
    Ok(())
}

fn row(started: u64) -> Result<ThreadRow, Failure> {
    let id = ulid::Ulid::from_parts(started, 7);
    Ok(ThreadRow {
        thread: format!("{:08x}-4c2f-7a8e-9d0e-{started:012x}", started >> 16),
        harness: "codex".to_owned(),
        driven: id.to_string().parse()?,
        agent: "codex-2".parse()?,
        identity: "codex".to_owned(),
        by: Some("alice".parse()?),
        team: None,
        repository: Some("/home/u/projects/shop".to_owned()),
        repository_name: Some("shop".to_owned()),
        branch: Some("main".to_owned()),
        cwd: "/home/u/projects/shop".into(),
        started: Instant(started),
        last_active: Instant(started + 60_000),
        status: ThreadStatus::Closed,
        tag: Some("review".to_owned()),
        role: None,
        model: Some("gpt-5.2-codex".to_owned()),
        reach: Reach::Edit,
        approvals: Approvals::Ask,
        tailoring: Tailoring::default(),
        instructions: Some("Answer in one paragraph.".to_owned()),
        summed_up: true,
        continued_by: None,
        died: None,
    })
}
