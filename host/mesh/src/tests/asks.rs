//! Questions to the user: asked once, answered once, gone when nobody waits for them.

use store::memory::Fault;

use super::{World, name};
use crate::agents::Presence;
use crate::asks::{AskKind, AskOutcome, AskStatus, AskedBy, ConsentFor, HeldLoop, LONGEST_QUESTION, NewAsk};
use crate::driven::WantedAgent;
use crate::names::MessageId;
use crate::ports::driver::{Operation, UserAnswer};
use crate::ports::machine::Machine as _;
use crate::{AnswerError, Cleanup, DryRun, Limits, RecordKind, Scope};

fn question(text: &str) -> NewAsk {
    let by = AskedBy { agent: Some(name("alice")), ..AskedBy::default() };
    NewAsk::new(by, AskKind::Question(text.to_owned()))
}

fn approval(line: &str) -> NewAsk {
    NewAsk { what: AskKind::Approval(Operation::Command(line.to_owned())), ..question("") }
}

fn text(words: &str) -> UserAnswer {
    UserAnswer::Fill(words.into())
}

impl World {
    async fn asks(&self, new: NewAsk) -> MessageId {
        self.mesh.ask(new).await.expect("asked").id
    }

    /// What an answer gets: the status, or the error.
    async fn answers(&self, id: MessageId, answer: UserAnswer, via: &str) -> String {
        match self.mesh.answer_ask(id, answer, via).await {
            Ok(ask) => ask.status(self.machine.now()).as_str().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn open(&self) -> usize {
        self.mesh.asks().await.expect("readable").len()
    }
}

#[tokio::test]
async fn the_first_answer_wins_and_the_second_hears_of_it() {
    let world = World::new();
    let id = world.asks(approval("rm -rf target")).await;
    let other = world.another_process();
    assert_eq!(world.answers(id, UserAnswer::Allow, "in a terminal").await, "answered");
    assert_eq!(
        other.answers(id, UserAnswer::Refuse("no".to_owned()), "in another").await,
        format!("question `{id}` has been answered already: `allow`, in a terminal")
    );
    assert_eq!(world.mesh.wait_for_answer(id).await.expect("readable"), AskOutcome::Answered(UserAnswer::Allow));
    assert_eq!(world.open().await, 0);
}

#[tokio::test]
async fn of_two_answers_at_once_exactly_one_counts() {
    for _ in 0..20 {
        let world = World::new();
        let id = world.asks(approval("make")).await;
        let answers = (0..4).map(|number| {
            let other = world.another_process();
            tokio::spawn(
                async move { other.mesh.answer_ask(id, UserAnswer::Refuse(number.to_string()), "x").await.is_ok() },
            )
        });
        let mut won = 0;
        for answer in answers.collect::<Vec<_>>() {
            won += usize::from(answer.await.expect("no panic"));
        }
        assert_eq!(won, 1);
    }
}

#[tokio::test]
async fn whoever_waits_hears_the_answer() {
    let world = World::new();
    let id = world.asks(question("Which port?")).await;
    let other = world.another_process();
    let waiting = tokio::spawn(async move { other.mesh.wait_for_answer(id).await.expect("readable") });
    tokio::task::yield_now().await;
    world.answers(id, text("8080"), "here").await;
    assert_eq!(waiting.await.expect("no panic"), AskOutcome::Answered(text("8080")));
}

#[tokio::test]
async fn what_nobody_answers_is_refused_and_not_cancelled() {
    let world = World::new();
    let id = world.asks(NewAsk { patience: Some(60_000), ..question("Which port?") }).await;
    world.machine.pass(59_999);
    assert_eq!(world.open().await, 1);
    world.machine.pass(1);
    assert_eq!(world.mesh.wait_for_answer(id).await.expect("readable"), AskOutcome::Expired);
    let late = world.answers(id, text("8080"), "here").await;
    assert!(late.contains("no answer came in time"), "{late}");
    let id = world.asks(question("Which host?")).await;
    world.machine.pass(10 * 60_000);
    assert_eq!(world.mesh.wait_for_answer(id).await.expect("readable"), AskOutcome::Expired, "ten minutes by default");
}

#[tokio::test]
async fn what_was_settled_elsewhere_takes_no_answer_and_settling_twice_is_no_error() {
    let world = World::new();
    let id = world.asks(question("Which port?")).await;
    for _ in 0..2 {
        world.mesh.settle_ask(id, "it was answered in Codex").await.expect("settled");
    }
    assert_eq!(
        world.answers(id, text("1"), "here").await,
        format!("question `{id}` is gone: it was answered in Codex")
    );
    assert_eq!(world.mesh.wait_for_answer(id).await.expect("readable"), AskOutcome::Settled);
    let unknown: MessageId = "01JD8Z3K5V0000000000000000".parse().expect("an id");
    world.mesh.settle_ask(unknown, "gone").await.expect("no error");
    assert!(matches!(world.mesh.answer_ask(unknown, text("1"), "").await, Err(AnswerError::Unknown(_))));
    assert_eq!(world.mesh.wait_for_answer(unknown).await.expect("readable"), AskOutcome::Settled);
}

#[tokio::test]
async fn the_same_question_asked_again_is_the_same_ask() {
    let world = World::new();
    let again = || NewAsk { same_as: Some("codex s1 q7".to_owned()), ..approval("make") };
    let id = world.asks(again()).await;
    assert_eq!(world.another_process().asks(again()).await, id);
    assert_eq!(world.open().await, 1);
    assert_ne!(world.asks(NewAsk { same_as: Some("codex s1 q8".to_owned()), ..approval("make") }).await, id);
    world.answers(id, UserAnswer::Allow, "here").await;
    assert_eq!(world.asks(again()).await, id, "it has its answer already");
    assert_eq!(world.mesh.ask_record(id).await.expect("readable").expect("kept").answer(), Some(&UserAnswer::Allow));
    // What was settled because its asker had gone is asked anew.
    let other = NewAsk { same_as: Some("q9".to_owned()), ..approval("make") };
    let first = world.asks(other.clone()).await;
    world.mesh.settle_ask(first, "gone").await.expect("settled");
    world.machine.pass(1);
    assert_ne!(world.asks(other).await, first);
}

#[tokio::test]
async fn a_question_is_settled_when_the_process_that_asked_has_ended() {
    let world = World::new();
    world.machine.start(7);
    let process = world.machine.process(7);
    let id = world.asks(NewAsk { process, ..question("Which port?") }).await;
    // From another PID namespace nobody can tell that it has ended.
    world.machine.kill(7);
    world.machine.enter_space(2);
    assert_eq!(world.open().await, 1);
    world.machine.enter_space(1);
    let gone = world.answers(id, text("1"), "here").await;
    assert!(gone.contains("the process that asked has ended"), "{gone}");
    assert_eq!(world.open().await, 0);
    let ask = world.mesh.ask_record(id).await.expect("readable").expect("kept");
    assert_eq!(ask.status(world.machine.now()), AskStatus::Settled);
}

#[tokio::test]
async fn an_answer_that_is_not_offered_changes_nothing() {
    let world = World::new();
    let choices = vec![("red".to_owned(), "Red".to_owned()), ("blue".to_owned(), "Blue".to_owned())];
    let id = world.asks(NewAsk { choices, ..question("Which?") }).await;
    for (answer, typed) in [
        (UserAnswer::Choose("green".to_owned()), "green"),
        (UserAnswer::Allow, "allow"),
        (text("red or so"), "red or so"),
        (UserAnswer::Stop, "stop"),
    ] {
        assert_eq!(world.answers(id, answer, "").await, format!("question `{id}` does not offer `{typed}`"));
    }
    assert_eq!(world.answers(id, UserAnswer::Choose("blue".to_owned()), "").await, "answered");
    let id = world.asks(question("Which?")).await;
    let refused = world.answers(id, text("\u{1b}[2J"), "").await;
    assert_eq!(refused, "the answer holds the control character U+001B");
    assert_eq!(world.open().await, 1);
}

#[tokio::test]
async fn what_is_no_question_is_not_stored() {
    let world = World::new();
    let refused = async |new: NewAsk| world.mesh.ask(new).await.expect_err("refused").to_string();
    assert_eq!(refused(question(" \n")).await, "the question is empty");
    let long = "x".repeat(1_000_000);
    assert_eq!(
        refused(question(&long)).await,
        format!("the question has 1000000 bytes and may have {LONGEST_QUESTION}")
    );
    assert_eq!(refused(question("a\u{1b}[2Jb")).await, "the question holds the control character U+001B");
    assert_eq!(refused(question("a\rb")).await, "the question holds the control character U+000D");
    let numbered = |most: usize| (0..most).map(|n| (n.to_string(), String::new())).collect();
    assert_eq!(
        refused(NewAsk { choices: numbered(21), ..question("?") }).await,
        "the question has 21 choices and may have 20"
    );
    let twice = vec![("a".to_owned(), String::new()), ("a".to_owned(), String::new())];
    assert!(refused(NewAsk { choices: twice, ..question("?") }).await.starts_with("`a` is no choice"));
    for patience in [0, 999, 24 * 3_600_000 + 1] {
        let error = refused(NewAsk { patience: Some(patience), ..question("?") }).await;
        assert!(error.starts_with("a question can wait between"), "{error}");
    }
    assert_eq!(world.mesh.all_asks().await.expect("readable").len(), 0);
    // A harness's command is taken as it is, and shown escaped.
    world.asks(approval("printf '\u{1b}[2J'\nrm x")).await;
    for number in 0..19 {
        world.asks(question(&number.to_string())).await;
    }
    assert_eq!(refused(question("one more")).await, "20 questions of this asker are open, and no more can be");
}

#[tokio::test]
async fn an_id_is_found_by_its_beginning() {
    let world = World::new();
    let first = world.asks(question("1")).await.to_string();
    let second = world.asks(question("2")).await.to_string();
    let find = async |typed: &str| match world.mesh.find_ask(typed).await {
        Ok(ask) => ask.id.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(find(&second[..20].to_lowercase()).await, second);
    let ambiguous = find(&first[..10]).await;
    assert!(ambiguous.contains(&first) && ambiguous.contains(&second), "{ambiguous}");
    assert_eq!(find("01JD8Z3K").await, "no question to the user has the id `01JD8Z3K`");
    assert!(find("x").await.contains("is not an id"));
}

#[tokio::test]
async fn after_a_year_no_more_is_kept_than_after_a_day() {
    let world = World::new();
    let mut kept = Vec::new();
    for day in 0..365 {
        for number in 0..3_usize {
            let id = world.asks(question(&format!("{day}.{number}"))).await;
            if number > 0 {
                world.answers(id, text("yes"), "here").await;
            }
        }
        world.machine.pass(24 * 3_600_000);
        let cleanup: Cleanup = world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleaned up");
        let asks = cleanup.tally.amounts.get(&RecordKind::Asks).map_or(0, |amount| amount.count);
        assert!(asks <= 3, "{asks}");
        kept.push(world.mesh.all_asks().await.expect("readable").len());
    }
    assert_eq!(kept.iter().max(), Some(&1), "the one that expired ten minutes after it was asked");
    assert_eq!(kept.last(), kept.first());
}

#[tokio::test]
async fn a_held_loop_is_asked_once_for_each_chain() {
    let world = World::new();
    world.joined("bob").await;
    let chain = |text: &str| text.parse::<MessageId>().expect("an id");
    let held = |root| {
        let what = AskKind::HeldLoop(HeldLoop {
            to: name("bob"),
            from: name("alice"),
            chain: root,
            messages: 25,
            why: "25 messages since the user's last prompt".to_owned(),
        });
        NewAsk { same_as: Some("loop:bob".to_owned()), ..NewAsk::new(AskedBy::default(), what) }
    };
    let (one, two) = (chain("01JD8Z3K5V0000000000000000"), chain("01JD8Z3K5V0000000000000001"));
    let first = world.asks(held(one)).await;
    assert_eq!(world.asks(held(two)).await, first, "one at a time");
    world.answers(first, UserAnswer::Refuse(String::new()), "here").await;
    assert_eq!(world.asks(held(one)).await, first, "it was refused for this chain");
    let second = world.asks(held(two)).await;
    assert_ne!(second, first);
    world.answers(second, UserAnswer::Allow, "here").await;
    assert_ne!(world.asks(held(two)).await, second, "the chain has gone on since it was allowed");
}

/// Later it would count for no day of what its user allows.
#[tokio::test]
async fn an_agent_that_was_agreed_to_is_begun_within_a_day_or_never() {
    let world = World::new();
    let wanted = WantedAgent { harness: "codex".to_owned(), ..WantedAgent::default() };
    let ask = world.mesh.ask_about_agent(AskedBy::default(), wanted, "it is not allowed yet".to_owned()).await;
    world.answers(ask.expect("asked").id, UserAnswer::Allow, "").await;
    let agreed = async || world.mesh.agreed_agents().await.expect("readable").len();
    world.machine.pass(24 * 3_600_000 - 1);
    assert_eq!(agreed().await, 1);
    world.machine.pass(1);
    assert_eq!(agreed().await, 0);
}

#[tokio::test]
async fn a_consent_is_allowed_or_refused() {
    let world = World::new();
    let what = ConsentFor::Run {
        harness: "codex".to_owned(),
        reach: crate::ports::runner::Reach::Work,
        task: "review".to_owned(),
    };
    let id = world.asks(NewAsk::new(AskedBy::default(), AskKind::Consent(what))).await;
    assert!(world.answers(id, UserAnswer::AllowForSession, "").await.contains("does not offer"));
    assert_eq!(world.answers(id, UserAnswer::Allow, "").await, "answered");
}

#[tokio::test]
async fn an_agent_that_does_not_wait_gets_the_answer_as_mail_once() {
    let world = World::new();
    world.joined("alice").await;
    let id = world.asks(NewAsk { by_mail: true, ..question("Which port?") }).await;
    let listed = async || world.mesh.agent(&name("alice")).await.expect("readable").expect("there").presence;
    assert_eq!(listed().await, Presence::NeedsInput);
    world.answers(id, text("8080"), "here").await;
    assert_eq!(listed().await, Presence::Idle);
    world.mesh.all_asks().await.expect("readable");
    assert_eq!(world.fetch("alice").await, "Your user answered: 8080\n\nYou had asked: Which port?");
    // What nobody answers is mailed at the next look.
    let id = world.asks(question("Which host?")).await;
    world.mesh.leave_ask_to_mail(id).await.expect("stored");
    world.machine.pass(10 * 60_000);
    for _ in 0..2 {
        world.mesh.asks().await.expect("readable");
    }
    let told = world.fetch("alice").await;
    assert!(told.starts_with("No answer came in time") && told.matches("Which host?").count() == 1, "{told}");
}

/// As while the disk is full.
#[tokio::test]
async fn an_answer_that_could_not_be_mailed_is_mailed_by_the_servers_next_round() {
    for nth in 1..=8 {
        let world = World::new();
        world.joined("alice").await;
        let id = world.asks(NewAsk { by_mail: true, ..question("Which port?") }).await;
        world.store.fail_at(nth, Fault::Fail);
        let _either_way = world.mesh.answer_ask(id, text("8080"), "here").await;
        // None is left for what follows.
        world.store.fail_at(1_000_000, Fault::Fail);
        let ask = world.mesh.ask_record(id).await.expect("readable").expect("kept");
        if ask.answer().is_none() {
            continue;
        }
        for _ in 0..2 {
            world.mesh.agreed_agents().await.expect("readable");
        }
        let told = world.fetch("alice").await;
        assert_eq!(told, "Your user answered: 8080\n\nYou had asked: Which port?", "write {nth}");
    }
}

#[tokio::test]
async fn what_an_end_still_sets_off_is_not_deleted_and_the_servers_round_does_it() {
    let world = World::new();
    world.joined("alice").await;
    let deleted = async || {
        let cleanup: Cleanup = world.mesh.clean_up(Scope::Expired, DryRun::No, None).await.expect("cleaned up");
        cleanup.tally.amounts.get(&RecordKind::Asks).map_or(0, |amount| amount.count)
    };
    world.asks(NewAsk { by_mail: true, ..question("Which port?") }).await;
    world.machine.pass(10 * 60_000 + 24 * 3_600_000);
    assert_eq!(deleted().await, 0);
    world.mesh.agreed_agents().await.expect("readable");
    let told = world.fetch("alice").await;
    assert_eq!(told, "No answer came in time, so it counts as refused.\n\nYou had asked: Which port?");
    assert_eq!(deleted().await, 1);
    // Where nothing ever does it, the question is not kept for good.
    world.asks(NewAsk { by_mail: true, ..question("Which host?") }).await;
    world.machine.pass(10 * 60_000 + Limits::default().keep);
    assert_eq!(deleted().await, 1);
}
