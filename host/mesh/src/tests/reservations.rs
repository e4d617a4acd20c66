//! Reservations: what is granted to whom, and that no path is ever granted twice.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use store::memory::Fault;
use store::{Durability, Store};

use super::{World, listed, name};
use crate::reservations::glob::Glob;
use crate::reservations::repository::Repository;
use crate::reservations::{Mode, Reservation, Ttl};
use crate::testing::{FakeMachine, shell_call};
use crate::{Others, Own, Release, ReservationFilter, Reserve, ReserveError, Reserved};

fn repository() -> Repository {
    Repository::named("/work")
}

fn ask(pattern: &str) -> Reserve {
    Reserve {
        repository: repository(),
        patterns: pattern.split(' ').map(|one| one.parse().expect("a pattern")).collect(),
        mode: Mode::Exclusive,
        ttl: Ttl::default(),
        reason: None,
        others: Others::Respect,
        own: Own::Keep,
    }
}

/// A world where these agents have registered on the command line.
async fn world_of(agents: &[&str]) -> World {
    let world = World::new();
    for agent in agents {
        world.register(&shell_call(None), agent).await;
    }
    world
}

impl World {
    async fn try_reserve(&self, owner: &str, ask: Reserve) -> Result<Reserved, ReserveError> {
        let caller = self.mesh.identify(&shell_call(Some(owner))).await.expect("identified");
        self.mesh.reserve(&caller, ask).await
    }

    /// Reserves; returns the result in words.
    async fn reserve(&self, owner: &str, ask: Reserve) -> String {
        match self.try_reserve(owner, ask).await.expect("reserved or refused") {
            Reserved::Granted { taken, given_up, .. } => {
                let of = |what: &str, some: &[Reservation]| {
                    let each = some.iter().map(|one| format!(", {what} {} of {}", one.pattern, one.owner));
                    each.collect::<String>()
                };
                format!("granted{}{}", of("took", &taken), of("gave up", &given_up))
            }
            Reserved::Held(conflicts) => {
                let each =
                    conflicts.iter().map(|one| format!("{} by {} at {}", one.held.pattern, one.held.owner, one.at));
                format!("held: {}", each.collect::<Vec<_>>().join(", "))
            }
        }
    }

    async fn release(&self, owner: &str, patterns: &str) -> String {
        let caller = self.mesh.identify(&shell_call(Some(owner))).await.expect("identified");
        let what = match patterns {
            "all" => Release::All,
            some => Release::These(some.split(' ').map(|one| one.parse().expect("a pattern")).collect()),
        };
        match self.mesh.release_reservations(&caller, &repository(), &what).await {
            Ok(given) => format!("released {}", given.released.len()),
            Err(error) => error.to_string(),
        }
    }

    async fn reserved(&self) -> String {
        let all = listed(&self.mesh, &ReservationFilter::default()).await;
        let each = all.iter().map(|(_, one)| format!("{} {} {}", one.owner, one.pattern, one.mode.as_str()));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[tokio::test]
async fn what_one_holds_another_does_not_get() {
    let world = world_of(&["alice", "bob"]).await;
    assert_eq!(world.reserve("alice", ask("src/parser/**")).await, "granted");
    assert_eq!(world.reserve("bob", ask("**/*.rs")).await, "held: src/parser/** by alice at src/parser/.rs");
    assert_eq!(
        world.reserve("bob", ask("docs/** src/parser/a.rs")).await,
        "held: src/parser/** by alice at src/parser/a.rs"
    );
    assert_eq!(world.reserved().await, "alice src/parser/** exclusive", "all is granted, or nothing");
    assert_eq!(world.reserve("bob", ask("docs/** src/*.rs")).await, "granted");
    assert_eq!(world.release("bob", "src/parser/**").await, "`src/parser/**` is reserved by `alice`, not by you");
    assert_eq!(world.release("bob", "docs/** nothing").await, "you have no reservation of `nothing`");
    assert_eq!(world.release("bob", "all").await, "released 2");
    assert_eq!(world.release("alice", "src/parser/**").await, "released 1");
    assert_eq!(world.reserve("bob", ask("**/*.rs")).await, "granted");
}

#[tokio::test]
async fn a_path_that_became_a_folder_is_released_by_its_name() {
    let world = world_of(&["alice", "bob"]).await;
    world.reserve("alice", ask("new docs/**")).await;
    assert_eq!(world.release("bob", "new/**").await, "`new/**` is reserved by `alice`, not by you");
    assert_eq!(world.release("alice", "new/** docs").await, "released 2");
    assert_eq!(world.release("alice", "new/*").await, "you have no reservation of `new/*`");
}

#[tokio::test]
async fn what_is_shared_is_shared_with_those_who_share_it() {
    let world = world_of(&["alice", "bob", "carol"]).await;
    let shared = |pattern| Reserve { mode: Mode::Shared, ..ask(pattern) };
    assert_eq!(world.reserve("alice", shared("src/**")).await, "granted");
    assert_eq!(world.reserve("bob", shared("src/*.rs")).await, "granted");
    assert_eq!(
        world.reserve("carol", ask("src/a.rs")).await,
        "held: src/** by alice at src/a.rs, src/*.rs by bob at src/a.rs"
    );
    assert_eq!(
        world.reserve("alice", ask("src/**")).await,
        "held: src/*.rs by bob at src/.rs",
        "it cannot become exclusive"
    );
    world.release("bob", "all").await;
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    assert_eq!(world.reserved().await, "alice src/** exclusive");
}

#[tokio::test]
async fn one_renews_and_narrows_what_one_has() {
    let world = world_of(&["alice", "bob"]).await;
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    world.machine.pass(3_599_000);
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    world.machine.pass(3_599_000);
    assert_eq!(world.reserve("bob", ask("src/a")).await, "held: src/** by alice at src/a", "it was renewed");
    let narrow = Reserve { own: Own::GiveUp, ..ask("src/parser/**") };
    assert_eq!(world.reserve("alice", narrow).await, "granted, gave up src/** of alice");
    assert_eq!(world.reserve("bob", ask("src/a")).await, "granted");
    assert_eq!(world.reserved().await, "alice src/parser/** exclusive, bob src/a exclusive");
}

#[tokio::test]
async fn a_reservation_lapses_with_its_time_and_not_with_its_agent() {
    let world = world_of(&["alice", "bob"]).await;
    let minute = Reserve { ttl: Ttl::new(60_000).expect("a span"), ..ask("a") };
    assert_eq!(world.reserve("alice", minute).await, "granted");
    world.machine.pass(59_999);
    assert_eq!(world.reserve("bob", ask("a")).await, "held: a by alice at a");
    world.machine.pass(1);
    assert_eq!(world.reserve("bob", ask("a")).await, "granted");
    let all = ReservationFilter { also_over: true, ..ReservationFilter::default() };
    assert_eq!(listed(&world.mesh, &all).await.len(), 2, "what is over is remembered");
    world.machine.pass(2 * 3_600_000);
    world.reserve("bob", ask("b")).await;
    assert_eq!(listed(&world.mesh, &all).await.len(), 1, "for an hour");
}

#[tokio::test]
async fn a_clock_that_goes_back_ends_no_reservation() {
    let world = world_of(&["alice", "bob"]).await;
    world.reserve("alice", ask("a")).await;
    world.machine.go_back(1_800_000);
    assert_eq!(world.reserve("bob", ask("a")).await, "held: a by alice at a");
    // A renewal after the clock went back does not end before the old promise either.
    assert_eq!(world.reserve("alice", ask("a")).await, "granted");
    world.machine.pass(1_800_000 + 3_599_999);
    assert_eq!(world.reserve("bob", ask("a")).await, "held: a by alice at a");
    world.machine.pass(1);
    assert_eq!(world.reserve("bob", ask("a")).await, "granted");
}

#[tokio::test]
async fn what_lapsed_and_was_given_to_somebody_else_does_not_come_back_with_the_clock() {
    let world = world_of(&["alice", "bob", "carol"]).await;
    world.reserve("alice", ask("a b")).await;
    world.machine.pass(3_600_000);
    assert_eq!(world.reserve("bob", ask("a")).await, "granted");
    world.machine.go_back(1_800_000);
    assert_eq!(world.reserved().await, "alice b exclusive, bob a exclusive", "never both");
    assert_eq!(world.reserve("carol", ask("a")).await, "held: a by bob at a");
    assert_eq!(world.fetch("alice").await, "", "it had lapsed, and nothing was taken by force");
}

#[tokio::test]
async fn what_is_taken_by_force_is_told_to_its_holder_once() {
    let world = world_of(&["alice", "bob"]).await;
    world.reserve("alice", ask("src/** docs/**")).await;
    let force = |pattern| Reserve { others: Others::Take, ..ask(pattern) };
    assert_eq!(world.reserve("bob", force("src/a")).await, "granted, took src/** of alice");
    assert_eq!(world.reserved().await, "alice docs/** exclusive, bob src/a exclusive");
    let told = world.fetch("alice").await;
    assert!(told.contains("bob took over `src/**` in /work"), "{told}");
    assert_eq!(world.release("alice", "all").await, "released 1");
    assert_eq!(world.fetch("alice").await, "", "and not again");
}

#[tokio::test]
async fn whoever_dies_while_taking_leaves_the_news_to_the_next_one() {
    let force = || Reserve { others: Others::Take, ..ask("src/**") };
    let healthy = world_of(&["alice", "bob", "carol"]).await;
    healthy.reserve("alice", ask("src/**")).await;
    let before = healthy.store.writes();
    healthy.reserve("bob", force()).await;
    let writes = healthy.store.writes() - before;
    let mut taken = 0;
    for nth in 1..=writes {
        let world = world_of(&["alice", "bob", "carol"]).await;
        world.reserve("alice", ask("src/**")).await;
        world.store.fail_at(nth, Fault::Fail);
        let _died = world.try_reserve("bob", force()).await;
        let was_taken = world.reserved().await.contains("bob");
        taken += u64::from(was_taken);
        // Even if no agent reserves anything until all of it ended long ago.
        world.machine.pass(3 * 3_600_000);
        world.reserve("carol", ask("elsewhere")).await;
        world.release("carol", "all").await;
        let told = world.fetch("alice").await.matches("bob took over").count();
        assert_eq!(told, usize::from(was_taken), "write {nth} failed");
        world.release("carol", "all").await;
        assert_eq!(world.fetch("alice").await, "", "write {nth} failed: it is not told again");
    }
    assert_eq!(taken, writes - 1, "all but the one whose first write failed");
}

#[tokio::test]
async fn an_owner_who_cannot_be_told_now_is_told_later_and_fails_nobodys_request() {
    let world = world_of(&["alice", "bob", "carol"]).await;
    world.reserve("alice", ask("a")).await;
    world.reserve("bob", ask("b")).await;
    let meta = crate::storage::keys::meta(&name("alice"));
    let sound = world.store.get(&meta).await.expect("read").expect("a record");
    let damaged = world.store.swap(&meta, Some(sound.revision), Some(b"[]"), Durability::Process).await;
    let force = Reserve { others: Others::Take, ..ask("a b") };
    assert_eq!(world.reserve("carol", force).await, "granted, took a of alice, took b of bob");
    assert!(world.fetch("bob").await.contains("carol took over `b`"), "who comes after her is told");
    assert_eq!(world.release("carol", "a").await, "released 1");
    let damaged = damaged.expect("written");
    world.store.swap(&meta, damaged, Some(&sound.bytes), Durability::Process).await.expect("written");
    assert_eq!(world.release("carol", "b").await, "released 1");
    assert!(world.fetch("alice").await.contains("carol took over `a`"), "the next call tells her");
    assert_eq!(world.fetch("bob").await, "", "he is not told again");
}

#[tokio::test]
async fn a_damaged_value_costs_its_own_repository_alone() {
    let world = world_of(&["alice"]).await;
    let elsewhere = Repository::named("/elsewhere");
    let damaged = crate::storage::keys::reservations_of(&elsewhere);
    let value = br#"{"repository":"/elsewhere","reservations":[{"pattern":"["}]}"#;
    world.store.swap(&damaged, None, Some(value), Durability::Process).await.expect("written");
    assert_eq!(world.reserve("alice", ask("src")).await, "granted");
    assert_eq!(world.reserved().await, "alice src exclusive");
    let refused = world.try_reserve("alice", Reserve { repository: elsewhere, ..ask("src") }).await;
    let refused = refused.expect_err("nobody knows who holds what there");
    assert!(matches!(refused, ReserveError::Store(store::StoreError::Damaged { .. })), "{refused:?}");
}

#[tokio::test]
async fn nobody_is_no_owner() {
    let world = world_of(&[]).await;
    let caller = world.mesh.identify(&shell_call(None)).await.expect("identified");
    let refused = world.mesh.reserve(&caller, ask("a")).await;
    assert!(matches!(refused, Err(ReserveError::NotRegistered)));
    for (span, expected) in [
        (0, "a reservation lasts at least a second"),
        (7 * 24 * 3_600_000 + 1, "a reservation lasts at most a week; renew it while you work"),
    ] {
        assert_eq!(Ttl::new(span).expect_err("no span").to_string(), expected);
    }
}

#[test]
fn a_pattern_means_the_same_from_everywhere_in_the_repository() {
    let world = World::new();
    let check = |folder: &str, typed: &str, expected: &str| {
        let checkout = world.mesh.checkout(Path::new(folder)).expect("a working copy");
        let meant = match world.mesh.pattern(&checkout, Path::new(folder), typed) {
            Ok(pattern) => pattern.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(
            meant == expected || meant.contains(expected) && expected.contains(' '),
            "{typed} in {folder}: {meant}"
        );
    };
    check("/work", "src/*.rs", "src/*.rs");
    check("/work/src", "*.rs", "src/*.rs");
    check("/work/src", "../docs/*.md", "docs/*.md");
    check("/work/src", "./a.rs", "src/a.rs");
    check("/work", "src", "src/**");
    check("/work", ".", "**");
    check("/work/src", ".", "src/**");
    check("/work", "new.d/", "new.d/**");
    check("/work", "/work/src/a.rs", "src/a.rs");
    check("/work", "link/a.rs", "src/a.rs");
    check("/work", "link/{a,b}.rs", "src/{a,b}.rs");
    check("/work/a[b].d", "x.rs", "a\\[b].d/x.rs");
    check("/work", "app/[id].tsx", "app/\\[id].tsx");
    check("/work", "app/[id].ts", "app/[id].ts");
    check("/work", "app/[slug]", "app/\\[slug]/**");
    check("/work", "app/[slug]/new.tsx", "app/\\[slug]/new.tsx");
    check("/work", "app/[slug]/*.tsx", "app/\\[slug]/*.tsx");
    check("/work", "app/[slug]/[a", "`[a` is not a pattern: this `[` is never closed (at character 1)");
    check("/work", "", "it is empty");
    check("/work", "/etc/passwd", "lies outside of the repository `/work`");
    check("/work/src", "../../etc/*", "lies outside of the repository `/work`");
    check("/work", "away/secret", "lies outside of the repository `/work`");
    check("/work", "away/*", "lies outside of the repository `/work`");
    check("/work", "submodule/a.rs", "`submodule/a.rs` lies in a repository of its own, `/work/submodule`");
    check("/work", "submodule", "`submodule` lies in a repository of its own, `/work/submodule`");
    check("/work/submodule", "a.rs", "a.rs");
    check("/work", "trees/worktree/src/*.rs", "src/*.rs");
    check("/work", "trees/worktree", "**");
    check("/work/trees/worktree", "src/a.rs", "src/a.rs");
    check("/work/trees/worktree", "../../src/a.rs", "src/a.rs");
    check("/work/trees/worktree", "/work/docs/a.rs", "docs/a.rs");
    check("/work/submodule", "../src/a.rs", "lies outside of the repository `/work/submodule`");
    check("/work", "src/[a", "`src/[a` is not a pattern: this `[` is never closed (at character 5)");
    check("/work", "src/{a,..}/../x", "no path can match it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_race_for_one_path_do_not_both_win() {
    let agents: [&'static str; 8] = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"];
    let world = world_of(&agents).await;
    let patterns = ["src/**", "**/*.rs", "src/[a-m]*", "src/main.rs", "{src,docs}/*"];
    for round in 0..30 {
        let racers: Vec<_> = agents
            .into_iter()
            .enumerate()
            .map(|(index, agent)| {
                let racer = Arc::new(world.another_process());
                let pattern = patterns[(index + round) % patterns.len()];
                tokio::spawn(async move { racer.reserve(agent, ask(pattern)).await })
            })
            .collect();
        let mut granted = 0;
        for racer in racers {
            granted += usize::from(racer.await.expect("no panic") == "granted");
        }
        assert!(granted > 0, "somebody wins");
        let held = listed(&world.mesh, &ReservationFilter::default()).await;
        assert_eq!(held.len(), granted, "what was granted is what is held");
        assert_apart(&held.into_iter().map(|(_, one)| one).collect::<Vec<_>>());
        for agent in agents {
            world.release(agent, "all").await;
        }
    }
}

/// Asserts that no two conflicting reservations share a path.
fn assert_apart(held: &[Reservation]) {
    for (index, one) in held.iter().enumerate() {
        for other in &held[index + 1..] {
            let meet = one.owner != other.owner && one.mode.excludes(other.mode);
            assert!(!meet || one.pattern.overlap(&other.pattern).is_none(), "{one:?} and {other:?}");
        }
    }
}

/// A random step.
#[derive(Clone, Debug)]
enum Act {
    Reserve { agent: usize, pattern: usize, mode: Mode, others: Others, ttl: u64 },
    Release { agent: usize, pattern: usize },
    Pass(u64),
    Fail(Fault),
}

const AGENTS: [&str; 3] = ["alice", "bob", "carol"];
const PATTERNS: [&str; 6] = ["a/**", "a/b", "**/b", "a/[!b]*", "c", "{a,c}"];

fn act() -> impl Strategy<Value = Act> {
    let agent = 0..AGENTS.len();
    let pattern = 0..PATTERNS.len();
    let mode = prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::Shared)];
    let others = prop_oneof![5 => Just(Others::Respect), 1 => Just(Others::Take)];
    prop_oneof![
        6 => (agent.clone(), pattern.clone(), mode, others, 1_000..60_000_u64)
            .prop_map(|(agent, pattern, mode, others, ttl)| Act::Reserve { agent, pattern, mode, others, ttl }),
        2 => (agent, pattern).prop_map(|(agent, pattern)| Act::Release { agent, pattern }),
        2 => (0..40_000_u64).prop_map(Act::Pass),
        1 => prop::sample::select(vec![Fault::Fail, Fault::FailToSync, Fault::Tear]).prop_map(Act::Fail),
    ]
}

/// What an agent was told that it holds, until when.
#[derive(Clone, Debug)]
struct Promise {
    agent: usize,
    pattern: usize,
    mode: Mode,
    until: u64,
}

async fn run(acts: Vec<Act>) {
    let world = world_of(&AGENTS).await;
    let machine: &FakeMachine = &world.machine;
    let globs: Vec<Glob> = PATTERNS.iter().map(|text| text.parse().expect("a pattern")).collect();
    let mut promises: Vec<Promise> = Vec::new();
    let mut now = 0;
    // A failed change may have been stored nevertheless, until the next look at the store.
    let mut unsure = false;
    for act in acts {
        match act {
            Act::Reserve { agent, pattern, mode, others, ttl } => {
                let wanted = Reserve { mode, others, ttl: Ttl::new(ttl).expect("a span"), ..ask(PATTERNS[pattern]) };
                let in_the_way = |promise: &Promise| {
                    promise.until > now
                        && promise.agent != agent
                        && promise.mode.excludes(mode)
                        && globs[promise.pattern].overlap(&globs[pattern]).is_some()
                };
                match world.try_reserve(AGENTS[agent], wanted).await {
                    Ok(Reserved::Granted { taken, .. }) => {
                        let expected = promises.iter().filter(|promise| in_the_way(promise)).count();
                        assert!(others == Others::Take || expected == 0, "granted although {promises:?}");
                        assert!(unsure || taken.len() == expected);
                        promises.retain(|promise| !in_the_way(promise));
                        promises.retain(|old| (old.agent, old.pattern) != (agent, pattern));
                        promises.push(Promise { agent, pattern, mode, until: now + ttl });
                    }
                    Ok(Reserved::Held(_)) => {
                        assert!(unsure || promises.iter().any(in_the_way), "refused although {promises:?}");
                    }
                    Err(_) => {
                        // It may hold now, and what it took may be gone.
                        if others == Others::Take {
                            promises.retain(|promise| !in_the_way(promise));
                        }
                        promises.retain(|old| (old.agent, old.pattern) != (agent, pattern));
                        unsure = true;
                    }
                }
            }
            Act::Release { agent, pattern } => {
                let caller = world.mesh.identify(&shell_call(Some(AGENTS[agent]))).await.expect("identified");
                let what = Release::These(vec![globs[pattern].clone()]);
                let outcome = world.mesh.release_reservations(&caller, &repository(), &what).await;
                unsure |= matches!(outcome, Err(crate::ReleaseError::Store(_)));
                promises.retain(|old| (old.agent, old.pattern) != (agent, pattern));
            }
            Act::Pass(milliseconds) => {
                machine.pass(milliseconds);
                now += milliseconds;
            }
            Act::Fail(fault) => world.store.fail_at(1, fault),
        }
        let held = listed(&world.mesh, &ReservationFilter::default()).await;
        let held: Vec<Reservation> = held.into_iter().map(|(_, one)| one).collect();
        assert_apart(&held);
        for promise in promises.iter().filter(|promise| promise.until > now) {
            let kept = held
                .iter()
                .any(|one| one.owner == name(AGENTS[promise.agent]) && one.pattern == globs[promise.pattern]);
            assert!(kept, "{promise:?} is not kept: {held:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_was_promised_is_kept_and_nothing_is_promised_twice(acts in proptest::collection::vec(act(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(run(acts));
    }
}

#[tokio::test]
async fn a_repository_whose_folder_is_renamed_keeps_its_reservations() {
    let world = world_of(&["alice", "bob"]).await;
    world.machine.mark_folder("/work", "folder-1");
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    world.machine.mark_folder("/renamed", "folder-1");
    let renamed = |pattern: &str| Reserve { repository: Repository::named("/renamed"), ..ask(pattern) };
    assert_eq!(world.reserve("bob", renamed("src/a.rs")).await, "held: src/** by alice at src/a.rs");
    let all = world.mesh.reservations(&ReservationFilter::default()).await.expect("listed");
    assert_eq!(all.iter().map(|one| one.repository.as_str()).collect::<Vec<_>>(), ["/renamed"], "it has moved");
    // A new folder at the old path is another repository.
    world.machine.mark_folder("/work", "folder-2");
    assert_eq!(world.reserve("bob", ask("src/a.rs")).await, "granted");
    // And back again, by whatever looks first.
    world.machine.mark_folder("/work-again", "folder-1");
    let filter = ReservationFilter { repository: Some(Repository::named("/work-again")), ..Default::default() };
    let found = world.mesh.reservations(&filter).await.expect("listed");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[tokio::test]
async fn a_new_folder_at_the_old_path_keeps_what_was_reserved_in_it() {
    let world = world_of(&["alice", "bob"]).await;
    world.machine.mark_folder("/work", "folder-1");
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    world.machine.pass(1);
    world.machine.mark_folder("/renamed", "folder-1");
    world.machine.mark_folder("/work", "folder-2");
    // Before anything has looked at the renamed one.
    assert_eq!(world.reserve("bob", ask("docs/**")).await, "granted");
    world.machine.pass(1);
    let renamed = Reserve { repository: Repository::named("/renamed"), ..ask("src/a.rs") };
    assert_eq!(world.reserve("bob", renamed).await, "held: src/** by alice at src/a.rs");
    let all = listed(&world.mesh, &ReservationFilter::default()).await;
    let mut all: Vec<String> = all.iter().map(|(at, one)| format!("{} {}", at.as_str(), one.pattern)).collect();
    all.sort();
    assert_eq!(all, ["/renamed src/**", "/work docs/**"]);
}

#[tokio::test]
async fn a_folder_at_two_paths_is_not_taken_for_renamed() {
    let world = world_of(&["alice", "bob"]).await;
    world.machine.mark_folder("/work", "folder-1");
    assert_eq!(world.reserve("alice", ask("src/**")).await, "granted");
    world.machine.mark_folder_also("/mounted", "folder-1");
    let mounted = Reserve { repository: Repository::named("/mounted"), ..ask("src/a.rs") };
    assert_eq!(world.reserve("bob", mounted).await, "granted");
    assert_eq!(world.reserve("bob", ask("src/a.rs")).await, "held: src/** by alice at src/a.rs");
}
