//! Looking back: threads with both halves, the list of threads, search, what one sent; and who may see which of it.

use std::sync::Arc;

use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store};

use super::counted::Counted;
use super::{World, draft, name};
use crate::messages::{Draft, Message};
use crate::names::MessageId;
use crate::ports::machine::Machine;
use crate::sessions::Call;
use crate::storage::keys;
use crate::testing::{FakeHarnesses, FakeMachine, call, shell_call};
use crate::{Limits, MailReader, Mesh, MeshIndexRule, Parts, Registration, Search, ThreadError, ThreadFilter};

fn agent(of: &str) -> MailReader {
    MailReader::Agent(name(of))
}

/// Alice asks bob about a port, he answers; carol and dave talk of something else, and carol tells everybody.
struct Talk {
    world: World,
    question: String,
    answer: String,
}

impl Talk {
    async fn new() -> Talk {
        let world = World::new();
        let mut calls = Vec::new();
        for agent in ["alice", "bob", "carol", "dave"] {
            calls.push(world.joined(agent).await);
        }
        let [alice, bob, carol, dave] = <[Call; 4]>::try_from(calls).expect("four");
        let ask = Draft { subject: Some("The port".to_owned()), ..draft("Which port does the server use?") };
        let question = world.send(&alice, "bob", ask).await.expect("sent").id;
        world.machine.pass(1_000);
        let reply = Draft { reply_to: Some(question), ..draft("It is 8080.") };
        let answer = world.send(&bob, "alice", reply).await.expect("sent").id;
        world.machine.pass(1_000);
        let named = |body: &str| Draft { thread: Some("build".to_owned()), ..draft(body) };
        world.send(&carol, "dave", named("the build is red")).await.expect("sent");
        world.machine.pass(1_000);
        world.send(&dave, "carol", named("I know of the port trouble")).await.expect("sent");
        world.machine.pass(1_000);
        let caller = world.mesh.identify(&carol).await.expect("identified");
        let to = ["alice".to_owned(), "bob".to_owned(), "dave".to_owned()];
        world.mesh.send(&caller, &to, named("the port is fixed")).await.expect("sent");
        Talk { world, question: question.to_string(), answer: answer.to_string() }
    }

    /// The messages of a thread, each with its recipients and their statuses.
    async fn thread(&self, reader: &MailReader, typed: &str, limit: usize) -> String {
        match self.world.mesh.mail_thread(reader, typed, limit).await {
            Ok(thread) => {
                let line = |one: &crate::MessageStatus| {
                    let to = one.recipients.iter().map(|to| format!("{} {}", to.to, to.history.status().as_str()));
                    format!("{}: {} → {}", one.message.from, one.message.body, to.collect::<Vec<_>>().join(", "))
                };
                let lines: Vec<String> = thread.messages.iter().map(line).collect();
                format!("{} earlier | {}", thread.earlier, lines.join(" | "))
            }
            Err(error) => error.to_string(),
        }
    }

    async fn threads(&self, reader: &MailReader, filter: &ThreadFilter) -> Vec<String> {
        let line = |one: crate::ThreadSummary| {
            let agents: Vec<&str> = one.agents.iter().map(crate::names::AgentName::as_str).collect();
            format!(
                "{} ({}) {} of {}, {} wait",
                one.subject,
                agents.join(" "),
                one.last_from,
                one.messages,
                one.waiting
            )
        };
        let threads = self.world.mesh.mail_threads(reader, filter).await.expect("listed");
        threads.threads.into_iter().map(line).collect()
    }

    async fn found(&self, reader: &MailReader, search: Search) -> Vec<String> {
        let limit = if search.limit == 0 { 10 } else { search.limit };
        let hits = self.world.mesh.search(reader, &Search { limit, ..search }).await.expect("searched");
        let mut lines: Vec<String> = hits.hits.iter().map(|hit| hit.message.body.clone()).collect();
        if hits.found > hits.hits.len() {
            lines.push(format!("of {}", hits.found));
        }
        lines
    }
}

fn words(words: &[&str]) -> Search {
    Search { words: words.iter().map(|word| (*word).to_owned()).collect(), ..Search::default() }
}

#[tokio::test]
async fn a_thread_has_both_halves_with_each_recipients_status() {
    let talk = Talk::new().await;
    let both =
        "0 earlier | alice: Which port does the server use? → bob acknowledged | bob: It is 8080. → alice stored";
    for typed in [&talk.question, &talk.answer, &talk.answer[..20].to_owned(), &talk.answer.to_lowercase()] {
        assert_eq!(talk.thread(&MailReader::User, typed, 10).await, both, "{typed}");
    }
    talk.world.fetch("alice").await;
    let read = talk.thread(&MailReader::User, &talk.question, 1).await;
    assert_eq!(read, "1 earlier | bob: It is 8080. → alice read", "the newest, and what was left out is counted");
    let build = talk.thread(&MailReader::User, "build", 10).await;
    assert!(build.ends_with("carol: the port is fixed → alice read, bob stored, dave stored"), "once for all: {build}");
    assert_eq!(
        talk.thread(&MailReader::User, "boat", 10).await,
        "no thread and no message that you know of is called `boat`"
    );
}

#[tokio::test]
async fn an_agent_sees_what_it_sent_and_got_and_nothing_else() {
    let talk = Talk::new().await;
    let both = talk.thread(&agent("alice"), &talk.question, 10).await;
    assert_eq!(both, talk.thread(&MailReader::User, &talk.question, 10).await, "both halves are hers");
    assert_eq!(
        talk.thread(&agent("bob"), "build", 10).await,
        "0 earlier | carol: the port is fixed → bob stored",
        "of a thread of others he sees what he got, and not what others got"
    );
    for typed in [&talk.question, &talk.answer] {
        let refused = talk.world.mesh.mail_thread(&agent("dave"), typed, 10).await;
        assert!(matches!(refused, Err(ThreadError::Unknown(_))), "{refused:?}");
    }
    let listed = talk.threads(&agent("dave"), &ThreadFilter::default()).await;
    assert_eq!(listed, ["the build is red (carol dave) carol of 3, 3 wait"]);
    assert_eq!(talk.found(&agent("dave"), words(&["port"])).await, ["the port is fixed", "I know of the port trouble"]);
    assert_eq!(talk.found(&agent("carol"), words(&["8080"])).await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_name_that_another_agent_had_before_shows_nothing_of_that_agents_mail() {
    let talk = Talk::new().await;
    // What is kept in bob's inbox was sent by an earlier alice, whose own list is gone with her.
    talk.world.store.remove(&keys::sent(&name("alice"))).await.expect("removed");
    talk.world.send(&call("connection-of-alice"), "bob", draft("of the new one")).await.expect("sent");
    let seen = talk.thread(&agent("alice"), &talk.answer, 10).await;
    assert_eq!(seen, "0 earlier | bob: It is 8080. → alice stored");
}

#[tokio::test]
async fn threads_are_listed_by_their_newest_message_with_who_talks_to_whom() {
    let talk = Talk::new().await;
    let listed = talk.threads(&MailReader::User, &ThreadFilter::default()).await;
    assert_eq!(
        listed,
        ["the build is red (alice bob carol dave) carol of 3, 5 wait", "The port (alice bob) bob of 2, 1 wait",]
    );
    let with = ThreadFilter { with: Some(name("bob")), ..ThreadFilter::default() };
    assert_eq!(talk.threads(&MailReader::User, &with).await.len(), 2);
    let since = talk.world.machine.now();
    let newest = ThreadFilter { since: Some(since), ..ThreadFilter::default() };
    let listed = talk.threads(&MailReader::User, &newest).await;
    assert_eq!(listed, ["the port is fixed (alice bob carol dave) carol of 1, 5 wait"]);
    let pairs = talk.world.mesh.mail_threads(&MailReader::User, &ThreadFilter::default()).await.expect("listed").pairs;
    let pairs: Vec<String> = pairs.iter().map(|pair| format!("{} {} {}", pair.from, pair.to, pair.messages)).collect();
    assert_eq!(pairs[0], "carol dave 2");
    assert_eq!(pairs.len(), 6, "{pairs:?}");
}

#[tokio::test]
async fn a_search_finds_all_words_best_first_and_counts_the_rest() {
    let talk = Talk::new().await;
    let everybody = MailReader::User;
    let found = talk.found(&everybody, words(&["PORT"])).await;
    assert_eq!(found, ["the port is fixed", "I know of the port trouble", "Which port does the server use?"]);
    let one = talk.found(&everybody, Search { limit: 1, ..words(&["port"]) }).await;
    assert_eq!(one, ["the port is fixed", "of 3"], "of two that fit alike the newer one");
    assert_eq!(talk.found(&everybody, words(&["port", "fixed"])).await, ["the port is fixed"]);
    assert_eq!(talk.found(&everybody, words(&["fixed port"])).await, [] as [&str; 0], "a phrase is one word");
    assert_eq!(talk.found(&everybody, words(&[" "])).await, [] as [&str; 0]);
    let from = Search { from: Some(name("dave")), ..words(&["port"]) };
    assert_eq!(talk.found(&everybody, from).await, ["I know of the port trouble"]);
    let to = Search { to: Some(name("bob")), thread: Some("build".to_owned()), ..words(&["port"]) };
    assert_eq!(talk.found(&everybody, to).await, ["the port is fixed"]);
    let hits = talk.world.mesh.search(&everybody, &Search { limit: 9, ..words(&["fixed"]) }).await.expect("searched");
    assert_eq!((hits.found, hits.hits[0].to.len()), (1, 3), "a message to three is found once");
}

#[tokio::test]
async fn a_damaged_line_costs_itself_alone() {
    let talk = Talk::new().await;
    let line = br#"{"id":"no id","thread":"build","body":"port"}"#.to_vec();
    let log = keys::inbox(&name("bob"));
    let store = &talk.world.store;
    store.append(&log, &[line], store::Expect::Any, store::Durability::Process).await.expect("appended");
    assert_eq!(talk.threads(&MailReader::User, &ThreadFilter::default()).await.len(), 2);
    let threads = talk.world.mesh.mail_threads(&MailReader::User, &ThreadFilter::default()).await.expect("listed");
    let hits =
        talk.world.mesh.search(&MailReader::User, &Search { limit: 9, ..words(&["port"]) }).await.expect("found");
    assert_eq!((threads.damaged, hits.damaged, hits.found), (1, 1, 3));
}

#[tokio::test]
async fn what_one_sent_is_listed_oldest_first_with_what_became_of_it() {
    let talk = Talk::new().await;
    let sent = async |limit: usize| {
        let sent = talk.world.mesh.sent(&name("carol"), None, limit).await.expect("listed");
        sent.iter().map(|one| format!("{} to {}", one.message.body, one.recipients.len())).collect::<Vec<_>>()
    };
    assert_eq!(sent(10).await, ["the build is red to 1", "the port is fixed to 3"]);
    assert_eq!(sent(1).await, ["the port is fixed to 3"]);
    assert_eq!(sent(0).await, [] as [&str; 0]);
    assert!(talk.world.mesh.sent(&name("nobody"), None, 5).await.expect("listed").is_empty());
}

#[tokio::test]
async fn looking_back_leaves_everything_as_it_was() {
    let talk = Talk::new().await;
    let before = talk.world.store.writes();
    talk.thread(&MailReader::User, "build", 10).await;
    talk.threads(&MailReader::User, &ThreadFilter::default()).await;
    talk.found(&agent("bob"), words(&["port"])).await;
    talk.world.mesh.sent(&name("bob"), None, 5).await.expect("listed");
    assert_eq!(talk.world.store.writes(), before);
    assert_eq!(talk.world.fetch("dave").await, "the build is red the port is fixed", "it is unread");
    talk.world.send(&shell_call(None), "dave", draft("more")).await.expect("sent");
    let line = serde_json::to_value(Message::clone(
        &talk.world.mesh.search(&MailReader::User, &Search { limit: 1, ..words(&["more"]) }).await.expect("found").hits
            [0]
        .message,
    ));
    assert_eq!(line.expect("JSON")["from"], "shell", "what the command line sent is found too");
}

/// Bob and carol in a folder whose segments are short. What is read of its logs is counted.
pub(super) struct OnFiles {
    folder: tempfile::TempDir,
    pub(super) store: Arc<Counted>,
    pub(super) machine: Arc<FakeMachine>,
    pub(super) mesh: Mesh,
}

impl OnFiles {
    pub(super) async fn new() -> OnFiles {
        let folder = tempfile::tempdir().expect("a folder");
        let options = FilesOptions {
            rotate_at: 1_000,
            rule: Some(Arc::new(MeshIndexRule)),
            durability: Durability::Process,
            ..FilesOptions::default()
        };
        let store = Counted::new(Arc::new(FilesStore::open(folder.path(), options).expect("a store")));
        let machine = Arc::new(FakeMachine::default());
        let mesh = OnFiles::process(&store, &machine);
        let files = OnFiles { folder, store, machine, mesh };
        for agent in ["bob", "carol"] {
            files.joins(agent, agent).await;
        }
        files
    }

    /// A process that has read nothing yet.
    pub(super) fn process(store: &Arc<Counted>, machine: &Arc<FakeMachine>) -> Mesh {
        Mesh::new(Parts {
            shared: Arc::clone(store) as Arc<dyn Store>,
            local: Arc::clone(store) as Arc<dyn Store>,
            machine: Arc::clone(machine) as Arc<dyn Machine>,
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        })
    }

    pub(super) async fn joins(&self, agent: &str, connection: &str) {
        let caller = self.mesh.identify(&call(connection)).await.expect("identified");
        let registration = Registration { name: Some(name(agent)), ..Registration::default() };
        self.mesh.register(&caller, registration).await.expect("registered");
    }

    /// Sends from the command line, a second later.
    pub(super) async fn send(&self, to: &[&str], draft: Draft) -> MessageId {
        self.machine.pass(1_000);
        let to: Vec<String> = to.iter().map(|to| (*to).to_owned()).collect();
        let shell = self.mesh.identify(&shell_call(None)).await.expect("identified");
        self.mesh.send(&shell, &to, draft).await.expect("sent").id
    }

    /// Fills segments of carol's inbox with other mail.
    pub(super) async fn fill(&self) {
        for _ in 0..12 {
            self.send(&["carol"], draft("filling")).await;
        }
        let files = std::fs::read_dir(self.folder.path().join("agents/carol")).expect("there").flatten();
        let segments = files.filter(|file| file.file_name().to_string_lossy().starts_with("inbox.jsonl."));
        assert!(segments.count() > 1);
    }
}

/// A sending that broke off is completed under the id that its first recipient has, so a message may be younger than its id.
/// Mail since a time begins at the time, and a thread at its first id, also where segments of an inbox are full.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_completed_later_is_found_by_its_time_and_in_its_thread() {
    let files = OnFiles::new().await;
    let keyed = || Draft { idempotency_key: Some("k".to_owned()), ..draft("once for both") };
    let first = files.send(&["bob"], keyed()).await;
    files.fill().await;
    files.machine.pass(3 * 3_600_000);
    let since = files.machine.now();
    assert_eq!(files.send(&["bob", "carol"], keyed()).await, first);
    files.fill().await;

    let later = Search { since: Some(since), limit: 10, ..words(&["once"]) };
    let hits = files.mesh.search(&MailReader::User, &later).await.expect("searched");
    assert_eq!(hits.hits.iter().map(|hit| hit.message.id).collect::<Vec<_>>(), [first]);
    let thread = files.mesh.mail_thread(&MailReader::User, &first.to_string(), 10).await.expect("found");
    let to: Vec<&str> = thread.messages[0].recipients.iter().map(|to| to.to.as_str()).collect();
    assert_eq!((thread.messages.len(), to), (1, vec!["bob", "carol"]));
}

/// However much other mail is kept between its messages and after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_costs_what_it_has_and_not_what_is_kept() {
    let files = OnFiles::new().await;
    let question = files.send(&["bob", "carol"], draft("Is it red?")).await;
    let build = |body: &str| Draft { thread: Some("build".to_owned()), ..draft(body) };
    let answer = |body: &str| Draft { thread: Some(question.to_string()), ..draft(body) };
    files.send(&["carol"], build("it is red")).await;
    files.send(&["carol"], answer("It is.")).await;
    for _ in 0..5 {
        files.fill().await;
    }
    files.send(&["bob"], build("it is green")).await;
    files.send(&["bob"], answer("No more.")).await;
    files.fill().await;
    let by_id = question.to_string();
    for (typed, expected) in [("build", "it is red, it is green"), (by_id.as_str(), "Is it red?, It is., No more.")] {
        files.store.take();
        let thread = files.mesh.mail_thread(&MailReader::User, typed, 10).await.expect("found");
        let read = files.store.take().entries;
        let bodies: Vec<&str> = thread.messages.iter().map(|one| one.message.body.as_str()).collect();
        assert_eq!((bodies.join(", ").as_str(), thread.earlier), (expected, 0));
        assert!(read < 25, "`{typed}` has {} messages, and {read} entries were read", bodies.len());
    }
}
