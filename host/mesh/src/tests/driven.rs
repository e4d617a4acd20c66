//! Driven agents: their records, what is asked of them, their budgets, and what is left of them after a year.

use super::{World, name};
use crate::driven::{DrivenEnd, DrivenError, DrivenLimits, DrivenRecord, LONGEST_REQUEST, MOST_REQUESTS};
use crate::driven::{RequestError, RequestKind, Spent};
use crate::ports::driver::{Approvals, DrivenAgent, Tokens};
use crate::ports::machine::{Instant, Machine as _};
use crate::ports::runner::{Extensions, Reach};
use crate::runs::Workplace;
use crate::{DryRun, RecordKind, Scope};

const DAY: u64 = 24 * 3_600_000;

impl World {
    fn driven(&self, name: &str) -> DrivenRecord {
        let id = self.mesh.new_driven_id();
        DrivenRecord {
            id,
            harness: "toad".to_owned(),
            by: None,
            parent: None,
            root: id,
            depth: 1,
            asked_folder: "/project".into(),
            workplace: Workplace::Here { top: None },
            agent: DrivenAgent {
                name: name.to_owned(),
                folder: "/project".into(),
                model: None,
                guidance: String::new(),
                reach: Reach::Look,
                approvals: Approvals::Ask,
                extensions: Extensions::Mesh,
                id: self.mesh.new_uuid(),
            },
            about: String::new(),
            limits: DrivenLimits::default(),
            spent: Spent::default(),
            session: None,
            connection: None,
            environment: Vec::new(),
            program: None,
            mark: None,
            driver: None,
            given: Vec::new(),
            requests: Vec::new(),
            outcomes: Vec::new(),
            last_words: None,
            reported: false,
            started: self.machine.now(),
            ended: None,
        }
    }

    async fn begins(&self, name: &str) -> Result<DrivenRecord, DrivenError> {
        let record = self.driven(name);
        self.mesh.begin_driven(&record).await.map(|()| record)
    }

    async fn ends(&self, record: &DrivenRecord) {
        let end = DrivenEnd { at: self.machine.now(), why: "it was dismissed".to_owned(), meant: true };
        let ended = self.mesh.change_driven(record.id, |record| record.ended = Some(end.clone())).await;
        ended.expect("stored").expect("there");
    }
}

#[tokio::test]
async fn a_name_has_one_agent_at_a_time_and_one_that_ended_is_still_found() {
    let world = World::new();
    let first = world.begins("helper").await.expect("begun");
    let second = world.begins("helper").await.expect_err("taken");
    assert_eq!(second.to_string(), "the name `helper` belongs to a driven agent already");
    world.ends(&first).await;
    assert_eq!(world.mesh.driven_named("helper").await.expect("found").id, first.id);
    assert!(world.mesh.driven_agents().await.expect("readable").is_empty());
    let second = world.begins("helper").await.expect("the name is free");
    assert_eq!(world.mesh.driven_named("helper").await.expect("found").id, second.id, "the one that is here");
    assert_eq!(world.mesh.driven(first.id).await.expect("readable").map(|record| record.id), Some(first.id));
}

#[tokio::test]
async fn a_request_is_kept_until_it_is_done_and_refused_if_it_is_too_much() {
    let world = World::new();
    let record = world.begins("helper").await.expect("begun");
    let prompt = |text: &str| RequestKind::Prompt { text: text.to_owned() };
    let ask = async |kind| world.mesh.ask_driven("helper", kind, None).await;
    assert!(matches!(ask(prompt(" \n")).await, Err(RequestError::Empty)));
    assert!(matches!(ask(prompt(&"x".repeat(LONGEST_REQUEST + 1))).await, Err(RequestError::TooLong { .. })));
    let unknown = world.mesh.ask_driven("nobody", RequestKind::Interrupt, None).await;
    assert!(matches!(unknown, Err(RequestError::Agent(DrivenError::Unknown(_)))));
    let (_, first) = ask(prompt("one")).await.expect("taken");
    for _ in 1..MOST_REQUESTS {
        ask(RequestKind::Interrupt).await.expect("taken");
    }
    assert!(matches!(ask(prompt("more")).await, Err(RequestError::TooMany(_))));
    let done = world.mesh.change_driven(record.id, |record| record.done(&first.id, None, Some("so".to_owned())));
    done.await.expect("stored");
    let outcome = world.mesh.request_outcome(record.id, &first.id).await.expect("done");
    assert_eq!((outcome.failed, outcome.note.as_deref()), (None, Some("so")));
    world.ends(&record).await;
    // Also after its record was put aside.
    for _ in 0..2 {
        let late = ask(prompt("late")).await.expect_err("it has ended").to_string();
        assert_eq!(late, "`helper` has ended: it was dismissed");
        world.mesh.driven_agents().await.expect("readable");
    }
}

#[tokio::test]
async fn a_budget_is_spent_at_its_limit_and_not_before() {
    let world = World::new();
    let check = |limits, turns, tokens, now, expected: Option<&str>| {
        let spent = Spent { turns, tokens };
        let record = DrivenRecord { limits, spent, ..world.driven("helper") };
        assert_eq!(record.over_budget(Instant(now)).map(|over| over.to_string()).as_deref(), expected);
    };
    let tokens = |input| Tokens { input, cached_input: 3, output: 4 };
    let limits = DrivenLimits { until: Some(Instant(100)), turns: Some(2), tokens: Some(10) };
    check(DrivenLimits::default(), u32::MAX, tokens(u64::MAX), u64::MAX, None);
    check(limits, 1, tokens(2), 99, None);
    check(limits, 2, tokens(2), 99, Some("its budget of 2 turns is spent"));
    check(limits, 1, tokens(3), 99, Some("its budget of 10 tokens is spent"));
    check(limits, 1, tokens(2), 100, Some("its time is up"));
}

#[tokio::test]
async fn after_a_year_no_more_is_kept_than_after_a_week() {
    let world = World::new();
    let mut kept = Vec::new();
    for day in 0..365 {
        for number in 0..3 {
            let record = world.begins(&format!("helper-{number}")).await.expect("the name is free again");
            world.ends(&record).await;
        }
        world.machine.pass(DAY);
        let cleanup = world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleaned up");
        let deleted = cleanup.tally.amounts.get(&RecordKind::DrivenAgents).map_or(0, |amount| amount.count);
        assert!(deleted <= 3, "{day}: {deleted}");
        kept.push(world.mesh.ended_driven_agents().await.expect("readable").len());
        assert!(world.mesh.driven_agents().await.expect("readable").is_empty());
    }
    assert_eq!(kept.iter().max(), kept.last());
    assert!(kept.last().is_some_and(|kept| *kept <= 8 * 3), "{:?}", kept.last());
    assert!(matches!(world.mesh.driven_named(name("helper-0").as_str()).await, Ok(record) if record.ended.is_some()));
}
