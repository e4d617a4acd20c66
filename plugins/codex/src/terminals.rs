//! Where threads run, and which thread a new one continues after /clear.
//!
//! Codex starts another thread at /clear and names no predecessor. We accept a predecessor only if no other thread
//! can have been on that screen, because the agent of another terminal must never move. We store for this:
//!
//! - `left/ID`: the thread that a screen showed after /clear instead of this one.
//! - `shown/PROCESS`: the threads that a Codex with its own app server has shown and not left.
//! - `own/ID`: a thread that runs outside of the app server that terminals share, and its process.

use relay_mesh_sdk::{Error, clock, dated_state};

use crate::app_server::{AppServer, Status};
use crate::payload::Source;

/// The longest wait for the app server at a session's start.
const TIMEOUT_MS: u64 = 1_000;
/// The app server keeps a thread without viewers for half an hour. Later than this after /clear, the predecessor
/// may be missing from its list, and another thread may look like the only one.
const PREDECESSOR_LASTS: u64 = 25 * 60_000;
/// Terminals stay open for weeks.
const LASTS: u64 = 60 * 24 * 3_600_000;
/// A thread that ended without an event counts for this long.
const OWN_LASTS: u64 = 12 * 3_600_000;

/// Records that a thread has started its first turn since it was opened; `process` runs its hooks. Returns the
/// thread that its screen showed before, if it came there by /clear.
pub(crate) fn enter(
    thread: &str,
    folder: &str,
    source: Source,
    process: Option<&str>,
) -> Result<Option<String>, Error> {
    let before = match shared_with(thread) {
        Ok(Some(mut server)) => {
            dated_state::forget(&own(thread))?;
            match source {
                Source::Clear => only_one_before(&mut server, thread, folder)?,
                Source::Startup | Source::Resume | Source::Compact => None,
            }
        }
        Ok(None) => {
            dated_state::write(&own(thread), &process)?;
            match process {
                Some(process) => shown_before(thread, source, process)?,
                None => None,
            }
        }
        // The app server runs and does not answer, so the predecessor stays unknown and no agent moves.
        Err(error) => {
            relay_mesh_sdk::warn!("the app server does not say where the thread {thread} runs: {error:?}");
            None
        }
    };
    // A thread that is opened again has not been left.
    dated_state::forget(&left(thread))?;
    if let Some(before) = &before {
        dated_state::write(&left(before), &thread)?;
        dated_state::forget(&own(before))?;
    }
    Ok(before)
}

/// Records that a thread has ended.
pub(crate) fn leave(thread: &str, process: Option<&str>) -> Result<(), Error> {
    dated_state::forget(&own(thread))?;
    dated_state::forget(&left(thread))?;
    match process {
        Some(process) => dated_state::update(&shown(process), |threads: Option<Vec<String>>| {
            let rest: Vec<String> = threads?.into_iter().filter(|other| other != thread).collect();
            Some(rest).filter(|rest| !rest.is_empty())
        }),
        None => Ok(()),
    }
}

/// Records that a thread belongs to a headless run, which nothing needs to wake.
pub(crate) fn note_headless(thread: &str) -> Result<(), Error> {
    match dated_state::exists(&own(thread))? {
        true => dated_state::forget(&own(thread)),
        false => Ok(()),
    }
}

/// How many threads have lately run outside of the app server that terminals share.
pub(crate) fn running_alone() -> Result<usize, Error> {
    let now = clock::now();
    let mut count = 0;
    for key in relay_mesh_sdk::state::keys(OWN)? {
        let dated = dated_state::read_dated::<Option<String>>(&key)?;
        count += usize::from(dated.is_some_and(|(at, _)| now.saturating_sub(at) < OWN_LASTS));
    }
    Ok(count)
}

/// Removes old values. Call it when a session starts.
pub(crate) fn clear_away() -> Result<(), Error> {
    for (prefix, lasts) in [(LEFT, LASTS), (SHOWN, LASTS), (OWN, OWN_LASTS)] {
        dated_state::remove_older_than(prefix, lasts)?;
    }
    Ok(())
}

/// The app server that terminals share, if it runs this thread.
fn shared_with(thread: &str) -> Result<Option<AppServer>, Error> {
    let mut server = match AppServer::connect_within(TIMEOUT_MS) {
        Ok(server) => server,
        Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_loaded = server.loaded()?.iter().any(|loaded| loaded == thread);
    Ok(is_loaded.then_some(server))
}

/// The only user's thread that the app server had in this folder before this one started and that no screen is
/// known to have left. None if there are several, or if it may have been unloaded since.
fn only_one_before(server: &mut AppServer, thread: &str, folder: &str) -> Result<Option<String>, Error> {
    let is_recent = began_at(thread).is_some_and(|began| clock::now().saturating_sub(began) < PREDECESSOR_LASTS);
    if !is_recent {
        return Ok(None);
    }
    let mut before = Vec::new();
    // Codex's ids grow with time.
    for id in server.loaded()?.into_iter().filter(|id| id.as_str() < thread) {
        let found = match server.thread(&id) {
            Ok(found) => found,
            // It was unloaded between the list and the request, so it may be the predecessor.
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_a_persons = found.root == id && !found.is_internal && found.status != Status::NotLoaded;
        if is_a_persons && found.cwd == folder && !dated_state::exists(&left(&id))? {
            before.push(id);
        }
    }
    Ok(if before.len() == 1 { before.pop() } else { None })
}

/// Records that a process shows a thread. Returns the only thread that it showed before, if /clear replaced that
/// one.
fn shown_before(thread: &str, source: Source, process: &str) -> Result<Option<String>, Error> {
    let mut before = None;
    dated_state::update(&shown(process), |threads: Option<Vec<String>>| {
        let mut threads = threads.unwrap_or_default();
        threads.retain(|other| other != thread);
        before = match (source, threads.as_slice()) {
            (Source::Clear, [_]) => threads.pop(),
            (Source::Clear | Source::Startup | Source::Resume | Source::Compact, _) => None,
        };
        threads.push(thread.to_owned());
        Some(threads)
    })?;
    Ok(before)
}

/// When a thread started, from its id: a version 7 UUID starts with milliseconds.
fn began_at(thread: &str) -> Option<u64> {
    let digits: String = thread.chars().filter(|letter| *letter != '-').take(12).collect();
    u64::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 12)
}

const LEFT: &str = "left/";
const SHOWN: &str = "shown/";
const OWN: &str = "own/";

fn left(thread: &str) -> String {
    format!("{LEFT}{thread}")
}

fn shown(process: &str) -> String {
    format!("{SHOWN}{process}")
}

fn own(thread: &str) -> String {
    format!("{OWN}{thread}")
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::Fakes;
    use serde_json::{Value, json};

    use super::*;

    /// A thread's id by its number: each started a minute after the previous one.
    fn id(number: u64) -> String {
        let digits = format!("{:012x}", BEGAN + number * 60_000);
        format!("{}-{}-7000-8000-000000000000", &digits[..8], &digits[8..])
    }

    const BEGAN: u64 = 1_795_000_000_000;

    /// An app server that has these users' threads: `3` is in our folder, `3/other` in another one, `3s` a
    /// subagent's, and `3t` finds a title.
    fn serving(threads: &str) -> Fakes {
        let held: Vec<Value> = threads.split_whitespace().map(described).collect();
        Fakes::default().endpoint("app-server", move |frame| {
            let asked: Value = serde_json::from_str(frame).expect("a frame is JSON");
            let result = match asked["method"].as_str() {
                Some("thread/loaded/list") => {
                    json!({"data": held.iter().map(|thread| &thread["id"]).collect::<Vec<_>>(), "nextCursor": null})
                }
                Some("thread/read") => {
                    json!({"thread": held.iter().find(|thread| thread["id"] == asked["params"]["threadId"])})
                }
                _ => json!({}),
            };
            vec![json!({"id": asked["id"], "result": result}).to_string()]
        })
    }

    fn described(word: &str) -> Value {
        let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
        let id = id(digits.parse().expect("a number"));
        let (root, source, folder) = match &word[digits.len()..] {
            "" => (id.clone(), "user", "/w"),
            "s" => ("another".to_owned(), "subagent", "/w"),
            "t" => (id.clone(), "thread_title", "/w"),
            elsewhere => (id.clone(), "user", elsewhere),
        };
        json!({"id": id, "sessionId": root, "threadSource": source, "cwd": folder, "status": {"type": "idle"}})
    }

    /// Clears to `now`, so many minutes after it started; returns the number of the thread before it.
    #[track_caller]
    fn check(threads: &str, now: u64, minutes: u64, expected: &str) {
        let _host = serving(threads).at(BEGAN + (now + minutes) * 60_000).start();
        let before = enter(&id(now), "/w", Source::Clear, Some("7.1")).expect("it is looked at");
        let before = before.map_or("nobody".to_owned(), |before| {
            (0..now).find(|number| id(*number) == before).expect("a thread before it").to_string()
        });
        assert_eq!(before, expected, "{threads}, {minutes} minutes after");
    }

    #[test]
    fn the_only_thread_that_the_screen_can_have_shown_is_the_one_before() {
        check("1 2", 2, 1, "1");
        check("1 2", 2, 24, "1");
        check("1 2", 2, 26, "nobody");
        check("1 2 3", 3, 1, "nobody");
        check("2", 2, 1, "nobody");
        check("1 2 3", 2, 1, "1");
        check("1/other 2 3", 3, 1, "2");
        check("1s 2 3t 4", 4, 1, "2");
    }

    #[test]
    fn a_thread_that_was_cleared_away_is_left_unless_somebody_opens_it_again() {
        let _host = serving("1 2 3 4").at(BEGAN + 5 * 60_000).start();
        dated_state::write(&left(&id(1)), &id(2)).expect("it is kept");
        let clear = |number| enter(&id(number), "/w", Source::Clear, None).expect("it is looked at");
        assert_eq!(clear(3), Some(id(2)));
        assert_eq!(clear(4), Some(id(3)));
        enter(&id(1), "/w", Source::Resume, None).expect("it is looked at");
        dated_state::forget(&left(&id(3))).expect("it is forgotten");
        assert_eq!(clear(4), None, "the first one may be on a screen again");
    }

    #[test]
    fn a_process_of_its_own_shows_one_thread_after_another() {
        let _host = Fakes::default().deserted("app-server").at(BEGAN).start();
        let enter = |thread: &str, source, process| enter(thread, "/w", source, process).expect("it is looked at");
        assert_eq!(enter("a", Source::Startup, Some("7.1")), None);
        assert_eq!(enter("x", Source::Startup, Some("8.1")), None);
        assert_eq!(enter("b", Source::Clear, Some("7.1")).as_deref(), Some("a"));
        assert_eq!(enter("b", Source::Compact, Some("7.1")), None);
        assert_eq!(enter("c", Source::Clear, Some("7.1")).as_deref(), Some("b"));
        assert_eq!(enter("d", Source::Clear, None), None, "whose process is not known");
        enter("e", Source::Resume, Some("7.1"));
        assert_eq!(enter("f", Source::Clear, Some("7.1")), None, "it showed two");
        leave("x", Some("8.1")).expect("it is forgotten");
        assert_eq!(enter("y", Source::Clear, Some("8.1")), None, "the one before has ended");
    }

    #[test]
    fn what_runs_alone_is_counted_until_it_ends() {
        let host = Fakes::default().deserted("app-server").at(BEGAN).start();
        let alone = || running_alone().expect("it is counted");
        for thread in ["a", "b", "c"] {
            enter(thread, "/w", Source::Startup, Some(thread)).expect("it is looked at");
        }
        assert_eq!(alone(), 3);
        leave("a", Some("a")).expect("it is forgotten");
        note_headless("b").expect("it is forgotten");
        assert_eq!(alone(), 1);
        host.advance(OWN_LASTS);
        assert_eq!(alone(), 0, "nobody has heard of it for long");
    }
}
