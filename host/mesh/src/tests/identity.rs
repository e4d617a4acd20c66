//! Identity: names are stable, are given back to their owners, and no agent speaks for another.

use store::Store;

use super::{World, draft, name};
use crate::ports::candidate::Candidate;
use crate::ports::harness::Harness;
use crate::sessions::{Caller, Certainty, ConnectionId, Evidence, SessionRef, Ticket, Transport};
use crate::testing::{FakeHarness, call, session_call, shell_call};
use crate::{BindError, IdentifyError, Registration};

#[tokio::test]
async fn registering_again_gives_the_same_agent_back() {
    let world = World::new();
    assert_eq!(world.register(&call("c1"), "alice").await, "alice new");
    assert_eq!(world.register(&call("c1"), "alice").await, "alice same");
    assert_eq!(world.register(&call("c1"), "zoe").await, "alice same");
    assert_eq!(world.register(&session_call("c2", "s1"), "bob").await, "bob new");
    assert_eq!(world.register(&session_call("c3", "s1"), "bob").await, "bob same");
    assert_eq!(world.register(&shell_call(None), "carol").await, "carol new");
    assert_eq!(world.register(&shell_call(None), "carol").await, "carol reclaimed");
}

#[tokio::test]
async fn a_taken_name_gets_a_number() {
    let world = World::new();
    world.register(&call("c1"), "alice").await;
    assert_eq!(world.register(&call("c2"), "alice").await, "alice-2 numbered");
    assert_eq!(world.register(&session_call("c3", "s1"), "alice").await, "alice-3 numbered");
    assert_eq!(world.register(&shell_call(None), "alice").await, "alice-4 numbered");
}

#[tokio::test]
async fn twenty_that_want_one_name_at_once_get_twenty_names() {
    let world = std::sync::Arc::new(World::new());
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let world = std::sync::Arc::clone(&world);
        tasks.spawn(async move { world.register(&call(&format!("c{number}")), "alice").await });
    }
    let names: std::collections::BTreeSet<String> = tasks
        .join_all()
        .await
        .into_iter()
        .map(|outcome| outcome.split(' ').next().expect("a name").to_owned())
        .collect();
    assert_eq!(names.len(), 20, "{names:?}");
}

#[tokio::test]
async fn a_dead_holders_name_is_reclaimed_unless_mail_waits_for_it() {
    let world = World::new();
    world.joined("alice").await;
    world.joined("bob").await;
    world.say("bob", "for the old bob").await;
    for agent in ["alice", "bob"] {
        world.mesh.disconnect(&ConnectionId(format!("connection-of-{agent}"))).await.expect("disconnected");
    }
    let mut stranger = call("other");
    stranger.caller.workdir = Some("/elsewhere".to_owned());
    assert_eq!(world.register(&stranger, "alice").await, "alice reclaimed");
    let mut stranger = call("another");
    stranger.caller.workdir = Some("/elsewhere".to_owned());
    assert_eq!(world.register(&stranger, "bob").await, "bob-2 numbered");
    // The same program in the same project counts as the same agent come back.
    assert_eq!(world.register(&call("again"), "bob").await, "bob reclaimed");
    assert_eq!(world.fetch("bob").await, "for the old bob");
}

#[tokio::test]
async fn a_closed_session_that_resumes_is_the_same_agent_and_finds_its_mail() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    world.hook("s1", "end").await;
    world.say("alice", "while you were away").await;
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 numbered");
    world.hook("s1", "start").await;
    assert_eq!(world.shown("s1", "prompt").await, "while you were away");
    assert_eq!(world.register(&session_call("c3", "s1"), "alice").await, "alice same");
}

#[tokio::test]
async fn a_cleared_session_keeps_its_agent_under_its_new_id() {
    let world = World::new();
    world.hook("old", "start").await;
    world.register(&session_call("c1", "old"), "alice").await;
    world.hook("old", "end").await;
    world.hook("new", "clear:old").await;
    assert_eq!(world.register(&session_call("c1", "new"), "alice").await, "alice same");
    world.say("alice", "still here").await;
    assert_eq!(world.shown("new", "stop").await, "still here");
    assert_eq!(world.shown("old", "stop").await, "");
}

#[tokio::test]
async fn a_subagent_speaks_for_its_root_until_it_registers() {
    let world = World::new();
    world.hook("root", "start").await;
    world.register(&session_call("c1", "root"), "alice").await;
    let subagent = session_call("c1", "sub<root");
    // Whatever the connection says, a subagent's own registration counts.
    assert_eq!(world.register(&subagent, "helper").await, "helper new");
    assert_eq!(world.register(&subagent, "helper").await, "helper same");
    assert_eq!(world.register(&session_call("c1", "root"), "alice").await, "alice same");
}

#[tokio::test]
async fn the_command_line_speaks_only_for_its_own() {
    let world = World::new();
    world.joined("alice").await;
    world.register(&shell_call(None), "carol").await;
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "dora").await;
    let identify = async |call| world.mesh.identify(&call).await;
    assert!(
        matches!(identify(shell_call(Some("alice"))).await, Err(IdentifyError::NotYours(who)) if who == name("alice"))
    );
    assert!(matches!(identify(shell_call(Some("dora"))).await, Err(IdentifyError::NotYours(_))));
    assert!(matches!(identify(shell_call(Some("nobody"))).await, Err(IdentifyError::Unknown(_))));
    assert_eq!(identify(shell_call(Some("carol"))).await.expect("carol").agent(), Some(&name("carol")));
    let mut inside = shell_call(Some("dora"));
    inside.caller.environment = vec![("FAKE_SESSION".to_owned(), "s1".to_owned())];
    assert_eq!(identify(inside.clone()).await.expect("dora").agent(), Some(&name("dora")));
    inside.claims_to_be = None;
    assert_eq!(identify(inside).await.expect("dora").agent(), Some(&name("dora")));
    let sent = world.send(&shell_call(None), "alice", draft("hello")).await.expect("sent");
    let person = identify(shell_call(None)).await.expect("a person");
    let status = world.mesh.message_status(&person, sent.id).await.expect("known");
    assert!(status.message.from.is_shell());
}

#[tokio::test]
async fn a_ticket_speaks_for_its_session_and_a_forged_one_for_nobody() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    let ticket = world.mesh.ticket(&session).await.expect("a ticket");
    let mut bearer = call("elsewhere");
    bearer.ticket = Some(ticket.clone());
    let caller = world.mesh.identify(&bearer).await.expect("identified");
    assert_eq!((caller.agent(), caller.evidence()), (Some(&name("alice")), Evidence::Ticket));
    for forged in [
        Ticket { session: SessionRef { id: "s2".to_owned(), ..session.clone() }, ..ticket.clone() },
        Ticket { proof: "00".repeat(32), ..ticket.clone() },
        Ticket { proof: "ü".to_owned(), ..ticket.clone() },
        Ticket { proof: String::new(), ..ticket.clone() },
    ] {
        bearer.ticket = Some(forged);
        assert!(matches!(world.mesh.identify(&bearer).await, Err(IdentifyError::Ticket(_))));
    }
    // The key outlives the process that made it.
    world.another_process().mesh.check_ticket(&ticket).await.expect("valid");
}

#[tokio::test]
async fn a_ticket_beats_the_certainty_of_another_harness() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    let theirs = SessionRef { harness: "other".to_owned(), id: "x".to_owned() };
    // The fake harness is certain that this is its session.
    let mut bearer = session_call("c2", "s1");
    bearer.ticket = Some(world.mesh.ticket(&theirs).await.expect("a ticket"));
    let caller = world.mesh.identify(&bearer).await.expect("identified");
    assert_eq!((caller.session(), caller.evidence()), (Some(&theirs), Evidence::Ticket));
    assert_eq!(caller.agent(), None);
    // Within its own harness the call itself says more than the ticket.
    let ours = SessionRef { harness: "fake".to_owned(), id: "s0".to_owned() };
    bearer.ticket = Some(world.mesh.ticket(&ours).await.expect("a ticket"));
    let caller = world.mesh.identify(&bearer).await.expect("identified");
    assert_eq!((caller.agent(), caller.evidence()), (Some(&name("alice")), Evidence::Call));
}

#[tokio::test]
async fn nothing_is_certain_on_a_command_line_or_of_a_foreign_caller() {
    let harness: std::sync::Arc<dyn Harness> = std::sync::Arc::new(FakeHarness::default());
    let own = Candidate::owner(harness);
    let foreign = Candidate { owns_match: false, ..own.clone() };
    let seen = session_call("c1", "s1").caller;
    let typed = Caller { transport: Transport::CommandLine, ..seen.clone() };
    for (candidate, seen, expected) in [
        (&own, &seen, Certainty::Certain),
        (&own, &typed, Certainty::Inherited),
        (&foreign, &seen, Certainty::Inherited),
        (&foreign, &typed, Certainty::Inherited),
    ] {
        let found = candidate.detect(seen).await.expect("it answers").expect("a session");
        assert_eq!(found.certainty, expected, "{seen:?}");
    }
}

#[tokio::test]
async fn naming_a_session_without_proof_binds_nothing() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    world.register(&call("c2"), "mallory").await;
    let mallory = world.mesh.identify(&call("c2")).await.expect("identified");
    let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    let ticket = world.mesh.ticket(&session).await.expect("a ticket");
    let bind = async |named: &SessionRef, ticket| world.mesh.bind(&mallory, Some(named.clone()), ticket).await;
    assert!(matches!(bind(&session, None).await, Err(BindError::Unproven(_))));
    assert!(matches!(bind(&session, Some(ticket)).await, Err(BindError::Taken { .. })));
    let unknown = SessionRef { harness: "nobody".to_owned(), id: "s1".to_owned() };
    assert!(matches!(bind(&unknown, None).await, Err(BindError::UnknownHarness(_))));
    assert!(matches!(world.mesh.bind(&mallory, None, None).await, Err(BindError::Nothing)));
}

#[tokio::test]
async fn a_client_with_neither_session_nor_connection_is_known_by_its_key() {
    let world = World::new();
    let mut stateless = call("");
    stateless.connection = None;
    let caller = world.mesh.identify(&stateless).await.expect("identified");
    let registration = Registration { name: Some(name("alice")), ..Registration::default() };
    let key = world.mesh.register(&caller, registration).await.expect("registered").key.expect("a key");
    stateless.key = Some(key.clone());
    let caller = world.mesh.identify(&stateless).await.expect("identified");
    assert_eq!((caller.agent(), caller.evidence()), (Some(&name("alice")), Evidence::Key));
    for wrong in ["", "alice", "alice.", "alice.00", "bob.00"] {
        stateless.key = Some(wrong.to_owned());
        assert!(matches!(world.mesh.identify(&stateless).await, Err(IdentifyError::Key)), "{wrong}");
    }
    // Only its digest is stored.
    let kept = world.store.get(&crate::storage::keys::meta(&name("alice"))).await.expect("read").expect("there");
    assert!(!String::from_utf8_lossy(&kept.bytes).contains(key.split_once('.').expect("two parts").1));
}

#[tokio::test]
async fn on_a_connection_that_several_sessions_share_nobody_speaks_without_evidence() {
    let mut world = World::new();
    world.harnesses = crate::testing::FakeHarnesses::of_many_sessions_per_connection();
    let world = world.another_process();
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    assert_eq!(world.register(&session_call("c1", "s2"), "bob").await, "bob new");
    let who = async |call| world.mesh.identify(&call).await.expect("identified").agent().map(ToString::to_string);
    assert_eq!(who(session_call("c1", "s1")).await.as_deref(), Some("alice"));
    assert_eq!(who(session_call("c1", "s3")).await, None, "another session of the same window");
    assert_eq!(who(call("c1")).await, None, "a call that shows nothing");
}

#[tokio::test]
async fn a_subagent_that_shows_a_ticket_registers_an_agent_of_its_own() {
    let world = World::new();
    let by_ticket = async |session: &str| {
        world.hook(session, "tool").await;
        let session = crate::sessions::SessionRef { harness: "fake".to_owned(), id: session.to_owned() };
        let ticket = world.mesh.ticket(&session).await.expect("a ticket");
        crate::sessions::Call { ticket: Some(ticket), ..call("c1") }
    };
    assert_eq!(world.register(&by_ticket("s1").await, "alice").await, "alice new");
    assert_eq!(world.register(&by_ticket("s1.helper").await, "helper").await, "helper new");
    assert_eq!(world.register(&by_ticket("s1").await, "alice").await, "alice same");
}
