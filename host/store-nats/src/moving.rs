//! Moves a home from one machine to another: an operator does this if a machine was lost, or its work continues on
//! another one.
//!
//! 1. The data that counts in the home is copied under the new machine's name, unless it counts there already.
//! 2. One value records the new owner. From here on the copies count, and the old machine's data there does not; its
//!    entries in others' open logs up to here still count.
//! 3. Every running machine reads the owner again within seconds. An old one that was about to decide by its own log's
//!    end finds that the log has grown, and reads again too; entries that it had added by then are copied.
//! 4. The value records up to where the old machine's entries count.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::context::PublishErrorKind;
use futures::TryStreamExt;
use store::{Key, Moved, Moving, ServerTrouble, StoreError, backend};

use crate::connection::Connection;
use crate::errors::{again_if_late, found, is_lost_race, server_error};
use crate::ownership::{self, FormerOwner, OPERATORS, Ownership, REMEMBERED};
use crate::sending::send;
use crate::{subjects, values};

/// A move waits this much longer than machines cache an owner.
const MARGIN: Duration = Duration::from_millis(500);
/// The most bytes of a log per message.
const AT_ONCE: usize = 256 * 1024;

pub(crate) async fn move_home(connection: &Connection, moving: &Moving<'_>) -> Result<Option<Moved>, StoreError> {
    ownership::forget(connection, moving.home);
    let Some(now) = ownership::having(connection, moving.home).await? else { return Ok(None) };
    let own = &connection.options.machine;
    let broke_off = now.before.last().filter(|former| former.until.is_none());
    let old = match (&now.machine == own, broke_off) {
        (true, None) => return Ok(Some(Moved::default())),
        (true, Some(former)) => former.machine.clone(),
        (false, _) => now.machine.clone(),
    };
    let mut moved = Moved { from: Some(old.clone()), ..Moved::default() };
    let revision = ownership::moved(connection, moving.home).await?.map_or(0, |(revision, _)| revision);
    // Writes the current owner again: a login that may not write this may not move the home.
    let mut revision = say(connection, moving.home, &now, revision).await?;
    if &now.machine != own {
        take_values(connection, moving, &old, &mut moved).await?;
        take_logs(connection, moving, &old, &mut moved).await?;
        let mut before = now.before.clone();
        before.push(FormerOwner { machine: old.clone(), until: None });
        let next = Ownership { machine: own.clone(), before };
        revision = say(connection, moving.home, &next, revision).await?;
    }
    ownership::forget(connection, moving.home);
    tokio::time::sleep(REMEMBERED + MARGIN).await;
    let fence = subjects::of_log(&connection.options, &old, moving.decides);
    append(connection, fence, moving.fence.to_vec(), moving.home).await?;
    take_logs(connection, moving, &old, &mut moved).await?;
    let stream = connection.logs().await?;
    let info = again_if_late(|| stream.get_info()).await;
    let info = info.map_err(|error| server_error("could not look at", "the stream of logs")(error.into()))?;
    let until = info.state.last_sequence;
    let Some((_, mut settled)) = ownership::moved(connection, moving.home).await? else {
        return Err(raced(moving.home));
    };
    if let Some(former) = settled.before.last_mut() {
        former.until = Some(until);
    }
    say(connection, moving.home, &settled, revision).await?;
    ownership::forget(connection, moving.home);
    Ok(Some(moved))
}

/// Writes the owner of a home under the operator's subject, and returns the revision.
async fn say(connection: &Connection, home: &Key, having: &Ownership, after: u64) -> Result<u64, StoreError> {
    let key = ownership::owner_key(home);
    let subject = subjects::of_value(&connection.options.map_bucket(), OPERATORS, &key);
    let body = serde_json::to_vec(having).map_err(|error| server_error("could not move", home)(error.into()))?;
    let jetstream = connection.jetstream().await?;
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string().as_str());
    let sent = jetstream.publish_with_headers(connection.options.way_to(&subject), headers, body.into()).await;
    let answered = match sent {
        Ok(answer) => answer.await,
        Err(error) => Err(error),
    };
    answered.map(|answer| answer.sequence).map_err(|error| match error.kind() {
        _ if is_lost_race(&error) => raced(home),
        // The streams exist, but this subject does not for this login.
        PublishErrorKind::StreamNotFound => {
            let why = "this login is not the operator's";
            StoreError::server("could not move", home, ServerTrouble::Denied, why)
        }
        _ => server_error("could not move", home)(error.into()),
    })
}

fn raced(home: &Key) -> StoreError {
    server_error("could not move", home)("another operator is moving it now".into())
}

/// Copies a home's values to this machine's subjects.
async fn take_values(
    connection: &Connection,
    moving: &Moving<'_>,
    old: &str,
    moved: &mut Moved,
) -> Result<(), StoreError> {
    let bucket = connection.options.map_bucket();
    let stream = connection.map().await?;
    let rule = connection.homes.as_ref();
    for filter in subjects::values_of_home(&bucket, old, moving.home) {
        let asked = again_if_late(|| stream.info_with_subjects(filter.as_str())).await;
        let mut there = asked.map_err(|error| server_error("could not list", moving.home)(error.into()))?;
        while let Some((subject, _)) =
            there.try_next().await.map_err(|error| server_error("could not list", moving.home)(error.into()))?
        {
            let Some((_, key)) = subjects::value_of(&bucket, &subject) else { continue };
            // The floor of a log has no meaning for its copy.
            let retired = key.as_str().strip_prefix(crate::logs::RETIRED).and_then(|log| log.parse::<Key>().ok());
            let stays = retired.is_some_and(|log| !rule.is_some_and(|rule| rule.is_open(&log)));
            if stays || moving.left.contains(&key) {
                continue;
            }
            let Some(value) = values::newest(connection, &subject, &key).await?.filter(values::is_value) else {
                continue;
            };
            let own = subjects::of_value(&bucket, &connection.options.machine, &key);
            let after = values::newest(connection, &own, &key).await?.map_or(0, |message| message.sequence);
            let put = values::put(connection, &own, &key, &own, after, Some(&value.payload)).await?;
            put.ok_or_else(|| raced(moving.home))?;
            moved.values += 1;
        }
    }
    Ok(())
}

/// Copies the entries of a home's logs to this machine's subjects, unless they are there already.
async fn take_logs(
    connection: &Connection,
    moving: &Moving<'_>,
    old: &str,
    moved: &mut Moved,
) -> Result<(), StoreError> {
    let options = &connection.options;
    let stream = connection.logs().await?;
    let asked = again_if_late(|| stream.info_with_subjects(subjects::logs_of_home(options, old, moving.home))).await;
    let mut there = asked.map_err(|error| server_error("could not list", moving.home)(error.into()))?;
    while let Some((subject, _)) =
        there.try_next().await.map_err(|error| server_error("could not list", moving.home)(error.into()))?
    {
        let Some(log) = subjects::log_of(options, &subject) else { continue };
        if connection.homes.as_ref().is_some_and(|rule| rule.is_open(&log)) {
            continue;
        }
        let own = subjects::of_log(options, &options.machine, &log);
        let mut have: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for entry in entries(connection, &own, &log).await? {
            *have.entry(entry).or_default() += 1;
        }
        let mut body: Vec<u8> = Vec::new();
        for entry in entries(connection, &subject, &log).await? {
            if let Some(times) = have.get_mut(&entry).filter(|times| **times > 0) {
                *times -= 1;
                continue;
            }
            if body.len() + entry.len() > AT_ONCE && !body.is_empty() {
                append(connection, own.clone(), std::mem::take(&mut body), &log).await?;
            }
            if !body.is_empty() {
                body.push(b'\n');
            }
            body.extend(entry);
            moved.entries += 1;
        }
        if !body.is_empty() {
            append(connection, own, body, &log).await?;
        }
    }
    Ok(())
}

/// All entries at a log's subject.
async fn entries(connection: &Connection, subject: &str, log: &Key) -> Result<Vec<Vec<u8>>, StoreError> {
    let stream = connection.logs().await?;
    let mut entries = Vec::new();
    let mut from = 1;
    loop {
        let ask = || stream.raw_message_builder().sequence(from).next_by_subject(subject).send();
        let Some(message) = found(log, again_if_late(ask).await)? else { return Ok(entries) };
        let fitting = message.payload.split(|byte| *byte == b'\n').filter(|line| backend::check_entry(line).is_ok());
        entries.extend(fitting.map(<[u8]>::to_vec));
        from = message.sequence + 1;
    }
}

async fn append(connection: &Connection, subject: String, body: Vec<u8>, what: &Key) -> Result<(), StoreError> {
    let stream = connection.logs().await?;
    send(connection, &stream, subject, HeaderMap::new(), body, ("could not append to", what)).await.map(drop)
}
