//! Which terminals may have a session on screen, if it runs in another process than its terminal: then it goes on when
//! its terminal is closed, and would do what mail asks for while nobody sees it.
//!
//! No harness says which terminal shows what. What is known: a terminal shows one session at a time, and a prompt of the
//! user comes from one of the terminals that are open.

use store::{Durability, StoreError};

use crate::core::Core;
use crate::ports::harness::ClientTraces;
use crate::ports::machine::{Life, Process, Terminal};
use crate::sessions::record;
use crate::sessions::{SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// What shows that a session is on screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownBy {
    /// Its user typed in it.
    Prompt,
    /// It was opened again.
    Opened,
}

/// Whether nobody has a session on screen any more. False if that is not known.
pub(crate) fn is_unseen(core: &Core, record: &SessionRecord) -> bool {
    let has_ended = |process: &Process| record::life_of(core, record, *process) == Life::Ended;
    record.screens.as_ref().is_some_and(|screens| screens.iter().all(has_ended))
}

/// Notes which terminals may have a session on screen now.
pub(crate) async fn note(
    core: &Core,
    traces: &ClientTraces,
    session: &SessionRef,
    by: ShownBy,
) -> Result<(), StoreError> {
    let Some(program) = &traces.terminal else { return Ok(()) };
    let terminals = core.machine.terminals(program);
    let Some(own) = record::session_record(core, session).await? else { return Ok(()) };
    if terminals.is_empty() || own.parent.is_some() {
        return Ok(());
    }
    let others = record::live_sessions(core).await?.into_iter().map(|(other, _)| other);
    let others: Vec<SessionRecord> = others
        .filter(|other| other.session.harness == session.harness && other.session != *session)
        .filter(|other| other.screens.is_some())
        .collect();
    let taken: Vec<Process> = others.iter().filter_map(only_screen).collect();
    let before = own.screens.as_deref().filter(|_| by == ShownBy::Prompt).unwrap_or_default();
    let screens = candidates(&terminals, &own, before, &taken);
    if let [screen] = screens.as_slice() {
        // Whatever it showed before, it shows this session now.
        for other in others.iter().filter(|other| other.screens.iter().flatten().any(|process| process == screen)) {
            let rest = other.screens.iter().flatten().copied().filter(|process| process != screen).collect();
            set(core, &other.session, rest).await?;
        }
    }
    if own.screens.as_ref() == Some(&screens) {
        return Ok(());
    }
    set(core, session, screens).await
}

/// Notes it without a sign of life: another session's prompt may be what tells it.
async fn set(core: &Core, session: &SessionRef, screens: Vec<Process>) -> Result<(), StoreError> {
    let change = |old: Option<SessionRecord>| match old {
        Some(record) => (Next::Put(SessionRecord { screens: Some(screens.clone()), ..record }), ()),
        None => (Next::Keep, ()),
    };
    records::update(core.local.as_ref(), &keys::session(session), Durability::Process, change).await
}

/// The terminal of a session of which only one is possible.
fn only_screen(record: &SessionRecord) -> Option<Process> {
    match record.screens.as_deref() {
        Some([screen]) => Some(*screen),
        Some(_) | None => None,
    }
}

/// The terminals that may show a session: one that was opened for it by its id, else those that were possible before,
/// else those in its folder that show no other session.
fn candidates(terminals: &[Terminal], own: &SessionRecord, before: &[Process], taken: &[Process]) -> Vec<Process> {
    let named = terminals.iter().filter(|terminal| terminal.arguments.contains(&own.session.id));
    let named: Vec<Process> = named.map(|terminal| terminal.process).collect();
    let here = |terminal: &&Terminal| terminal.folder.as_os_str() == own.workdir.as_str();
    let mut possible: Vec<Process> = terminals.iter().filter(here).map(|terminal| terminal.process).collect();
    if possible.is_empty() {
        possible = terminals.iter().map(|terminal| terminal.process).collect();
    }
    let kept: Vec<Process> =
        before.iter().copied().filter(|process| terminals.iter().any(|one| one.process == *process)).collect();
    if before.is_empty() && !named.is_empty() {
        return named;
    }
    if !kept.is_empty() {
        return kept;
    }
    let free: Vec<Process> = possible.iter().copied().filter(|process| !taken.contains(process)).collect();
    if free.is_empty() { possible } else { free }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> Process {
        Process { pid, start: 1, space: None }
    }

    /// `2/w` runs in `/w`; `3/w:s1` was opened there for the session `s1`.
    fn terminal(text: &str) -> Terminal {
        let (pid, rest) = text.split_once('/').expect("a folder");
        let (folder, argument) = rest.split_once(':').unwrap_or((rest, ""));
        let arguments = if argument.is_empty() { Vec::new() } else { vec!["resume".to_owned(), argument.to_owned()] };
        Terminal { process: process(pid.parse().expect("a number")), folder: format!("/{folder}").into(), arguments }
    }

    fn check(terminals: &str, before: &[u32], taken: &[u32], expected: &[u32]) {
        let terminals: Vec<Terminal> = terminals.split_whitespace().map(terminal).collect();
        let own = SessionRecord {
            workdir: "/w".to_owned(),
            ..SessionRecord::new(SessionRef { harness: "h".to_owned(), id: "s1".to_owned() }, Default::default())
        };
        let of = |pids: &[u32]| pids.iter().map(|pid| process(*pid)).collect::<Vec<_>>();
        let found = candidates(&terminals, &own, &of(before), &of(taken));
        assert_eq!(found, of(expected), "{terminals:?}, before {before:?}, taken {taken:?}");
    }

    #[test]
    fn a_terminal_may_show_a_session_unless_it_shows_another() {
        check("1/w", &[], &[], &[1]);
        check("1/w 2/other", &[], &[], &[1]);
        check("1/w 2/w", &[], &[], &[1, 2]);
        check("1/w 2/w", &[], &[1], &[2]);
        check("1/w", &[], &[1], &[1]);
        check("1/w 2/w", &[1], &[], &[1]);
        check("2/w", &[1], &[], &[2]);
        check("1/w 2/w:s1", &[], &[], &[2]);
        check("1/w 2/w:s1", &[1], &[], &[1]);
        check("1/elsewhere", &[], &[], &[1]);
    }
}
