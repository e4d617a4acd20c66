//! Host functions are limited per call and over all calls, and the guest is told.

mod common;

use adapters::Adapters;
use adapters::host_functions::rates::Bound;
use common::{Stage, hook};

/// Three times per call, five times in quick succession, one a second after that.
const TIGHT: Bound = Bound { per_call: 3, burst: 5, per_minute: 60 };

fn tight(stage: &Stage) -> Adapters {
    stage.adapters_with(|settings| {
        let rates = &mut settings.host_functions.rates;
        (rates.programs, rates.notes, rates.reads) = (TIGHT, TIGHT, TIGHT);
    })
}

/// Uses a host function up to its limit, in one call after another, on a clock that stands still.
async fn check(deed: &str, what: &str) {
    let stage = Stage::with(&["hostile"]);
    stage.grant(&["state", "roots.config", "programs.echo"]);
    let adapters = tight(&stage);
    let often = async || {
        let reply = hook(&adapters, "hostile", &format!("answer:often {deed}")).await.expect("an answer");
        reply.stdout.unwrap_or_default()
    };
    let enough = format!("3 Error::Failed(\"one call may use at most 3 {what}\")");
    assert_eq!(often().await, enough, "{deed}: the first call");
    assert_eq!(often().await, "2 Error::Busy(1000)", "{deed}: the second has what is left");
    assert_eq!(often().await, "0 Error::Busy(1000)", "{deed}: and then nothing is");
    // Another process, as each hook is one, has no more; and a removed adapter leaves nothing.
    let others = tight(&stage);
    let reply = hook(&others, "hostile", &format!("answer:often {deed}")).await.expect("an answer");
    assert_eq!(reply.stdout.unwrap_or_default(), "0 Error::Busy(1000)", "{deed}: in another process");
    others.forget("hostile").await.expect("forgotten");
    assert!(!stage.folder.path().join("rates/hostile").exists());
    let reply = hook(&others, "hostile", &format!("answer:often {deed}")).await.expect("an answer");
    assert_eq!(reply.stdout.unwrap_or_default(), "0 Error::Busy(1000)", "{deed}: a process that runs still counts");
}

#[tokio::test]
async fn programs_notes_and_reads_have_an_end_in_one_call_and_over_all() {
    check("program echo word", "runs of programs").await;
    check("note key", "writes of notes").await;
    check("open config", "reads of files").await;
}
