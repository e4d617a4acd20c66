//! Passes over sessions: one at a time for each, and what happens after one fails.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::delivery::scheduler::{Passes, Turn};
use crate::sessions::SessionRef;

fn session(id: &str) -> SessionRef {
    SessionRef { harness: "fake".to_owned(), id: id.to_owned() }
}

/// The next event, in a word.
async fn next(passes: &mut Passes) -> String {
    match timeout(Duration::from_secs(60), passes.next()).await {
        Ok(Turn::Due) => "due".to_owned(),
        Ok(Turn::Ended(session, pass)) => format!("{} ended: {:?}", session.id, pass.expect("no fault")),
        Err(_) => "nothing".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_has_one_pass_at_a_time_and_one_that_ends_badly_costs_itself_alone() {
    let mut passes = Passes::default();
    assert_eq!(next(&mut passes).await, "nothing");
    assert!(passes.begin(session("s1"), async { panic!("an adapter's call") }));
    assert!(passes.begin(session("s2"), async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(Some(7))
    }));
    assert!(!passes.begin(session("s1"), async { Ok(None) }) && !passes.begin(session("s2"), async { Ok(None) }));
    assert_eq!(next(&mut passes).await, "s1 ended: Some(2000)");
    assert!(!passes.begin(session("s2"), async { Ok(None) }), "the other one goes on");
    assert!(passes.begin(session("s1"), async { Ok(None) }));
    assert_eq!(next(&mut passes).await, "s1 ended: None");
    assert_eq!(next(&mut passes).await, "s2 ended: Some(7)");
}

#[tokio::test(start_paused = true)]
async fn somebody_looks_again_once_and_at_the_earliest_time_that_was_wished() {
    let mut passes = Passes::default();
    for wait in [500, 200, 900] {
        passes.look_again_in(wait);
    }
    let began = Instant::now();
    assert_eq!(next(&mut passes).await, "due");
    assert_eq!(began.elapsed(), Duration::from_millis(200));
    assert_eq!(next(&mut passes).await, "nothing");
}
