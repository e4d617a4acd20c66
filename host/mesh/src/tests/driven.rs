//! Driven agents: their records, what is asked of them, their budgets, and what is left of them after a year.

use std::collections::BTreeMap;

use store::Durability;

use super::retention::FewFiles;
use super::{World, name};
use crate::allowances::{Allowance, Asker, Budget};
use crate::driven::{DrivenEnd, DrivenError, DrivenLimits, DrivenRecord, LONGEST_REQUEST, MOST_REQUESTS};
use crate::driven::{OwedReply, OwedWords, RequestError, RequestKind, SpawnAsker, SpawnBounds, Spent};
use crate::driven::{is_allowed, may_ask, tree_over, within_root};
use crate::ports::driver::{Approvals, DrivenAgent, Tailoring, Tokens};
use crate::ports::machine::{Instant, Machine as _};
use crate::ports::runner::{Extensions, Reach};
use crate::runs::Workplace;
use crate::storage::{keys, records};
use crate::{DryRun, RecordKind, Scope};

const DAY: u64 = 24 * 3_600_000;

impl World {
    pub(super) fn driven(&self, name: &str) -> DrivenRecord {
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
                environment: Vec::new(),
                tailoring: Tailoring::default(),
            },
            about: String::new(),
            limits: DrivenLimits::default(),
            spent: Spent::default(),
            below: BTreeMap::new(),
            session: None,
            connection: None,
            environment: Vec::new(),
            command: Vec::new(),
            program: None,
            mark: None,
            program_mark: None,
            socket: None,
            driver: None,
            given: Vec::new(),
            owed: Vec::new(),
            requests: Vec::new(),
            outcomes: Vec::new(),
            last_words: None,
            reported: false,
            started: self.machine.now(),
            ended: None,
            tool: None,
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

#[test]
fn a_record_keeps_what_a_turn_leaves_to_be_done_and_one_of_an_earlier_version_is_readable() {
    let world = World::new();
    let empty = world.driven("helper");
    let written = serde_json::to_value(&empty).expect("JSON");
    assert!(written.get("owed").is_none(), "as an earlier version has it");
    assert_eq!(serde_json::from_value::<DrivenRecord>(written).expect("readable"), empty);
    let reply = OwedReply { to: name("lead"), message: empty.id.0, inbox_end: None };
    let owed = OwedWords {
        turn: "p-1".to_owned(),
        words: "Done.".to_owned(),
        may_direct: true,
        reply: Some(reply),
        carried_out: 1,
        not_done: Vec::new(),
        begins: Some(empty.id),
    };
    let owing = DrivenRecord { owed: vec![owed], ..empty };
    let written = serde_json::to_value(&owing).expect("JSON");
    assert_eq!(serde_json::from_value::<DrivenRecord>(written).expect("readable"), owing);
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
        ask(prompt("further")).await.expect("taken");
    }
    assert!(matches!(ask(prompt("more")).await, Err(RequestError::TooMany(_))));
    for stop in [RequestKind::Interrupt, RequestKind::Dismiss { summary: false }] {
        assert!(ask(stop).await.is_ok(), "however much waits, it can be stopped");
    }
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
async fn what_changes_with_a_request_changes_if_that_is_taken_and_not_otherwise() {
    let world = World::new();
    let record = world.begins("helper").await.expect("begun");
    let asked = |about: &'static str| {
        let ask = (RequestKind::Prompt { text: about.to_owned() }, Some("on main".to_owned()));
        world.mesh.ask_driven_with("helper", ask, None, move |record| about.clone_into(&mut record.about))
    };
    for _ in 0..MOST_REQUESTS {
        asked("taken").await.expect("taken");
    }
    assert!(matches!(asked("too many").await, Err(RequestError::TooMany(_))));
    let now = world.mesh.driven(record.id).await.expect("readable").expect("there");
    assert_eq!((now.about.as_str(), now.requests.len()), ("taken", MOST_REQUESTS));
    world.ends(&record).await;
    assert!(asked("late").await.is_err());
    let now = world.mesh.driven(record.id).await.expect("readable").expect("there");
    assert_eq!(now.about, "taken");
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

/// The only thing that says whose a worktree is.
#[tokio::test]
async fn the_record_of_an_agent_stays_while_its_worktree_holds_work() {
    let world = World::new();
    let workplace = Workplace::Worktree {
        top: "/project".into(),
        folder: "/data/worktree".into(),
        branch: "relay/1".to_owned(),
        commit: "0".to_owned(),
    };
    let ended = DrivenEnd { at: world.machine.now(), why: "it was dismissed".to_owned(), meant: true };
    let record = DrivenRecord { workplace, ended: Some(ended), ..world.driven("builder") };
    world.mesh.begin_driven(&record).await.expect("begun");
    assert_eq!(world.mesh.ended_driven_agents().await.expect("listed").len(), 1);
    world.machine.pass(8 * DAY);
    // A process that does not look at files does not know.
    world.mesh.clean_up(Scope::Expired, DryRun::No, None).await.expect("cleaned up");
    for (there, stays) in [("/data/worktree", true), ("/data/other", false)] {
        let files = FewFiles { worktree: Some(there.into()), ..FewFiles::default() };
        world.mesh.clean_up_in(Scope::Everything, DryRun::No, None, &files).await.expect("cleaned up");
        assert_eq!(world.mesh.driven(record.id).await.expect("read").is_some(), stays);
    }
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

impl World {
    /// Replaces the record of an agent that has ended.
    async fn replaced(&self, record: &DrivenRecord, by: DrivenRecord) {
        let put = |_: Option<DrivenRecord>| (records::Next::Put(by.clone()), ());
        let key = keys::ended_driven_of(record.id);
        let replaced = records::update(self.mesh.core.local.as_ref(), &key, Durability::Process, put).await;
        replaced.expect("stored");
    }
}

/// The record is replaced by one that would go if it were read.
#[tokio::test]
async fn a_cleanup_reads_no_record_that_is_too_young_to_go() {
    let world = World::new();
    let record = world.begins("helper").await.expect("begun");
    world.ends(&record).await;
    world.mesh.driven_agents().await.expect("readable");
    let end = DrivenEnd { at: Instant(0), why: String::new(), meant: true };
    world.replaced(&record, DrivenRecord { ended: Some(end), ..record.clone() }).await;
    for (days, stays) in [(6, true), (2, false)] {
        world.machine.pass(days * DAY);
        world.mesh.clean_up(Scope::Expired, DryRun::No, None).await.expect("cleaned up");
        assert_eq!(world.mesh.driven(record.id).await.expect("read").is_some(), stays, "{days}");
    }
}

/// The records of agents that ended long ago are replaced by ones that would count if they were read.
#[tokio::test]
async fn who_may_have_an_agent_started_is_decided_without_the_records_of_long_ago() {
    let world = World::new();
    let top = world.below("top", "lead", None);
    let old: Vec<DrivenRecord> = (0..20).map(|number| world.below(&format!("old-{number}"), "lead", None)).collect();
    for record in old.iter().chain([&top]) {
        world.mesh.begin_driven(record).await.expect("begun");
        world.ends(record).await;
        world.mesh.driven_agents().await.expect("readable");
    }
    world.machine.pass(3 * DAY);
    let late = world.below("late", "lead", None);
    // The user agrees to it a day and a half after the question.
    world.machine.pass(DAY + DAY / 2);
    let now = world.machine.now();
    let late = DrivenRecord { started: now, ..late };
    for record in &old {
        world.replaced(record, DrivenRecord { started: now, ended: None, ..record.clone() }).await;
    }
    let under = world.below("under", "top", Some(&top));
    for record in [&late, &under] {
        world.mesh.begin_driven(record).await.expect("begun");
    }
    world.ends(&late).await;
    let counted = async |asker: &SpawnAsker| {
        let records = world.mesh.driven_agents_that_count(asker).await.expect("readable");
        let mut names: Vec<String> = records.into_iter().map(|record| record.agent.name).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(counted(&asks("lead", None)).await, "late top under", "a live one with the first of its tree");
    world.ends(&under).await;
    assert_eq!(counted(&asks("lead", None)).await, "late under");
    assert_eq!(counted(&asks("under", Some(&under))).await, "late top under", "the caller's tree");
    let known = world.mesh.known_driven_ids().await.expect("listed");
    assert!(known.len() == 23 && known.contains(&late.id) && known.contains(&top.id));
}

fn asks(by: &str, parent: Option<&DrivenRecord>) -> SpawnAsker {
    let asker = Asker::Session { harness: "toad".to_owned(), agent: Some(name(by)) };
    SpawnAsker { asker, parent: parent.cloned(), run: None }
}

impl World {
    /// An agent that another one has had started.
    fn below(&self, name_of_it: &str, by: &str, parent: Option<&DrivenRecord>) -> DrivenRecord {
        let own = self.driven(name_of_it);
        let root = parent.map_or(own.id, |parent| parent.root);
        let depth = parent.map_or(0, |parent| parent.depth) + 1;
        DrivenRecord { by: Some(name(by)), parent: parent.map(|parent| parent.id), root, depth, ..own }
    }
}

#[test]
fn depth_and_number_bound_what_agents_start() {
    let world = World::new();
    let bounds = SpawnBounds { depth: 2, each: 2, all: 4, ..SpawnBounds::default() };
    let check = |asker: &SpawnAsker, records: &[DrivenRecord], expected: &str| {
        let outcome = may_ask(asker, bounds, records, world.machine.now());
        let outcome = outcome.map_or_else(|error| error.to_string(), |()| "may ask".to_owned());
        assert!(outcome.contains(expected), "{outcome} instead of {expected}");
    };
    let user = SpawnAsker { asker: Asker::User, parent: None, run: None };
    let lead = asks("lead", None);
    let first = world.below("first", "lead", None);
    let second = world.below("second", "first", Some(&first));
    check(&user, &vec![first.clone(); 9], "may ask");
    check(&lead, std::slice::from_ref(&first), "may ask");
    check(&asks("first", Some(&first)), std::slice::from_ref(&first), "may ask");
    // Those below count for the one that began the tree, and so does what they ask for.
    check(&lead, &[first.clone(), second.clone()], "2 agents are here that `lead` has started");
    check(&asks("first", Some(&first)), &[first.clone(), second.clone()], "2 are the most");
    check(&asks("second", Some(&second)), &[first.clone(), second.clone()], "to a depth of 2");
    check(&asks("other", None), &[first.clone(), second.clone()], "may ask");
    let others: Vec<DrivenRecord> = (0..4).map(|_| world.driven("user-s")).collect();
    check(&asks("other", None), &others, "4 agents are here that were started, and 4 are the most");
    let ended = DrivenEnd { at: world.machine.now(), why: String::new(), meant: true };
    let ended = DrivenRecord { ended: Some(ended), ..second };
    check(&lead, &[first.clone(), ended], "may ask");
    // The first of a tree that the user began is none of those that it has started.
    let top = world.driven("top");
    let under = world.below("under", "top", Some(&top));
    check(&asks("top", Some(&top)), &[top.clone(), under.clone()], "may ask");
    check(&asks("top", Some(&top)), &[top.clone(), under.clone(), under], "2 agents are here");
    let spent = DrivenRecord { limits: DrivenLimits { turns: Some(0), ..DrivenLimits::default() }, ..top };
    check(&asks("top", Some(&spent)), std::slice::from_ref(&spent), "nothing is left of what `top` may spend");
    let nameless = SpawnAsker { asker: Asker::Session { harness: "toad".to_owned(), agent: None }, ..user.clone() };
    check(&nameless, &[], "has no agent");
    let below = SpawnAsker { parent: Some(first), ..user };
    check(&below, &[], "may ask");
}

#[test]
fn what_the_user_allows_is_by_agent_harness_reach_and_day() {
    let world = World::new();
    let allowance =
        Allowance { agent: name("lead"), harness: "toad".to_owned(), reach: Reach::Edit, budget: Some(Budget(1)) };
    let check = |by: &str, (harness, reach): (&str, Reach), records: &[DrivenRecord], expected: &str| {
        let allowed = std::slice::from_ref(&allowance);
        let outcome = is_allowed(&asks(by, None), (harness, reach), allowed, records, world.machine.now());
        let outcome = outcome.map_or_else(|error| error.to_string(), |()| "allowed".to_owned());
        assert!(outcome.contains(expected), "{outcome} instead of {expected}");
    };
    check("lead", ("toad", Reach::Edit), &[], "allowed");
    check("other", ("toad", Reach::Look), &[], "has not allowed `other` to start agents of toad");
    check("lead", ("newt", Reach::Look), &[], "has not allowed `lead` to start agents of newt");
    check("lead", ("toad", Reach::Work), &[], "with the reach `edit` at most");
    let today = world.below("first", "lead", None);
    check("lead", ("toad", Reach::Look), std::slice::from_ref(&today), "has started 1 agents of toad within a day");
    world.machine.pass(DAY);
    check("lead", ("toad", Reach::Look), &[today], "allowed");
}

#[tokio::test]
async fn a_tree_shares_the_budget_of_its_first() {
    let world = World::new();
    let now = world.machine.now();
    let limits = DrivenLimits { turns: Some(3), until: Some(now.plus(1_000)), tokens: None };
    let mut top = DrivenRecord { limits, ..world.driven("top") };
    let child = world.below("child", "top", Some(&top));
    let given = within_root(DrivenLimits { until: Some(now.plus(5_000)), ..DrivenLimits::default() }, Some(&top));
    assert_eq!(given.until, limits.until, "no longer than the first");
    let over = |top: &DrivenRecord| tree_over(Some(top), Some(top), now).map(|over| over.to_string());
    top.spent.turns = 1;
    assert_eq!(over(&top), None);
    // Telling of the same twice changes nothing.
    for _ in 0..2 {
        top.below.insert(child.id, Spent { turns: 2, ..Spent::default() });
    }
    let spent = "of what `top` and those below it may spend, its budget of 3 turns is spent";
    assert_eq!(over(&top).as_deref(), Some(spent));
    assert_eq!(top.over_budget(now).map(|over| over.to_string()).as_deref(), Some("its budget of 3 turns is spent"));
    top.below.clear();
    top.ended = Some(DrivenEnd { at: now, why: String::new(), meant: true });
    assert_eq!(over(&top).as_deref(), Some("`top`, which had it started, has ended"));
    assert!(tree_over(None, None, now).is_some(), "what is not there any more ended long ago");
}
