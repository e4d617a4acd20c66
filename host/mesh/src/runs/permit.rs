//! Who may start a run. The user may; an agent only as far as the user has allowed it in their own settings.

use crate::allowances::{
    Allowance, Asker, NotAllowed, Starts, allowed_to, is_younger_than_a_day, speaker, within_budget,
};
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::ports::runner::Reach;
use crate::runs::record::{RunId, RunRecord};

/// Why a run is not permitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    /// The user has not allowed it.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The first of the runs above has nothing left that another could have.
    #[error("run {root}, below which this would run, has no {what} left")]
    NothingLeft {
        /// That run.
        root: RunId,
        /// Its time or its budget.
        what: &'static str,
    },
    /// The first of the runs above it has a budget, and this harness says nothing of what it spends.
    #[error(
        "run {root}, below which this would run, has a budget, and {harness} neither keeps to one nor says its cost"
    )]
    Uncounted {
        /// That run.
        root: RunId,
        harness: String,
    },
    /// The caller is a run itself, too deep to start another.
    #[error("this is run {parent} itself, and runs may start runs to a depth of {most}")]
    TooDeep {
        /// The run that asks.
        parent: RunId,
        /// The greatest depth.
        most: u32,
    },
}

/// Decides whether a run may start, given the runs that are known and the greatest depth. `parent` is the live run that
/// the caller is in, by evidence.
pub fn permit(
    asker: &Asker,
    (harness, reach): (&str, Reach),
    parent: Option<&RunRecord>,
    most: u32,
    allowed: &[Allowance],
    runs: &[RunRecord],
    now: Instant,
) -> Result<(), NotPermitted> {
    if let Some(parent) = parent.filter(|parent| parent.depth >= most) {
        return Err(NotPermitted::TooDeep { parent: parent.id, most });
    }
    if *asker == Asker::User && parent.is_none() {
        return Ok(());
    }
    // A shell below a run speaks for that run, whatever it says.
    let above = parent.map(|parent| (parent.harness.as_str(), parent.agent.as_ref()));
    let agent = speaker(asker, above)?;
    allowed_to(Starts::Runs, &agent, (harness, reach), allowed)?;
    // What a run starts counts for its own agent, and for the one that started the first of the runs above it.
    let root = parent.and_then(|parent| runs.iter().chain([parent]).find(|run| run.id == parent.root));
    let starter = root.and_then(|root| root.by.as_ref()).filter(|starter| **starter != agent);
    for agent in std::iter::once(&agent).chain(starter) {
        let young = runs.iter().filter(|run| run.harness == harness && is_younger_than_a_day(run.started, now));
        let spent = young.filter(|run| counts_for(agent, run, runs)).count();
        within_budget(Starts::Runs, agent, harness, spent, allowed)?;
    }
    Ok(())
}

/// Whether a run was started by this agent, or by a run below one that was.
fn counts_for(agent: &AgentName, run: &RunRecord, runs: &[RunRecord]) -> bool {
    let is_by = |run: &RunRecord| run.by.as_ref() == Some(agent);
    is_by(run) || (run.root != run.id && runs.iter().any(|other| other.id == run.root && is_by(other)))
}

/// The time in milliseconds and the cost that a run below others gets of what it asks for: no more than its root has
/// left. Runs that were started since the root are given, and the root among them. `counts_cost` is whether its harness
/// keeps to a limit of cost or says what it spends.
pub fn share(
    root: &RunRecord,
    runs: &[RunRecord],
    now: Instant,
    (time, cost): (u64, Option<u64>),
    (harness, counts_cost): (&str, bool),
) -> Result<(u64, Option<u64>), NotPermitted> {
    if root.task.cost.is_some() && !counts_cost {
        return Err(NotPermitted::Uncounted { root: root.id, harness: harness.to_owned() });
    }
    let time = time.min(time_left(root, now));
    let cost = [cost, cost_left(root, runs)].into_iter().flatten().min();
    match (time, cost) {
        (0, _) => Err(NotPermitted::NothingLeft { root: root.id, what: "time" }),
        (_, Some(0)) => Err(NotPermitted::NothingLeft { root: root.id, what: "budget" }),
        shared => Ok(shared),
    }
}

/// What is left of a root's time, in milliseconds. Runs below it use it up at the same time, so they share nothing.
fn time_left(root: &RunRecord, now: Instant) -> u64 {
    root.limits.time.saturating_sub(now.since(root.started))
}

/// What is left of a root's cost, in millionths of a US dollar; none if it has no limit. The root counts too: with what
/// it has said that it spent, which the host holds against what those below it may still spend.
fn cost_left(root: &RunRecord, runs: &[RunRecord]) -> Option<u64> {
    let spent = charged(root).saturating_add(charged_below(root, runs));
    budget(root).map(|most| most.saturating_sub(spent))
}

/// What a run and those below it may cost together, in millionths of a US dollar; none if that has no limit.
pub fn budget(root: &RunRecord) -> Option<u64> {
    root.task.cost.map(|own| own.saturating_add(root.below.unwrap_or(0)))
}

/// What the runs below a root are charged with, in millionths of a US dollar.
pub fn charged_below(root: &RunRecord, runs: &[RunRecord]) -> u64 {
    let below = runs.iter().filter(|run| run.root == root.id && run.id != root.id);
    below.map(charged).fold(0, u64::saturating_add)
}

/// What a run is charged with. One that has ended counts with what it cost, or, if nobody knows, with all that it was
/// allowed. A root that goes on counts with what it has spent so far, if its harness says so; any other run that goes
/// on counts with all that it may spend, so that several at once do not each get the whole rest.
fn charged(run: &RunRecord) -> u64 {
    let known = match &run.ended {
        Some(end) => end.cost,
        None if run.root == run.id => run.spent,
        None => None,
    };
    known.or(run.task.cost).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::allowances::Budget;
    use crate::ports::machine::Process;
    use crate::ports::runner::{Ending, Extensions, Start, Task};
    use crate::runs::record::{RunEnd, RunLimits, Workplace};

    fn name(text: &str) -> AgentName {
        text.parse().expect("a name")
    }

    fn check(asker: &str, reach: Reach, allowed: &[&str], expected: &str) {
        let asker = match asker {
            "user" => Asker::User,
            "nameless" => Asker::Session { harness: "codex".to_owned(), agent: None },
            agent => Asker::Session { harness: "codex".to_owned(), agent: Some(name(agent)) },
        };
        let allowance = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            Allowance {
                agent: name(words[0]),
                harness: words[1].to_owned(),
                reach: words[2].parse().expect("a reach"),
                budget: words.get(3).map(|budget| budget.parse().expect("a budget")),
            }
        };
        let allowed: Vec<Allowance> = allowed.iter().map(allowance).collect();
        let outcome = permit(&asker, ("claude-code", reach), None, 1, &allowed, &[], Instant(0));
        let outcome = outcome.map_or_else(|error| error.to_string(), |()| "permitted".to_owned());
        assert!(outcome.contains(expected), "{asker:?}: {outcome}");
    }

    #[test]
    fn an_agent_may_what_the_user_has_allowed() {
        check("user", Reach::Unguarded, &[], "permitted");
        check("nameless", Reach::Look, &["bob claude-code work"], "has no agent");
        check("bob", Reach::Look, &[], "has not allowed `bob` to start runs of claude-code");
        check("bob", Reach::Look, &["carol claude-code work", "bob codex work"], "has not allowed `bob`");
        check("bob", Reach::Edit, &["bob claude-code edit"], "permitted");
        check("bob", Reach::Work, &["bob claude-code edit"], "with the reach `edit` at most");
        check("bob", Reach::Look, &["bob claude-code edit 1/day"], "permitted");
    }

    /// The cost of a run that ended without saying what it cost.
    const UNKNOWN: u64 = u64::MAX;

    /// A run by its number and that of its root, with who started it and what it may cost or has cost.
    fn run(number: u8, root: u8, by: Option<&str>, cost: Option<u64>, ended: Option<u64>) -> RunRecord {
        let id = |number: u8| format!("01JD8Z3K5V00000000000000{number:02}").parse().expect("an id");
        let end = |cost| RunEnd {
            at: Instant(0),
            ending: Ending::Answered,
            ok: true,
            why: None,
            session: None,
            session_usage: None,
            cost: (cost != UNKNOWN).then_some(cost),
            changed: 0,
        };
        RunRecord {
            id: id(number),
            harness: "claude-code".to_owned(),
            agent: Some(name("claude-run")),
            by: by.map(name),
            parent: (number != root).then(|| id(root)),
            root: id(root),
            depth: if number == root { 1 } else { 2 },
            asked_folder: PathBuf::new(),
            workplace: Workplace::Here { top: None },
            task: Task {
                id: String::new(),
                folder: PathBuf::new(),
                start: Start::Fresh(String::new()),
                reach: Reach::Look,
                extensions: Extensions::None,
                model: None,
                schema: None,
                guidance: None,
                turns: None,
                cost,
            },
            about: String::new(),
            limits: RunLimits { time: 1_000, ..RunLimits::default() },
            report: Vec::new(),
            reserve: Vec::new(),
            launch: None,
            before: None,
            supervisor: Process { pid: 1, start: 1, space: None },
            started: Instant(100),
            attempts: 1,
            earlier: None,
            below: None,
            spent: None,
            session: None,
            halt: None,
            ended: ended.map(end),
            applied: None,
        }
    }

    #[test]
    fn a_run_below_others_gets_what_its_root_has_left() {
        let root = RunRecord { spent: Some(0), ..run(1, 1, Some("bob"), Some(100), None) };
        let of = |root: &RunRecord, others: &[RunRecord], now, asked, expected: Result<(u64, Option<u64>), &str>| {
            let runs: Vec<RunRecord> = std::iter::once(root.clone()).chain(others.iter().cloned()).collect();
            let outcome = share(root, &runs, Instant(now), asked, ("codex", true)).map_err(|error| error.to_string());
            match (outcome, expected) {
                (Ok(given), Ok(expected)) => assert_eq!(given, expected),
                (Err(said), Err(expected)) => assert!(said.contains(expected), "{said}"),
                (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
            }
        };
        let check = |others: &[RunRecord], now, asked, expected| of(&root, others, now, asked, expected);
        check(&[], 100, (5_000, None), Ok((1_000, Some(100))));
        check(&[], 800, (5_000, Some(30)), Ok((300, Some(30))));
        check(&[], 1_100, (5_000, None), Err("has no time left"));
        // One that has ended counts with what it cost, one that goes on with all that it may cost.
        check(&[run(2, 1, None, Some(60), Some(20))], 100, (500, None), Ok((500, Some(80))));
        check(&[run(2, 1, None, Some(60), None)], 100, (500, None), Ok((500, Some(40))));
        check(&[run(2, 1, None, Some(100), None)], 100, (500, None), Err("has no budget left"));
        check(&[run(3, 3, None, Some(60), Some(60))], 100, (500, None), Ok((500, Some(100))));
        // Of one that ended nobody may know the cost. Then it counts with what it was allowed.
        check(&[run(2, 1, None, Some(60), Some(UNKNOWN))], 100, (500, None), Ok((500, Some(40))));
        // The root counts too: with what it cost, what it has spent so far, or all of it if it says nothing.
        of(&run(1, 1, None, Some(100), Some(70)), &[], 100, (500, None), Ok((500, Some(30))));
        of(&RunRecord { spent: Some(35), ..root.clone() }, &[], 100, (500, None), Ok((500, Some(65))));
        of(&RunRecord { spent: None, ..root.clone() }, &[], 100, (500, None), Err("has no budget left"));
        // What is set aside for those below it is theirs also while nobody knows what it has spent itself.
        let sets_aside = RunRecord { spent: None, below: Some(40), ..run(1, 1, Some("bob"), Some(60), None) };
        of(&sets_aside, &[], 100, (500, None), Ok((500, Some(40))));
        of(&sets_aside, &[run(2, 1, None, Some(30), None)], 100, (500, None), Ok((500, Some(10))));
        of(&sets_aside, &[run(2, 1, None, Some(40), None)], 100, (500, None), Err("has no budget left"));
        of(&RunRecord { spent: Some(20), ..sets_aside.clone() }, &[], 100, (500, None), Ok((500, Some(80))));
        // Time passes for all of them at once.
        check(
            &[run(2, 1, None, Some(60), None), run(3, 1, None, Some(10), None)],
            600,
            (5_000, None),
            Ok((500, Some(30))),
        );
        let unbounded = run(1, 1, None, None, None);
        let of_unbounded = |counts| share(&unbounded, &[], Instant(100), (500, None), ("codex", counts));
        assert_eq!((of_unbounded(true), of_unbounded(false)), (Ok((500, None)), Ok((500, None))));
        let uncounted =
            share(&root, &[], Instant(100), (500, None), ("codex", false)).map_err(|error| error.to_string());
        assert!(uncounted.is_err_and(|said| said.contains("codex neither keeps to one nor says its cost")));
    }

    #[test]
    fn what_a_run_starts_counts_for_whoever_started_the_first() {
        let allowance = |agent: &str, budget: Option<u32>| Allowance {
            agent: name(agent),
            harness: "claude-code".to_owned(),
            reach: Reach::Look,
            budget: budget.map(Budget),
        };
        let check = |budgets: (Option<u32>, Option<u32>), runs: &[RunRecord], expected: &str| {
            let allowed = [allowance("bob", budgets.0), allowance("claude-run", budgets.1)];
            let outcome = |asker: Asker, parent: Option<&RunRecord>| {
                let outcome = permit(&asker, ("claude-code", Reach::Look), parent, 2, &allowed, runs, Instant(200));
                outcome.map_or_else(|error| error.to_string(), |()| "permitted".to_owned())
            };
            let below = outcome(Asker::User, Some(&runs[0]));
            assert!(below.contains(expected), "{budgets:?}: {below}");
            let bob = Asker::Session { harness: "codex".to_owned(), agent: Some(name("bob")) };
            // What the run below started is gone from its starter's own budget.
            let again = outcome(bob, None);
            assert_eq!(again == "permitted", budgets.0.is_none_or(|most| runs.len() < most as usize), "{again}");
        };
        let root = run(1, 1, Some("bob"), None, None);
        let child = run(2, 1, Some("claude-run"), None, None);
        check((None, None), &[root.clone(), child.clone()], "permitted");
        check((Some(3), None), &[root.clone(), child.clone()], "permitted");
        check((Some(2), None), &[root.clone(), child.clone()], "`bob` has started 2 runs");
        check((None, Some(1)), &[root.clone(), child.clone()], "`claude-run` has started 1 runs");
        check((Some(3), Some(2)), &[root, child], "permitted");
        // A run that is as deep as any may be starts none, whatever is allowed.
        let deep = run(2, 1, None, None, None);
        let outcome = permit(&Asker::User, ("claude-code", Reach::Look), Some(&deep), 2, &[], &[], Instant(0));
        assert!(matches!(outcome, Err(NotPermitted::TooDeep { most: 2, .. })), "{outcome:?}");
    }
}
