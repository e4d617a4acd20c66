//! Threads of tools: their registry, what two writers lose (nothing), and what is left of it after a year.

use std::sync::Arc;

use super::World;
use crate::allowances::{Allowance, Asker, Budget};
use crate::driven::{DrivenRecord, SpawnAsker, is_allowed};
use crate::ports::driver::TurnEnd;
use crate::ports::machine::{Instant, Machine as _};
use crate::ports::runner::Reach;
use crate::tool_threads::{MOST_ANSWERS, ThreadPlace, ThreadStatus, ToolThread};
use crate::{DryRun, RecordKind, Scope};

const DAY: u64 = 24 * 3_600_000;

impl World {
    /// A thread of a tool as a driven agent, with this session.
    fn thread(&self, session: &str) -> DrivenRecord {
        let now = self.machine.now();
        let tool = ToolThread {
            identity: "codex".to_owned(),
            team: None,
            place: ThreadPlace::default(),
            tag: None,
            role: None,
            instructions: None,
            began: now,
            continues: None,
            summary: None,
            server: self.machine.this_process(),
            beat: now,
            last_active: now,
            answers: Vec::new(),
        };
        let own = self.driven("codex-1");
        DrivenRecord {
            session: Some(session.to_owned()),
            tool: Some(tool),
            by: Some("lead".parse().expect("a name")),
            ..own
        }
    }

    async fn listed(&self) -> Vec<String> {
        let rows = self.mesh.threads().await.expect("the registry");
        rows.iter().map(|row| format!("{} {}", row.thread, row.status.as_str())).collect()
    }
}

#[tokio::test]
async fn f5_two_writers_lose_nothing() {
    let world = World::new();
    let records: Vec<DrivenRecord> = (0..40).map(|number| world.thread(&format!("t-{number}"))).collect();
    let writers = records.iter().map(|record| async {
        world.mesh.note_thread(record, ThreadStatus::Active).await.expect("noted");
        world.mesh.note_thread(record, ThreadStatus::Idle).await.expect("noted");
    });
    futures::future::join_all(writers).await;
    let listed = world.listed().await;
    assert_eq!((listed.len(), listed.iter().filter(|line| line.ends_with(" idle")).count()), (40, 40), "{listed:?}");
    // Another process on the same folder finds them.
    let row = world.mesh.thread("t-7").await.expect("read").expect("there");
    assert_eq!(world.mesh.thread(&row.driven.to_string()).await.expect("read").map(|row| row.thread), Some(row.thread));
    assert_eq!(world.mesh.thread("t-99").await.expect("read"), None);
}

#[tokio::test]
async fn f5_f6_a_row_keeps_its_summary_and_leads_to_the_thread_that_took_its_place() {
    let world = World::new();
    let first = world.thread("t-1");
    world.mesh.note_thread(&first, ThreadStatus::Active).await.expect("noted");
    world.mesh.keep_thread_summary("t-1", &"é".repeat(20_000)).await.expect("kept");
    world.mesh.note_thread(&first, ThreadStatus::Closed).await.expect("noted");
    let kept = world.mesh.thread_summary("t-1").await.expect("read").expect("there");
    assert!(kept.len() <= 16 * 1024 && world.mesh.thread("t-1").await.expect("read").expect("there").summed_up);
    let mut second = world.thread("t-2");
    second.tool.as_mut().expect("a thread").continues = Some("t-1".to_owned());
    world.mesh.note_thread(&second, ThreadStatus::Idle).await.expect("noted");
    let row = world.mesh.thread("t-1").await.expect("read").expect("there");
    assert_eq!(row.continued_by.as_deref(), Some("t-2"));
}

#[tokio::test]
async fn f5_what_nobody_goes_on_with_is_forgotten_and_what_is_live_is_not() {
    let world = World::new();
    world.mesh.note_thread(&world.thread("old"), ThreadStatus::Closed).await.expect("noted");
    world.mesh.keep_thread_summary("old", "It was fine.").await.expect("kept");
    world.machine.pass(50 * DAY);
    let live = world.thread("live");
    world.mesh.begin_driven(&live).await.expect("begun");
    world.mesh.note_thread(&live, ThreadStatus::Idle).await.expect("noted");
    world.mesh.note_thread(&world.thread("young"), ThreadStatus::Idle).await.expect("noted");
    world.machine.pass(DAY);
    let everything = |_: &crate::tool_threads::ThreadRow| true;
    let before = Instant(world.machine.now().0 - 40 * DAY);
    assert_eq!(world.mesh.prune_threads(before, |row| row.identity == "other").await.expect("pruned"), 0);
    world.machine.pass(45 * DAY);
    let clean = |dry| world.mesh.clean_up(Scope::Everything, dry, None);
    let count = |done: crate::Cleanup| done.tally.amounts.get(&RecordKind::Threads).map_or(0, |amount| amount.count);
    assert_eq!(count(clean(DryRun::Yes).await.expect("looked")), 1);
    assert_eq!(count(clean(DryRun::No).await.expect("cleaned")), 1);
    assert_eq!(world.mesh.thread_summary("old").await.expect("read"), None, "with its summary");
    assert_eq!(world.mesh.prune_threads(world.machine.now(), everything).await.expect("pruned"), 1);
    assert_eq!(world.listed().await, ["live idle"]);
}

/// The day has a row that would go if it were read.
#[tokio::test]
async fn f5_a_cleanup_reads_no_day_on_which_nothing_can_be_old() {
    let world = World::new();
    let thread = |session: &str| {
        let mut record = world.thread(session);
        record.tool.as_mut().expect("a thread").last_active = Instant(0);
        record
    };
    world.mesh.note_thread(&thread("first"), ThreadStatus::Idle).await.expect("noted");
    world.machine.pass(50 * DAY);
    world.mesh.note_thread(&thread("second"), ThreadStatus::Idle).await.expect("noted");
    world.machine.pass(41 * DAY);
    for dry_run in [DryRun::Yes, DryRun::No] {
        let done = world.mesh.clean_up(Scope::Expired, dry_run, None).await.expect("cleaned up");
        assert_eq!(done.tally.amounts.get(&RecordKind::Threads).map(|amount| amount.count), Some(1), "{dry_run:?}");
    }
    assert_eq!(world.listed().await, ["second idle"]);
    let pruned = async |days: u64| {
        let before = Instant(world.machine.now().0 - days * DAY);
        world.mesh.prune_threads(before, |_| true).await.expect("pruned")
    };
    assert_eq!((pruned(42).await, pruned(41).await), (0, 1), "and neither does who prunes them");
}

#[tokio::test]
async fn going_on_with_a_thread_costs_no_further_agent_of_a_days_budget() {
    let world = World::new();
    let lead: crate::names::AgentName = "lead".parse().expect("a name");
    let asker = Asker::Session { harness: "toad".to_owned(), agent: Some(lead.clone()) };
    let asker = SpawnAsker { asker, parent: None, run: None };
    let allowed = [Allowance { agent: lead, harness: "toad".to_owned(), reach: Reach::Look, budget: Some(Budget(1)) }];
    let mut again = world.thread("t-1");
    again.tool.as_mut().expect("a thread").continues = Some("t-1".to_owned());
    let may =
        |records: &[DrivenRecord]| is_allowed(&asker, ("toad", Reach::Look), &allowed, records, world.machine.now());
    assert!(may(&[again]).is_ok());
    assert!(may(&[world.thread("t-2")]).is_err());
}

#[tokio::test]
async fn answers_are_kept_until_they_are_read_and_not_for_ever() {
    let world = World::new();
    let mut record = world.thread("t-1");
    for number in 0..20 {
        record.answered(&[format!("p-{number}")], &TurnEnd::Completed, Some("done"), Instant(number));
    }
    let tool = Arc::new(record.tool.expect("a thread"));
    assert_eq!((tool.answers.len(), tool.last_active), (MOST_ANSWERS, Instant(19)));
    assert_eq!(tool.answer("p-19").and_then(|answer| answer.text.as_deref()), Some("done"));
    assert!(tool.answer("p-0").is_none());
}
