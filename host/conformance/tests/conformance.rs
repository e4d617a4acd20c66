//! Each check of the conformance kit passes for a correct adapter and fails for one that is wrong in just that way.

#[path = "../../adapters/tests/common/components.rs"]
mod components;

use std::path::Path;

use adapters::Compiler;
use components::component;
use conformance::{CheckOutcome, ExamineError, Report, Subject, examine};

/// The marker in the component's bytes that is overwritten with a fault's name.
const MARKER: &str = "FAULT:none                              ";

async fn report(fault: &str) -> Report {
    report_of(fault, |manifest| manifest).await
}

/// The same with another manifest.
async fn report_of(fault: &str, change: impl Fn(String) -> String) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/faulty");
    let mut bytes = component("faulty");
    let at = bytes.windows(MARKER.len()).position(|window| window == MARKER.as_bytes()).expect("the marker");
    let chosen = format!("FAULT:{fault:<34}");
    assert_eq!(chosen.len(), MARKER.len(), "{fault}");
    bytes[at..at + chosen.len()].copy_from_slice(chosen.as_bytes());
    std::fs::write(folder.path().join("faulty.wasm"), bytes).expect("written");
    let manifest = std::fs::read_to_string(sources.join("adapter.toml")).expect("a manifest");
    std::fs::write(folder.path().join("faulty.toml"), change(manifest)).expect("written");
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a folder");
    let component = folder.path().join("faulty.wasm");
    let subject =
        Subject { component, fixtures: Some(sources.join("fixtures")), scratch, compiler: Compiler::InThisProcess };
    examine(&subject).await.unwrap_or_else(|error| panic!("{fault}: {error}"))
}

/// The checks that failed, each as `ability: name: what was got`.
fn failures(report: &Report) -> Vec<String> {
    let mut failures = Vec::new();
    for ability in &report.abilities {
        for check in &ability.checks {
            if let CheckOutcome::Failed { expected, got, hint } = &check.outcome {
                assert!(!expected.is_empty() && !got.is_empty() && !hint.is_empty(), "{}", check.name);
                failures.push(format!("{}: {}: {got}", ability.name, check.name));
            }
        }
    }
    failures
}

/// The fault makes the check fail, and nothing fails in another ability.
async fn check(fault: &str, expected: &str) {
    check_report(fault, &report(fault).await, expected);
}

/// The same for an adapter that may say nothing of its own.
async fn check_without_own_words(fault: &str, expected: &str) {
    check_report(fault, &report_of(fault, without_own_words).await, expected);
}

fn without_own_words(manifest: String) -> String {
    let changed = manifest.replace("own-words = true\n", "");
    assert_ne!(changed, manifest);
    changed
}

fn check_report(fault: &str, report: &Report, expected: &str) {
    let failed = failures(report);
    assert!(failed.iter().any(|failure| failure.starts_with(expected)), "{fault}: {failed:#?}");
    let (ability, _) = expected.split_once(':').expect("an ability and a check");
    let others: Vec<&String> = failed.iter().filter(|failure| !failure.starts_with(ability)).collect();
    assert!(others.is_empty(), "{fault}: {others:#?}");
    assert!(!report.passed, "{fault}");
}

#[tokio::test]
async fn an_adapter_that_is_right_passes() {
    let report = report("none").await;
    assert_eq!(failures(&report), [""; 0]);
    assert!(report.passed && report.costs.calls > 100);
}

#[tokio::test]
async fn answers_hold_the_hosts_texts_and_what_was_granted() {
    let report = report_of("none", without_own_words).await;
    assert_eq!(failures(&report), [""; 0]);
    let answered = "hooks: 1.0-turn: denied: the adapter `faulty` answered the hook with";
    check_without_own_words("adds-its-own-words", &format!("{answered} `stdout` =")).await;
    check_without_own_words("approves", &format!("{answered} `permission` = \"allow\"")).await;
    check("approves", &format!("{answered} `permission` = \"allow\"")).await;
}

#[tokio::test]
async fn identity_and_detection() {
    check("other-version", "identity: version: 9.9.9").await;
    check("sees-what-is-not-there", "identity: present: 1.0").await;
    check("misses-its-callers", "detection: 1.0-call: no session").await;
    check("believes-what-is-typed", "detection: an id that a model typed: session s1").await;
    check("breaks-on-strange-callers", "detection: strange callers: the adapter `faulty` failed in `detect`").await;
    check("lists-sessions-that-are-not-there", "list of sessions: discover: 1 sessions").await;
    check("knows-every-session", "list of sessions: activity: an unknown session is idle").await;
}

#[tokio::test]
async fn context_and_hooks() {
    check("rewords-the-protocol", "protocol: compaction: YOU ARE").await;
    check("takes-one-for-another", "hooks: 1.0-turn: session: somebody").await;
    check("loses-mail", "hooks: 1.0-turn: mail nowhere whole").await;
    check("cuts-mail", "hooks: 1.0-turn: mail nowhere whole").await;
    check("hides-that-it-shows-mail", "hooks: 1.0-turn: the mail is in the reply, and it says nothing").await;
    check("lets-every-edit-pass", "refused edits: 1.0-turn: refusal nowhere whole").await;
    check("answers-by-chance", "hooks: 1.0-turn: Reply").await;
    check("stops-the-harness", "hooks: 1.0-turn: it ends with 2").await;
    check("breaks-on-strange-payloads", "strange payloads: turn: the adapter `faulty` failed in `hook read`").await;
    check("answers-unknown-events-badly", "strange payloads: unknown events: it ends with 2").await;
}

#[tokio::test]
async fn deliveries() {
    check("forgets-its-route", "push: 1.0-post: it is not offered").await;
    check("offers-a-message-without-max-bytes", "push: 1.0-post: a message without max-bytes").await;
    check("cuts-messages", "push: 1.0-post: what came there: POST /take").await;
    check("claims-more-than-its-route", "push: 1.0-post: ").await;
    check("claims-what-nobody-answered", "push: 1.0-post with one that never answers: `accepted`").await;
    check("claims-what-was-refused", "push: 1.0-post with one that refuses: `accepted`").await;
    check("breaks-on-strange-hints", "push: routes: the adapter `faulty` failed in `routes`").await;
    check("takes-every-route", "push: an unknown route: notified").await;
}

#[tokio::test]
async fn installs() {
    check("installs-twice", "install: for the user, no settings: it would change settings.toml").await;
    check("leaves-something-behind", "install: for the user, no settings: `.faulty/settings.toml` is left").await;
    check("drops-comments", "install: for the user, with-comments: `.faulty/settings.toml` differs").await;
    check("edits-what-is-broken", "install: for the user, with-comments with a broken settings.toml").await;
    check("does-not-say-where", "install: for the user, with-comments with a broken settings.toml").await;
    check("never-likes-its-install", "install: for the user, no settings: it is not set up").await;
}

#[tokio::test]
async fn grants_and_costs() {
    check("keeps-quiet-about-grants", "with less: without origins.api: it did not work").await;
    check("breaks-when-denied", "with less: without origins.api: the adapter `faulty` failed in `deliver`").await;
    // On a machine that is slower at times it takes longer than a call may, and fails elsewhere too.
    let failed = failures(&report("takes-long").await);
    assert!(failed.iter().any(|failure| failure.starts_with("time and memory: the slowest call")), "{failed:#?}");
    check("takes-much", "time and memory: the largest call").await;
}

async fn check_unusable(bytes: &[u8], expected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("faulty.wasm");
    std::fs::write(&file, bytes).expect("written");
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).expect("a folder");
    let subject = Subject { component: file, fixtures: None, scratch, compiler: Compiler::InThisProcess };
    let error = examine(&subject).await.expect_err("it cannot be tested");
    let told = match &error {
        ExamineError::Unusable { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    };
    assert!(told.contains(expected), "{told}");
}

#[tokio::test]
async fn what_is_no_adapter_is_said_before_anything_is_tested() {
    check_unusable(b"garbage", "it is not a WebAssembly component").await;
    check_unusable(b"\0asm\x01\0\0\0", "it is a core module").await;
    check_unusable(&component("faulty"), "it has no manifest").await;
}
