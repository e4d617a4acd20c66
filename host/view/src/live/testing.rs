//! A mesh for tests of what shows it: five agents, one of which waits for its user.

use mesh::agents::Origin;
use mesh::ports::machine::Instant;

use super::{Live, LogRow, News, Overview, RunRow, StuckRow};
use crate::{
    AgentDetail, AgentView, AskDetail, AskedByView, MessageView, PresenceView, PriorityView, RecipientView,
    ReservationDetail, ReservationView, StatusView, StepView, ThreadMessageView, ThreadSummaryView, ThreadView,
    Timestamp,
};

/// 10:59:02 on a day in November.
pub const NOW: Instant = Instant(1_795_258_742_000);

fn ago(seconds: u64) -> Timestamp {
    Timestamp(Instant(NOW.0 - seconds * 1_000))
}

/// An agent of a harness.
pub fn agent(name: &str, presence: PresenceView, harness: &str, task: &str) -> AgentDetail {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    AgentDetail {
        agent: AgentView {
            name: name.to_owned(),
            presence,
            evidence: "its process runs".to_owned(),
            last_heard: Some(ago(60)),
            waiting: 0,
            you: None,
            harness: some(harness),
            program: None,
            model: None,
            project: None,
            role: None,
            task: some(task),
            issue: None,
            skills: Vec::new(),
        },
        session: None,
        machine: "here".to_owned(),
        registered: ago(3_600),
        paused: false,
        origin: Origin::CommandLine,
    }
}

/// A question of an agent that waits for the user.
pub fn ask(id: &str, by: &str, kind: &'static str, what: &str, answers: &[&str]) -> AskDetail {
    AskDetail {
        id: id.to_owned(),
        status: "open",
        by: AskedByView { agent: Some(by.to_owned()), harness: None, session: None },
        kind,
        what: what.to_owned(),
        raw: serde_json::Value::Null,
        reason: None,
        choices: Vec::new(),
        answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
        asked: ago(30),
        until: Timestamp(NOW.plus(570_000)),
        answered: None,
        settled: None,
    }
}

/// A conversation in the list, whose last message was so many seconds ago.
pub fn summary(thread: &str, subject: &str, agents: &[&str], last: u64) -> ThreadSummaryView {
    ThreadSummaryView {
        thread: thread.to_owned(),
        subject: subject.to_owned(),
        agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
        messages: 2,
        waiting: 0,
        first: ago(last + 100),
        last: ago(last),
        last_from: agents.first().copied().unwrap_or_default().to_owned(),
    }
}

/// A message of so many seconds ago.
pub fn message(id: &str, from: &str, to: &str, thread: &str, body: &str, seconds: u64) -> MessageView {
    MessageView {
        id: id.to_owned(),
        at: ago(seconds),
        from: from.to_owned(),
        to: to.to_owned(),
        subject: body.lines().next().unwrap_or_default().to_owned(),
        body: body.to_owned(),
        cut_from: None,
        thread: thread.to_owned(),
        reply_to: None,
        priority: PriorityView::Normal,
        tags: Vec::new(),
        broadcast: false,
    }
}

/// A recipient with these statuses, each so many seconds ago and by its route.
pub fn recipient(to: &str, steps: &[(StatusView, u64, &str)]) -> RecipientView {
    let step = |(status, seconds, route): &(StatusView, u64, &str)| StepView {
        status: *status,
        at: ago(*seconds),
        route: (!route.is_empty()).then(|| (*route).to_owned()),
        evidence: (!route.is_empty()).then(|| serde_json::json!({"event": "PostToolUse"})),
    };
    RecipientView::with_history(to.to_owned(), steps.iter().map(step).collect())
}

/// A conversation that was read by its name.
pub fn read(thread: ThreadView) -> News {
    News::Thread(thread.thread.clone(), Box::new(thread))
}

/// A conversation about which port a server uses: asked, answered, and told to two others.
pub fn thread() -> ThreadView {
    let one = |message: MessageView, recipients: Vec<RecipientView>| ThreadMessageView { message, recipients };
    let (stored, shown) = (StatusView::Stored, StatusView::Shown);
    let question = message("01A", "alice", "bob", "01A", "Which port does the server use?", 300);
    let answer = message("01B", "bob", "alice", "01A", "It is 8080.\nSee the settings.", 240);
    let told = message("01C", "alice", "carol", "01A", "The server is at 8080 now", 120);
    let acknowledged = [(stored, 300, ""), (shown, 299, "hook"), (StatusView::Acknowledged, 240, "fetch")];
    let undeliverable = RecipientView {
        undeliverable: Some("its inbox is full".to_owned()),
        ..recipient("dave", &[(stored, 120, "")])
    };
    ThreadView {
        thread: "01A".to_owned(),
        earlier: 0,
        messages: vec![
            one(question, vec![recipient("bob", &acknowledged)]),
            one(
                answer,
                vec![recipient(
                    "alice",
                    &[(stored, 240, ""), (StatusView::Notified, 239, "wake-file"), (shown, 60, "hook")],
                )],
            ),
            one(told, vec![recipient("carol", &[(stored, 120, "")]), undeliverable]),
        ],
    }
}

/// What was last read of the mesh.
pub fn overview() -> Overview {
    let mut idle = agent("carol", PresenceView::Idle, "opencode", "");
    idle.agent.waiting = 3;
    let mut paused = agent("dave", PresenceView::Idle, "gemini-cli", "reviews the parser");
    paused.paused = true;
    let reservation = ReservationView {
        owner: "bob".to_owned(),
        pattern: "host/view/src/**".to_owned(),
        mode: "exclusive",
        reason: Some("the view model".to_owned()),
        expires: Timestamp(NOW.plus(600_000)),
        seconds_left: 600,
    };
    Overview {
        now: NOW,
        machine: "here".to_owned(),
        agents: vec![
            agent("worker-10", PresenceView::Busy, "codex", "writes the tests"),
            agent("worker-2", PresenceView::Busy, "claude-code", "writes the parser"),
            agent("alice", PresenceView::NeedsInput, "claude-code", "fixes the build"),
            idle,
            paused,
            agent("bob", PresenceView::Offline, "", ""),
        ],
        asks: vec![ask("01Q", "alice", "approval", "run `make deploy`", &["allow", "allow-session", "refuse", "stop"])],
        reservations: vec![ReservationDetail {
            id: "01R".to_owned(),
            reservation,
            repository: "/home/dev/project".to_owned(),
            granted: ago(100),
            status: "held",
            taken_by: None,
        }],
        commands: Vec::new(),
        runs: vec![RunRow {
            id: "01U".to_owned(),
            harness: "codex".to_owned(),
            state: "running".to_owned(),
            about: "Review the change".to_owned(),
            why: None,
            started: ago(90).0,
            ended: None,
        }],
        stuck: vec![StuckRow {
            key: "worker-2 carol".to_owned(),
            state: "held",
            from: "worker-2".to_owned(),
            to: "carol".to_owned(),
            messages: 2,
            why: "8 messages went to and fro without a user".to_owned(),
        }],
        damaged: Vec::new(),
        out_of_reach: None,
    }
}

/// A view that has read all of that.
pub fn live() -> Live {
    let mut live = Live::default();
    live.take(News::Overview(Box::new(overview())));
    live.take(News::Threads(vec![
        ThreadSummaryView {
            waiting: 1,
            ..summary("01A", "Which port does the server use?", &["alice", "bob", "carol", "dave"], 120)
        },
        summary("build", "the build is red", &["alice", "worker-2"], 7_200),
        summary("01D", "レビューをお願いします 🙏", &["carol", "worker-10"], 90_000),
    ]));
    live.take(News::Log(vec![
        LogRow { key: "1".to_owned(), at: ago(300).0, kind: "sent".to_owned(), text: "from=alice  to=bob".to_owned() },
        LogRow { key: "2".to_owned(), at: ago(30).0, kind: "asked".to_owned(), text: "agent=alice".to_owned() },
    ]));
    live
}
