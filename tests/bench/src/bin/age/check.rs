//! That a folder holds what was written: counted through the store, and asked of the product.

use bench::{Failure, programs};
use serde_json::Value;
use store::{Key, Position, Store};

use crate::filling::{ASKED_ABOUT, SPEAKER, Stores};
use crate::folder::AgedFolder;
use crate::records::{AGENTS, agent, key, of_agent};
use crate::samples::Samples;
use crate::traffic::WAITING;

/// How much of a log is read at once.
const STEP: usize = 4 << 20;

/// Counts every record through the store.
pub(crate) async fn count(stores: &Stores, samples: &Samples) -> Result<(), Failure> {
    let (mut inboxes, mut sent) = (0, 0);
    for number in 0..AGENTS {
        inboxes += entries(&*stores.shared, &of_agent(number, "inbox")?).await?;
        sent += entries(&*stores.shared, &of_agent(number, "sent")?).await?;
        entries(&*stores.shared, &of_agent(number, "receipts")?).await?;
    }
    let events = entries(&*stores.shared, &key(&["global"])?).await?;
    let mut all = stores.local.list(&key(&["sessions"])?).await?;
    all.extend(stores.local.list(&key(&["ended"])?).await?);
    let sessions = all.len() as u64;
    // The wake files were laid there as files; a hundred of them tell whether the store reads them.
    for session in all.iter().step_by(all.len() / 100 + 1) {
        let wakes = session.as_str().split_once('/').map(|(_, rest)| format!("wakes/{rest}"));
        let wakes = wakes.ok_or("a session without a harness")?.parse()?;
        if entries(&*stores.local, &wakes).await? < 2 {
            return Err(format!("`{wakes}` has no wakes").into());
        }
    }
    same("messages in inboxes", inboxes, samples.messages)?;
    same("lines of what was sent", sent, samples.messages)?;
    same("sessions", sessions, samples.sessions)?;
    if events < samples.messages {
        return Err(format!("the event log has {events} lines for {} messages", samples.messages).into());
    }
    Ok(())
}

async fn entries(store: &dyn Store, log: &Key) -> Result<u64, Failure> {
    let (mut at, mut count) = (Position::START, 0);
    loop {
        let batch = store.read(log, at, STEP).await?;
        if let Some(damage) = batch.damage.first() {
            return Err(format!("`{log}` is damaged at {damage:?}").into());
        }
        count += batch.entries.len() as u64;
        if batch.at_end || batch.next == at {
            return Ok(count);
        }
        at = batch.next;
    }
}

fn same(what: &str, found: u64, written: u64) -> Result<(), Failure> {
    if found == written { Ok(()) } else { Err(format!("{found} {what} were read, {written} were written").into()) }
}

/// Asks the product for the newest and the oldest message, and for the mail that waits.
pub(crate) fn ask(folder: &AgedFolder) -> Result<(), Failure> {
    for ids in [&folder.samples.newest, &folder.samples.oldest] {
        let id = ids.one()?;
        let told = asked(folder, &["message", &id, "--json"])?;
        let message = &told["message"];
        if message["from"] != agent(ASKED_ABOUT).as_str() || message["id"] != id.as_str() {
            return Err(format!("the product says this of {id}: {told}").into());
        }
    }
    let waiting = asked(folder, &["read", "--agent", &agent(SPEAKER), "--unread", "--peek", "--json"])?;
    let shown = waiting["messages"].as_array().map_or(0, Vec::len) as u64;
    // The last messages go round all pairs of agents, so some get one more or less.
    if (1..=2 * WAITING).contains(&shown) { Ok(()) } else { same("waiting messages", shown, WAITING) }
}

fn asked(folder: &AgedFolder, arguments: &[&str]) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&programs::output(&mut folder.relay(arguments), "")?)?)
}
