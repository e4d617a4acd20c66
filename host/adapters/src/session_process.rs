//! The process that an adapter names as its session's. A shell below that process is taken for an agent's, and the session
//! lives as long as it: so another adapter than a built-in one may only name a process that shows itself, as one of those
//! that started the hook or the client's own server. Any other is left out, as if it were unknown.

use mesh::ports::harness::{HookEvent, Reading};
use mesh::sessions::{Detection, Session, Transport};

use crate::places::Asker;

/// The processes that an adapter may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nameable {
    /// It is part of the program.
    Any,
    Only(Vec<u32>),
}

impl Nameable {
    /// In a hook, which the harness has started.
    pub(crate) fn by_hook(asker: &Asker) -> Nameable {
        match asker {
            Asker::BuiltIn => Nameable::Any,
            Asker::Stranger { .. } => {
                Nameable::Only(processes::ancestors_in_session().iter().map(|process| process.pid).collect())
            }
        }
    }

    /// For a caller. Above a server of many clients is none of them.
    pub(crate) fn by_caller(asker: &Asker, transport: Transport) -> Nameable {
        match (asker, transport) {
            (Asker::Stranger { .. }, Transport::Http) => Nameable::Only(Vec::new()),
            (Asker::BuiltIn | Asker::Stranger { .. }, _) => Nameable::by_hook(asker),
        }
    }

    pub(crate) fn session(&self, session: Session) -> Session {
        let may_be = |process: &u32| match self {
            Nameable::Any => true,
            Nameable::Only(processes) => processes.contains(process),
        };
        Session { process: session.process.filter(may_be), ..session }
    }

    pub(crate) fn detection(&self, found: Detection) -> Detection {
        Detection { session: self.session(found.session), ..found }
    }

    pub(crate) fn reading(&self, reading: Reading) -> Reading {
        let event = |event: HookEvent| match event {
            HookEvent::Alive(session) => HookEvent::Alive(self.session(session)),
            HookEvent::Rebound { .. }
            | HookEvent::Activity { .. }
            | HookEvent::UserSpoke(_)
            | HookEvent::Stopped(_)
            | HookEvent::Ended(_) => event,
        };
        Reading {
            speaker: reading.speaker.map(|speaker| self.session(speaker)),
            events: reading.events.into_iter().map(event).collect(),
            ..reading
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign_settings::none_installed;

    #[test]
    fn a_session_has_only_a_process_that_shows_itself() {
        let stranger = Asker::Stranger { name: "toad".to_owned(), earlier: none_installed() };
        let of = |process: u32| Session {
            id: "s".to_owned(),
            parent: None,
            workdir: String::new(),
            process: Some(process),
            route_hint: None,
        };
        let (parent, first) = (std::os::unix::process::parent_id(), 1);
        let named = |nameable: &Nameable, process| nameable.session(of(process)).process;
        let hook = Nameable::by_hook(&stranger);
        assert_eq!(named(&hook, first), None, "everybody is below the first process");
        assert_eq!(named(&hook, std::process::id()), None, "the hook itself is no session");
        let shown = Nameable::Only(vec![parent]);
        assert_eq!(named(&shown, parent), Some(parent));
        assert_eq!(named(&Nameable::by_caller(&stranger, Transport::Http), parent), None);
        assert_eq!(named(&Nameable::by_caller(&Asker::BuiltIn, Transport::Http), first), Some(first));
        let reading = Reading {
            speaker: Some(of(first)),
            events: vec![HookEvent::Alive(of(first)), HookEvent::Alive(of(parent))],
            ..Reading::default()
        };
        let reading = shown.reading(reading);
        assert_eq!(reading.speaker.and_then(|speaker| speaker.process), None);
        let alive = |event: &HookEvent| if let HookEvent::Alive(session) = event { session.process } else { None };
        assert_eq!(reading.events.iter().map(alive).collect::<Vec<_>>(), [None, Some(parent)]);
    }
}
