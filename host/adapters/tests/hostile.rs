//! The damage that a component does to itself costs one call: its host and the other adapters continue.

mod common;

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters::Adapters;
use common::{Stage, hook};
use mesh::ports::harness::{HarnessError, Harnesses as _};
use tokio::time::Instant;

async fn check_neighbour(adapters: &Adapters, after: &str) {
    let reply = hook(adapters, "polite", "Stop").await.expect("the neighbour answers");
    assert_eq!(reply.stdout.as_deref(), Some("Stop ticket you have mail"), "after {after}");
}

/// A stage on which the hostile adapter may run for far longer than its neighbour needs, however busy the machine is.
fn patient_stage() -> Stage {
    let stage = Stage::with(&["hostile", "polite"]);
    let manifest = stage.plugins().join("hostile/adapter.toml");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, text.replace("guest-ms = 100", "guest-ms = 5000")).expect("written");
    stage
}

async fn check(deed: &str, expected: &str) {
    let stage = Stage::with(&["hostile", "polite"]);
    let adapters = stage.adapters();
    check_neighbour(&adapters, "nothing").await;
    let error = hook(&adapters, "hostile", deed).await.expect_err(deed);
    let HarnessError::Failed(sentence) = &error else { panic!("{deed}: {error:?}") };
    assert!(sentence.contains(expected), "{deed}: {sentence}");
    assert!(!sentence.contains('\n') && sentence.len() < 300, "{deed}: {sentence}");
    check_neighbour(&adapters, deed).await;
    // The hostile adapter answers its next call, and its fault is on record.
    let good = hook(&adapters, "hostile", "answer:clock").await.expect("it answers");
    assert_eq!(good.stdout.as_deref(), Some("1700000000000"));
    let (states, _) = adapters.states().await;
    let state = states.iter().find(|state| state.name == "hostile").expect("it is listed");
    assert_eq!(state.counters.faults, 1, "{deed}");
    assert_eq!(state.counters.last_fault.as_ref().map(|fault| &fault.what), Some(sentence));
}

#[tokio::test]
async fn a_trap_costs_one_call() {
    check("answer:trap", "the adapter `hostile` failed in `hook answer`: it trapped: wasm `unreachable`").await;
    check("answer:panic", "it trapped").await;
    check("read:trap", "failed in `hook read`").await;
}

#[tokio::test]
async fn leaving_is_a_fault_and_ends_nothing_but_the_call() {
    check("answer:exit", "hook answer").await;
}

#[tokio::test]
async fn a_loop_is_ended() {
    check("answer:loop", "it ran for more than 100 ms").await;
    check("read:loop", "it ran for more than 100 ms").await;
}

#[tokio::test]
async fn others_go_on_while_a_guest_loops_on_the_only_thread() {
    let stage = patient_stage();
    let adapters = stage.adapters();
    check_neighbour(&adapters, "nothing").await;
    hook(&adapters, "hostile", "answer:clock").await.expect("it answers");
    let neighbours = async {
        let mut answered = 0;
        for _ in 0..5 {
            check_neighbour(&adapters, "a loop").await;
            answered += 1;
        }
        answered
    };
    let looping = hook(&adapters, "hostile", "answer:loop");
    tokio::select! {
        biased;
        outcome = looping => panic!("the loop ended before its neighbours: {outcome:?}"),
        answered = neighbours => assert_eq!(answered, 5),
    }
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_stands_behind_a_looping_guest_once() {
    let stage = patient_stage();
    let adapters = Arc::new(stage.adapters());
    check_neighbour(&adapters, "nothing").await;
    hook(&adapters, "hostile", "answer:clock").await.expect("it answers");
    let turns = Arc::new(AtomicUsize::new(0));
    let (watched, theirs) = (Arc::clone(&turns), Arc::clone(&adapters));
    let looping = tokio::spawn(async move {
        let mut looping = pin!(hook(&theirs, "hostile", "answer:loop"));
        poll_fn(|context| {
            watched.fetch_add(1, Ordering::Relaxed);
            looping.as_mut().poll(context)
        })
        .await
    });
    let resumed = || turns.load(Ordering::Relaxed);
    let until_resumed = async |times: usize| {
        while resumed() < times {
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    };
    // Its hook host has looked up what it requested, and now it loops.
    until_resumed(20).await;
    for _ in 0..20 {
        let (before, began) = (resumed(), Instant::now());
        check_neighbour(&adapters, "a loop").await;
        let times = resumed() - before;
        // Paused time advances only when every task is idle, so the guest's rest outlasts the neighbour's call, unless
        // the neighbour rests too, as it does on a slow machine.
        let rests = usize::try_from(began.elapsed().as_millis()).expect("a few");
        assert!(times <= 1 + rests, "the guest was resumed {times} times while its neighbour rested {rests} times");
        until_resumed(before + 2).await;
    }
    assert!(!looping.is_finished(), "the loop ended before its neighbours");
    looping.abort();
}

#[tokio::test]
async fn endless_recursion_is_a_trap() {
    check("answer:recurse", "it trapped: call stack exhausted").await;
}

#[tokio::test]
async fn memory_has_an_end() {
    check("answer:grow", "it needed more than 32 MB of memory").await;
}

#[tokio::test]
async fn what_a_guest_hands_over_is_bounded() {
    check("answer:giant", "hook answer").await;
}

#[tokio::test]
async fn what_is_no_text_is_no_answer() {
    check("answer:no-text", "utf-8").await;
}

#[tokio::test]
async fn one_text_handed_over_many_times_is_bounded() {
    let stage = Stage::with(&["hostile", "polite"]);
    let adapters = stage.adapters();
    let hostile = adapters.get("hostile").await.expect("loaded").expect("known");
    hostile.discover().await.expect_err("ten gigabytes");
    check_neighbour(&adapters, "a list of one text").await;
}

#[tokio::test]
async fn a_flood_of_lines_is_dropped() {
    let stage = Stage::with(&["hostile"]);
    let adapters = stage.adapters();
    // Whether or not it writes a million lines within its time, nothing else happens.
    match hook(&adapters, "hostile", "answer:flood").await {
        Ok(reply) => assert_eq!(reply.stdout.as_deref(), Some("flooded")),
        Err(error) => assert!(error.to_string().contains("it ran for more than"), "{error}"),
    }
}

#[tokio::test]
async fn a_guest_that_waits_for_ever_is_ended_too() {
    let stage = Stage::with(&["hostile", "polite"]);
    let adapters = stage.adapters_with(|settings| settings.host_functions.longest_call = Duration::from_secs(3));
    check_neighbour(&adapters, "nothing").await;
    let error = hook(&adapters, "hostile", "answer:sleep").await.expect_err("an end");
    assert!(error.to_string().contains("it waited for more than 3000 ms"), "{error}");
    check_neighbour(&adapters, "a long sleep").await;
}

#[tokio::test]
async fn resources_have_an_end() {
    let stage = Stage::with(&["hostile", "polite"]);
    stage.grant(&["roots.config"]);
    let adapters = stage.adapters();
    hook(&adapters, "hostile", "answer:roots config").await.expect_err("an end");
    check_neighbour(&adapters, "roots without end").await;
}

#[tokio::test]
async fn faults_in_a_row_lead_to_a_pause() {
    let stage = Stage::with(&["hostile"]);
    let adapters = stage.adapters();
    for _ in 0..5 {
        hook(&adapters, "hostile", "answer:trap").await.expect_err("a trap");
    }
    assert_eq!(hook(&adapters, "hostile", "answer:clock").await, Err(HarnessError::Busy(1000)));
}

async fn check_unloadable(name: &str, bytes: &[u8], expected: &str) {
    // What earlier runs have noted: after some tries it is not compiled any more.
    for note in std::fs::read_dir(common::target().join("cwasm")).into_iter().flatten().flatten() {
        if note.path().extension().is_some_and(|extension| extension == "failure") {
            let _gone = std::fs::remove_file(note.path());
        }
    }
    let stage = Stage::with(&["polite"]);
    stage.put(name, bytes);
    let adapters = stage.adapters();
    let told = match adapters.adapter(name).await {
        Ok(Some(_)) => "loaded".to_owned(),
        Ok(None) => adapters.states().await.1.iter().map(|unused| unused.why.clone()).collect(),
        Err(error) => error.to_string(),
    };
    assert!(told.contains(expected), "{name}: {told}");
    check_neighbour(&adapters, name).await;
}

#[tokio::test]
async fn what_is_no_component_is_told_in_one_sentence() {
    check_unloadable("hostile", b"garbage", "it is not a WebAssembly component").await;
    check_unloadable("hostile", b"\0asm\x0d\0\x01\0garbage", "it is not a component that can be run").await;
    check_unloadable("hostile", b"\0asm\x01\0\0\0", "it is a core module").await;
    check_unloadable("hostile", b"\0asm\x0d\0\x01\0", "does not fit the interface 0.1").await;
    let cut = common::component("hostile");
    check_unloadable("hostile", &cut[..cut.len() / 2], "it is cut short").await;
    check_unloadable("unnamed", b"\0asm\x0d\0\x01\0", "it has no manifest").await;
}

#[tokio::test]
async fn an_adapter_that_never_says_who_it_is_is_not_loaded() {
    let stuck = common::component("stuck");
    check_unloadable("stuck", &stuck, "failed in `describe`: it ran for more than").await;
}

#[tokio::test]
async fn an_adapter_says_what_its_manifest_says() {
    let other = common::component("polite");
    check_unloadable("stuck", &other, "says that it is for `polite`").await;
}
