//! Running commands in sessions: only for agents that the user has allowed, at most once, and never between a session
//! and its user.

use std::sync::{Arc, Mutex};

use store::memory::Fault;

use super::{World, name};
use crate::asks::{AskKind, ConsentFor};
use crate::commands::{Command, Ended};
use crate::names::MessageId;
use crate::ports::consent::{Consent, Consents};
use crate::ports::driver::UserAnswer;
use crate::ports::harness::{HarnessError, Means};
use crate::sessions::{Activity, Session, SessionRef};
use crate::testing::{session_call, shell_call};
use crate::{Mesh, Order, Ran, Runner};

/// The user's consents, as a test writes them.
#[derive(Default)]
struct Allowed(Mutex<Vec<Consent>>);

impl Consents for Arc<Allowed> {
    fn given(&self) -> Result<Vec<Consent>, String> {
        Ok(self.0.lock().expect("unpoisoned").clone())
    }
}

/// Runs `/review` and `/slow`, and knows no other command.
#[derive(Default)]
struct Player {
    ran: Mutex<Vec<String>>,
    /// The outcomes of the next runs; if none is left, they succeed.
    outcomes: Mutex<Vec<Result<Ran, HarnessError>>>,
}

impl Runner for Player {
    async fn plan(&self, _: &Session, command: &Command) -> Result<Means, HarnessError> {
        match command.command.as_str() {
            "/review" | "/slow" => Ok(Means { name: "fake".to_owned(), when: vec![Activity::Idle] }),
            other => Err(HarnessError::Unsupported(format!("there is no {other}"))),
        }
    }

    async fn run(&self, _: &Session, command: &Command) -> Result<Ran, HarnessError> {
        self.ran.lock().expect("unpoisoned").push(command.line());
        if command.command.as_str() == "/slow" {
            tokio::time::sleep(std::time::Duration::from_secs(150)).await;
        }
        let ran = Ran { ended: Some(Ended::Done), said: "done".to_owned(), evidence: None };
        self.outcomes.lock().expect("unpoisoned").pop().unwrap_or(Ok(ran))
    }
}

struct Stage {
    world: World,
    allowed: Arc<Allowed>,
    player: Player,
}

impl Stage {
    /// `bob` is an idle session, and `alice` may run every command there.
    async fn new() -> Stage {
        let (mut world, allowed) = (World::new(), Arc::new(Allowed::default()));
        let mesh = World::mesh_over(&world.store, &world.machine, &world.harnesses, crate::Limits::default());
        let mesh = Arc::into_inner(mesh).expect("nobody else has it").with_consents(Arc::new(Arc::clone(&allowed)));
        world.mesh = Arc::new(mesh);
        world.hook("s1", "start").await;
        world.hook("s1", "stop").await;
        assert_eq!(world.register(&session_call("c1", "s1"), "bob").await, "bob new");
        world.register(&shell_call(None), "alice").await;
        let stage = Stage { world, allowed, player: Player::default() };
        stage.allow("alice");
        stage
    }

    fn allow(&self, sender: &str) {
        let consent = Consent { from: name(sender), command: None, to: None };
        self.allowed.0.lock().expect("unpoisoned").push(consent);
    }

    async fn ask(&self, from: Option<&str>, command: &str, argument: &str) -> MessageId {
        let caller = self.world.mesh.identify(&shell_call(from)).await.expect("identified");
        let (to, command) = ("bob".to_owned(), command.parse().expect("a command"));
        let order = Order { to, command, arguments: vec![argument.to_owned()], ttl: None };
        self.world.machine.pass(1);
        self.world.mesh.order(&caller, order).await.expect("asked").id
    }

    async fn pass(&self) -> Option<u64> {
        run(&self.world.mesh, &self.player).await
    }

    fn ran(&self) -> String {
        self.player.ran.lock().expect("unpoisoned").join(", ")
    }

    async fn tells(&self, id: MessageId) -> String {
        let command = self.world.mesh.command(id).await.expect("readable").expect("there");
        let now = crate::ports::machine::Machine::now(self.world.machine.as_ref());
        let by = command.run().map(|run| format!(" by {}", run.by)).unwrap_or_default();
        let waits = command.waits().map(|waits| format!(": {waits}")).unwrap_or_default();
        format!("{}{by}{waits}", command.standing(now).as_str())
    }
}

async fn run(mesh: &Mesh, player: &Player) -> Option<u64> {
    let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    mesh.run_commands(&name("bob"), &session, player).await.expect("the store is well")
}

#[tokio::test]
async fn a_sender_whom_the_person_has_allowed_has_a_command_run_once() {
    let stage = Stage::new().await;
    let id = stage.ask(Some("alice"), "/review", "src").await;
    assert_eq!(stage.pass().await, Some(0), "there may be another one");
    assert_eq!(stage.pass().await, None);
    assert_eq!((stage.ran(), stage.tells(id).await), ("/review src".to_owned(), "done by fake".to_owned()));
}

/// Asks for a command and makes one pass: it waits for this reason, and nothing is run.
async fn check(from: Option<&str>, did: &str, command: &str, argument: &str, expected: &str) {
    let stage = Stage::new().await;
    stage.world.register(&shell_call(None), "carol").await;
    stage.world.hook("s1", did).await;
    let id = stage.ask(from, command, argument).await;
    stage.pass().await;
    let told = stage.tells(id).await;
    assert!(told.starts_with("pending: ") && told.contains(expected), "{told}");
    assert_eq!(stage.ran(), "");
}

#[tokio::test]
async fn whatever_else_waits_says_for_what() {
    check(Some("carol"), "stop", "/review", "x", "`relay-mesh cmd allow carol /review --to bob`").await;
    check(None, "stop", "/review", "x", "it comes from `shell`, an anonymous command line").await;
    check(Some("alice"), "stop", "/review", "x\n/deploy", "a line break").await;
    check(Some("alice"), "stop", "/review", "\u{1b}[A", "another control character").await;
    check(Some("alice"), "stop", "/deploy", "x", "there is no /deploy; its agent can take it").await;
    check(Some("alice"), "prompt", "/review", "x", "`bob` is busy just now").await;
    check(Some("alice"), "ask", "/review", "x", "waits for its user").await;
    check(Some("alice"), "end", "/review", "x", "has no live session").await;
}

#[tokio::test]
async fn a_strangers_command_keeps_no_other_from_being_run_and_runs_once_it_is_allowed() {
    let stage = Stage::new().await;
    stage.world.register(&shell_call(None), "carol").await;
    let strange = stage.ask(Some("carol"), "/review", "first").await;
    stage.ask(Some("alice"), "/review", "second").await;
    while stage.pass().await.is_some() {}
    assert_eq!(stage.ran(), "/review second");
    assert!(stage.world.mesh.look_again().await.expect("readable").is_empty(), "nothing has changed");
    stage.allow("carol");
    let freed = stage.world.mesh.look_again().await.expect("readable");
    assert_eq!(freed.iter().map(|command| command.id).collect::<Vec<_>>(), [strange]);
    assert_eq!(stage.tells(strange).await, "pending", "nothing stands in its way any more");
    while stage.pass().await.is_some() {}
    assert_eq!(stage.ran(), "/review second, /review first");
}

#[tokio::test]
async fn a_strangers_command_becomes_a_question_and_the_answer_is_for_that_one_alone() {
    let stage = Stage::new().await;
    stage.world.register(&shell_call(None), "carol").await;
    let (first, second) =
        (stage.ask(Some("carol"), "/review", "first").await, stage.ask(Some("carol"), "/review", "second").await);
    stage.pass().await;
    stage.pass().await;
    let mesh = &stage.world.mesh;
    let asks = mesh.asks().await.expect("readable");
    let lines = asks.iter().map(|ask| match &ask.what {
        AskKind::Consent(ConsentFor::Command { line, .. }) => line.as_str(),
        AskKind::Consent(_) | AskKind::Approval(_) | AskKind::Question(_) | AskKind::HeldLoop(_) => "",
    });
    assert_eq!(lines.collect::<Vec<_>>(), ["/review first", "/review second"], "each is asked once");
    assert!(stage.tells(first).await.contains("`relay-mesh asks` shows the question"));
    mesh.answer_ask(asks[0].id, UserAnswer::Allow, "here").await.expect("answered");
    assert_eq!(stage.tells(first).await, "pending", "nothing stands in its way any more");
    mesh.answer_ask(asks[1].id, UserAnswer::Refuse("not now".to_owned()), "here").await.expect("answered");
    while stage.pass().await.is_some() {}
    assert_eq!(stage.ran(), "/review first");
    assert!(stage.tells(second).await.contains("the user of `bob` refused it: not now"));
    // It is no permission for the next one.
    stage.ask(Some("carol"), "/review", "third").await;
    stage.pass().await;
    assert_eq!((stage.ran(), mesh.asks().await.expect("readable").len()), ("/review first".to_owned(), 1));
    // Nobody has to answer for a command that nobody waits for.
    stage.world.machine.pass(3_600_000);
    assert_eq!(mesh.asks().await.expect("readable").len(), 0);
}

#[tokio::test]
async fn the_loop_guard_holds_commands_back_as_it_does_messages() {
    let stage = Stage::new().await;
    for number in 0..=30 {
        stage.ask(Some("alice"), "/review", &number.to_string()).await;
    }
    while stage.pass().await.is_some() {}
    assert_eq!(stage.ran().split(", ").count(), 30);
    let last = stage.ask(Some("alice"), "/review", "last").await;
    stage.pass().await;
    let told = stage.tells(last).await;
    assert!(told.contains("the loop guard holds it back: this sender woke this agent 30 times"), "{told}");
}

#[tokio::test]
async fn what_a_session_is_made_to_do_is_no_persons_word() {
    let stage = Stage::new().await;
    let id = stage.ask(Some("alice"), "/review", "x").await;
    stage.pass().await;
    let working_on = crate::delivery::chain::working_on(&stage.world.mesh.core, &name("bob")).await.expect("readable");
    assert_eq!(working_on.map(|trace| (trace.root, trace.hops)), Some((id, 0)));
}

#[tokio::test(start_paused = true)]
async fn whoever_is_killed_while_it_runs_leaves_an_end_that_nobody_knows() {
    let stage = Stage::new().await;
    let id = stage.ask(Some("alice"), "/slow", "x").await;
    let pass = stage.pass();
    tokio::select! {
        _ = pass => panic!("it takes longer"),
        () = tokio::time::sleep(std::time::Duration::from_secs(5)) => {}
    }
    assert_eq!(stage.tells(id).await, "running by fake");
    stage.world.machine.pass(60_000);
    assert_eq!(stage.tells(id).await, "unknown by fake");
    let other = stage.world.another_process();
    assert_eq!(run(&other.mesh, &stage.player).await, None, "nobody runs it again");
    assert_eq!(stage.ran(), "/slow x");
}

#[tokio::test(start_paused = true)]
async fn a_long_run_stays_known_for_as_long_as_somebody_runs_it() {
    let stage = Stage::new().await;
    let id = stage.ask(Some("alice"), "/slow", "x").await;
    let pass = stage.pass();
    tokio::pin!(pass);
    for _ in 0..12 {
        tokio::select! {
            biased;
            _ = &mut pass => break,
            () = tokio::time::sleep(std::time::Duration::from_secs(10)) => stage.world.machine.pass(10_000),
        }
        assert_eq!(stage.tells(id).await, "running by fake");
    }
    pass.await;
    assert_eq!(stage.tells(id).await, "done by fake");
}

#[tokio::test]
async fn each_end_is_told_as_it_was() {
    let stage = Stage::new().await;
    let ran = |ended| Ok(Ran { ended, said: "so it was".to_owned(), evidence: None });
    for (outcome, expected) in [
        (ran(Some(Ended::Failed)), "failed by fake"),
        (ran(None), "unknown by fake"),
        (Err(HarnessError::Failed("it is not there".to_owned())), "failed by fake"),
        (Err(HarnessError::Busy(700)), "pending"),
    ] {
        stage.player.outcomes.lock().expect("unpoisoned").push(outcome);
        let id = stage.ask(Some("alice"), "/review", "x").await;
        stage.pass().await;
        assert_eq!(stage.tells(id).await, expected);
    }
    assert_eq!(stage.pass().await, Some(0), "what was not begun is run after all");
}

#[tokio::test]
async fn a_command_that_a_failed_write_kept_from_beginning_is_run_by_the_next_pass() {
    for nth in 1..=4 {
        let stage = Stage::new().await;
        let id = stage.ask(Some("alice"), "/review", "x").await;
        let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
        stage.world.store.fail_at(nth, Fault::Fail);
        let passed = stage.world.mesh.run_commands(&name("bob"), &session, &stage.player).await;
        if passed.is_err() && stage.ran().is_empty() {
            assert_eq!(stage.tells(id).await, "pending", "write {nth}");
            stage.pass().await;
        }
        assert_eq!(stage.ran(), "/review x", "write {nth}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_those_who_race_to_run_a_command_one_does() {
    let stage = Arc::new(Stage::new().await);
    for number in 0..10 {
        stage.ask(Some("alice"), "/review", &number.to_string()).await;
    }
    let racers: Vec<_> = (0..4)
        .map(|_| {
            let stage = Arc::clone(&stage);
            tokio::spawn(async move { while stage.pass().await.is_some() {} })
        })
        .collect();
    for racer in racers {
        racer.await.expect("no panic");
    }
    let mut ran: Vec<String> = stage.ran().split(", ").map(str::to_owned).collect();
    ran.sort();
    let expected: Vec<String> = (0..10).map(|number| format!("/review {number}")).collect();
    assert_eq!(ran, expected, "each is run once");
}
