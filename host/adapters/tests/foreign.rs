//! What belongs to another harness: an adapter is asked about its callers only with a grant, waited for only briefly, and
//! sees none of what they write.

mod common;

use adapters::manifest::Manifest;
use common::{Stage, TestHookHost, component};
use mesh::ports::harness::{Harness as _, Harnesses as _, HookCall, HookEvent};
use mesh::sessions::{Caller, Certainty, Transport};

fn caller(client: Option<&str>, variables: &[&str]) -> Caller {
    Caller {
        transport: if client.is_some() { Transport::Stdio } else { Transport::CommandLine },
        client_name: client.map(str::to_owned),
        client_version: None,
        meta: Some("s1".to_owned()),
        headers: Vec::new(),
        tool: Some("send_message".to_owned()),
        arguments: Some("{\"session_id\":\"typed\"}".to_owned()),
        environment: variables.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect(),
        workdir: None,
    }
}

/// The polite adapter, which is certain of everything that it is asked about, with other matches.
fn stage(matches: &str) -> Stage {
    let stage = Stage::with(&["polite"]);
    let file = stage.plugins().join("polite/adapter.toml");
    let text = std::fs::read_to_string(&file).expect("a manifest");
    let head = text.split("[matches]").next().expect("a head");
    std::fs::write(file, format!("{head}[matches]\n{matches}\n")).expect("written");
    stage
}

/// Who is asked about a caller, in order; and whether the polite adapter may be certain.
async fn asked(stage: &Stage, seen: &Caller) -> (Vec<String>, Option<Certainty>) {
    let found = stage.adapters().candidates(seen).await;
    let names = found.iter().map(|one| one.harness.about().harness.clone()).collect();
    let polite = found.iter().find(|one| one.harness.about().harness == "polite");
    let certainty = match polite {
        Some(polite) => polite.detect(seen).await.expect("it answers").map(|detection| detection.certainty),
        None => None,
    };
    (names, certainty)
}

#[tokio::test]
async fn callers_of_another_harness_are_not_an_adapters_without_a_grant() {
    for (matches, client, variables, grant) in [
        ("clients = [\"claude-code\"]", Some("claude-code"), &[][..], "clients.claude-code"),
        ("clients = [\"*\"]", Some("claude-code"), &[], "clients.*"),
        ("environment = [\"CLAUDECODE\"]", None, &["CLAUDECODE"], "variables.CLAUDECODE"),
        ("environment = [\"PATH\"]", None, &["PATH", "CODEX_THREAD_ID"], "variables.PATH"),
        ("environment = [\"PATH\"]", Some("unheard-of"), &["PATH"], "variables.PATH"),
    ] {
        let stage = stage(matches);
        stage.grant(&["state"]);
        let seen = caller(client, variables);
        let (names, certainty) = asked(&stage, &seen).await;
        assert!(!names.contains(&"polite".to_owned()) && certainty.is_none(), "{matches}: {names:?}");
        // With the grant it is asked, after the owner, and is certain of nothing.
        stage.grant(&["state", grant]);
        let (names, certainty) = asked(&stage, &seen).await;
        assert_eq!(names.last().map(String::as_str), Some("polite"), "{matches}: {names:?}");
        assert_eq!(certainty, Some(Certainty::Inherited), "{matches}");
    }
    // A client that is another adapter's is not asked about by a variable of the shell from which it was started.
    let stage = stage("environment = [\"POLITE_SESSION\"]");
    let seen = caller(Some("claude-code"), &["POLITE_SESSION"]);
    assert_eq!(asked(&stage, &seen).await.0, ["claude-code"]);
    // What is its own is its own.
    let seen = caller(Some("unheard-of"), &["POLITE_SESSION"]);
    assert_eq!(asked(&stage, &seen).await, (vec!["polite".to_owned()], Some(Certainty::Certain)));
}

#[tokio::test]
async fn an_adapter_that_sleeps_is_not_waited_for() {
    let stage = Stage::with(&["hostile"]);
    let seen = Caller { meta: Some("sleep".to_owned()), ..caller(Some("hostile-client"), &[]) };
    let found = stage.adapters().candidates(&seen).await;
    let error = found[0].detect(&seen).await.expect_err("it sleeps for an hour");
    assert!(error.to_string().contains("did not say within 250 ms"), "{error}");
}

#[tokio::test]
async fn what_callers_write_is_not_shown_to_adapters_without_a_grant() {
    // This one takes a session's id from the arguments of a call.
    let fault = "FAULT:believes-what-is-typed";
    let mut bytes = component("faulty");
    let at = bytes.windows(10).position(|part| part == b"FAULT:none").expect("the marker");
    bytes[at..at + fault.len()].copy_from_slice(fault.as_bytes());
    let stage = Stage::with(&["faulty"]);
    stage.put("faulty", &bytes);
    let asks = Manifest::parse(&std::fs::read_to_string(stage.plugins().join("faulty/adapter.toml")).expect("read"));
    assert!(asks.expect("a manifest").requests.arguments, "its manifest requests them");
    let seen = Caller { meta: None, ..caller(Some("faulty-client"), &[]) };
    for (grants, expected) in [(&["state"][..], None), (&["state", "arguments"], Some("typed"))] {
        stage.grant(grants);
        let adapter = stage.adapters().adapter("faulty").await.expect("loaded").expect("known");
        let found = adapter.detect(&seen).await.expect("an answer").map(|detection| detection.session.id);
        assert_eq!(found.as_deref(), expected, "{grants:?}");
    }
}

/// Whoever is below a session's process is taken for its agent: so nobody names the user's terminal, or what started all.
#[tokio::test]
async fn a_session_has_only_a_process_that_shows_itself() {
    let stage = Stage::with(&["polite"]);
    stage.grant(&["state", "answers.context", "answers.refuse", "answers.stop", "answers.own-words"]);
    let adapter = stage.adapters().adapter("polite").await.expect("loaded").expect("known");
    let shown: Vec<u32> = processes::ancestors_in_session().iter().map(|process| process.pid).collect();
    let strange = [1, std::process::id(), 4_000_000];
    for process in strange.iter().chain(&shown) {
        let payload = format!("s@{process}");
        let expected = Some(*process).filter(|process| shown.contains(process));
        let call =
            HookCall { name: "Stop".to_owned(), payload: payload.clone(), environment: Vec::new(), process: None };
        let mut host = TestHookHost::default();
        adapter.hook(&call, &mut host).await.expect("an answer");
        let reading = host.read.expect("a reading");
        assert_eq!(reading.speaker.and_then(|speaker| speaker.process), expected, "{process}");
        let HookEvent::Alive(alive) = &reading.events[0] else { panic!("{:?}", reading.events) };
        assert_eq!(alive.process, expected, "{process}");
        for (transport, expected) in [(Transport::Stdio, expected), (Transport::Http, None)] {
            let seen = Caller { meta: Some(payload.clone()), transport, ..caller(Some("polite-client"), &[]) };
            let found = adapter.detect(&seen).await.expect("an answer").expect("a session");
            assert_eq!(found.session.process, expected, "{process} {transport:?}");
        }
    }
}
