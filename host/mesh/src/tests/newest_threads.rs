//! The newest threads as a view that stays open lists them: what a first reading lists, at the cost of what is new.

use store::{Durability, Position, Store as _};

use super::conversations::OnFiles;
use super::machines::{LinkState, two};
use super::{draft, name};
use crate::messages::Draft;
use crate::messages::receipt::DeliveryStatus;
use crate::storage::keys;
use crate::{Fetch, MailReader, Mesh, NewestThreads, ThreadFilter, ThreadSummary};

const HOUR: u64 = 3_600_000;
/// More than a reading takes that reads only what is new: the first and the last entry of each inbox, and that.
const FEW: usize = 12;

/// The newest threads, by reading everything.
async fn by_reading(mesh: &Mesh, most: usize) -> Vec<ThreadSummary> {
    let mut all = mesh.mail_threads(&MailReader::User, &ThreadFilter::default()).await.expect("listed").threads;
    all.truncate(most);
    all
}

fn in_thread(thread: &str, body: &str) -> Draft {
    Draft { thread: Some(thread.to_owned()), ..draft(body) }
}

impl OnFiles {
    /// Lists the newest threads, and compares them with those that a process finds which has read nothing yet. Returns
    /// how many entries were read for it.
    async fn lists(&self, newest: &mut NewestThreads, most: usize, when: &str) -> usize {
        self.store.take();
        let listed = self.mesh.newest_threads(newest).await.expect("listed");
        let read = self.store.take().entries;
        let another = OnFiles::process(&self.store, &self.machine);
        assert_eq!(listed, by_reading(&another, most).await, "{when}");
        read
    }

    /// An agent acknowledges all of its mail.
    async fn acknowledges(&self, agent: &str) {
        loop {
            let fetched = self.mesh.fetch(&name(agent), &Fetch::default()).await.expect("fetched");
            let Some(lease) = &fetched.lease else { return };
            self.mesh.confirm(lease, DeliveryStatus::Acknowledged, "fetch", None).await.expect("confirmed");
        }
    }

    /// An agent's record is deleted. Its mail stays.
    async fn is_forgotten(&self, agent: &str) {
        let key = keys::meta(&name(agent));
        let record = self.store.get(&key).await.expect("read").expect("there");
        self.store.swap(&key, Some(record.revision), None, Durability::Process).await.expect("removed");
    }

    /// Where the first entry of an agent's inbox is.
    async fn first(&self, agent: &str) -> Position {
        let batch = self.store.read(&keys::inbox(&name(agent)), Position::START, 1).await.expect("read");
        batch.entries.first().expect("an entry").at
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_reading_costs_what_is_new() {
    let files = OnFiles::new().await;
    let mut newest = NewestThreads::of(100);
    for _ in 0..5 {
        files.fill().await;
    }
    let first = files.lists(&mut newest, 100, "at first").await;
    assert!(first >= 60, "{first} entries were read of 60 messages");
    for number in 0..3 {
        files.send(&["bob", "carol"], in_thread("build", "it is red")).await;
        let read = files.lists(&mut newest, 100, "after a further message").await;
        assert!(read < FEW, "{read} entries were read for message {number}");
    }
    let read = files.lists(&mut newest, 100, "after nothing").await;
    assert!(read < FEW, "{read} entries were read for nothing");
    files.machine.pass(HOUR);
    let read = files.lists(&mut newest, 100, "an hour later").await;
    assert!(read >= 60, "once an hour everything is read, and {read} entries were");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_stays_open_lists_what_a_new_one_lists() {
    let (files, most) = (OnFiles::new().await, 100);
    let newest = &mut NewestThreads::of(most);
    files.lists(newest, most, "nothing was sent").await;
    let question = files.send(&["bob", "carol"], draft("Is it red?")).await.to_string();
    files.lists(newest, most, "a message to two").await;
    files.send(&["bob"], in_thread(&question, "It is.")).await;
    files.lists(newest, most, "an answer").await;
    files.acknowledges("bob").await;
    files.lists(newest, most, "one of them has read it").await;

    files.joins("dave", "dave").await;
    files.fill().await;
    files.lists(newest, most, "an agent without mail").await;
    files.send(&["dave", "carol"], in_thread("build", "it is green")).await;
    let read = files.lists(newest, most, "a new inbox").await;
    assert!(read < FEW, "{read} entries were read for a new inbox with one message");

    files.acknowledges("carol").await;
    let inbox = keys::inbox(&name("carol"));
    let old = files.store.end(&inbox).await.expect("an end");
    files.fill().await;
    files.lists(newest, most, "more mail").await;
    let begun = files.first("carol").await;
    assert!(files.store.retire(&inbox, old).await.expect("retired") > 0);
    assert!(files.first("carol").await > begun, "some of it is left");
    files.lists(newest, most, "retention has deleted the beginning of an inbox").await;
    files.send(&["carol"], in_thread(&question, "No more.")).await;
    files.lists(newest, most, "a message after that").await;

    files.is_forgotten("dave").await;
    files.lists(newest, most, "an agent was forgotten").await;
    files.joins("dave", "another-connection").await;
    files.send(&["dave"], in_thread("build", "it is red again")).await;
    files.lists(newest, most, "another agent of its name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_threads_of_a_log_that_is_gone_are_listed_no_more() {
    let (files, most) = (OnFiles::new().await, 100);
    let newest = &mut NewestThreads::of(most);
    files.fill().await;
    files.send(&["bob", "carol"], in_thread("build", "it is red")).await;
    files.acknowledges("carol").await;
    files.lists(newest, most, "all are there").await;
    files.store.remove(&keys::inbox(&name("carol"))).await.expect("removed");
    files.lists(newest, most, "an inbox is gone").await;
    files.send(&["carol"], draft("anew")).await;
    files.lists(newest, most, "it has begun anew").await;
    // What was read is removed, and as much is there as before, when it is looked at again.
    files.acknowledges("carol").await;
    files.store.remove(&keys::inbox(&name("carol"))).await.expect("removed");
    files.send(&["carol"], draft("again")).await;
    files.lists(newest, most, "it has begun anew meanwhile").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_was_too_old_to_be_listed_is_whole_again_when_it_goes_on() {
    let (files, most) = (OnFiles::new().await, 3);
    let newest = &mut NewestThreads::of(most);
    files.send(&["bob", "carol"], in_thread("plan", "the plan")).await;
    files.fill().await;
    files.lists(newest, most, "the newest three").await;
    files.send(&["carol"], in_thread("build", "it is red")).await;
    let read = files.lists(newest, most, "a new thread").await;
    assert!(read < FEW, "{read} entries were read for a new thread");
    files.send(&["bob"], in_thread("plan", "the plan has changed")).await;
    files.lists(newest, most, "an old thread").await;
    files.send(&["carol"], in_thread("plan", "it has")).await;
    let read = files.lists(newest, most, "and again").await;
    assert!(read < FEW, "{read} entries were read for a thread that is listed");
}

#[tokio::test]
async fn a_list_goes_on_when_its_servers_are_back() {
    let (one, other) = two().await;
    let (mut newest, most) = (NewestThreads::of(100), 100);
    one.say("bob", "Is it red?").await;
    assert_eq!(one.mesh.newest_threads(&mut newest).await.expect("listed"), by_reading(&one.mesh, most).await);
    one.line(LinkState::Cut);
    assert!(one.mesh.newest_threads(&mut newest).await.is_err());
    other.say_as("bob", "alice", "It is.").await;
    one.line(LinkState::Good);
    let listed = one.mesh.newest_threads(&mut newest).await.expect("listed");
    assert_eq!((listed.len(), listed), (2, by_reading(&one.another_process().mesh, most).await));
}
