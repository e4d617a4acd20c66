//! Bounds on what an adapter answers, so that no answer fills the data folder or keeps the mesh waiting. They lie far
//! above what a harness needs. An answer beyond one is the adapter's error, and nothing of it is used.

use mesh::ports::harness::{Delivered, Finding, HarnessError, HookEvent, Plan, Reading, Route};
use mesh::sessions::{Detection, Session};

/// Sessions that a harness may have, and that one hook may tell of.
const SESSIONS: usize = 10_000;
const EVENTS: usize = 256;
/// Routes to one session, and files that one hook is about to write.
const ROUTES: usize = 16;
const EDITS: usize = 10_000;
/// Files that an install changes, and lines of a check.
const PLANNED: usize = 256;
const FINDINGS: usize = 256;
/// Bytes of an id or a name, of a path, of a hint or a sentence, and of evidence.
const NAME: usize = 256;
const PATH: usize = 4_096;
const NOTE: usize = 8_192;
const EVIDENCE: usize = 65_536;
/// The longest that a route is waited for, in milliseconds. A route that asks for more gets this.
pub(crate) const PATIENCE: u32 = 120_000;

/// The bounds for the answers of the adapter with this name.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a>(pub(crate) &'a str);

impl Bounds<'_> {
    pub(crate) fn session(self, session: Session) -> Result<Session, HarnessError> {
        self.id(&session.id)?;
        session.parent.iter().try_for_each(|parent| self.id(parent))?;
        self.at_most("bytes of a session's folder", session.workdir.len(), PATH)?;
        self.at_most("bytes of a route hint", session.route_hint.as_ref().map_or(0, String::len), NOTE)?;
        Ok(session)
    }

    pub(crate) fn detection(self, found: Detection) -> Result<Detection, HarnessError> {
        Ok(Detection { session: self.session(found.session)?, ..found })
    }

    pub(crate) fn sessions(self, sessions: Vec<Session>) -> Result<Vec<Session>, HarnessError> {
        self.at_most("sessions", sessions.len(), SESSIONS)?;
        sessions.into_iter().map(|session| self.session(session)).collect()
    }

    pub(crate) fn reading(self, reading: Reading) -> Result<Reading, HarnessError> {
        self.at_most("events of one hook", reading.events.len(), EVENTS)?;
        self.at_most("files of one hook", reading.edits.len(), EDITS)?;
        reading.edits.iter().try_for_each(|path| self.at_most("bytes of a path", path.len(), PATH))?;
        for event in &reading.events {
            match event {
                HookEvent::Alive(session) => self.session(session.clone()).map(drop)?,
                HookEvent::Rebound { from, to } => self.id(from).and_then(|()| self.id(to))?,
                HookEvent::Activity { session: id, .. }
                | HookEvent::UserSpoke(id)
                | HookEvent::Stopped(id)
                | HookEvent::Ended(id) => self.id(id)?,
            }
        }
        let speaker = reading.speaker.map(|speaker| self.session(speaker)).transpose()?;
        Ok(Reading { speaker, ..reading })
    }

    pub(crate) fn routes(self, routes: Vec<Route>) -> Result<Vec<Route>, HarnessError> {
        self.at_most("routes", routes.len(), ROUTES)?;
        routes.iter().try_for_each(|route| self.id(&route.name))?;
        let patient = |route: Route| Route { timeout: route.timeout.min(PATIENCE), ..route };
        Ok(routes.into_iter().map(patient).collect())
    }

    pub(crate) fn delivered(self, delivered: Delivered) -> Result<Delivered, HarnessError> {
        self.at_most("bytes of evidence", delivered.evidence.as_ref().map_or(0, String::len), EVIDENCE)?;
        Ok(delivered)
    }

    pub(crate) fn plan(self, plan: Plan) -> Result<Plan, HarnessError> {
        self.at_most("files of a plan", plan.edits.len(), PLANNED)?;
        self.at_most("next steps", plan.next_steps.len(), FINDINGS)?;
        plan.next_steps.iter().try_for_each(|step| self.at_most("bytes of a next step", step.len(), NOTE))?;
        Ok(plan)
    }

    pub(crate) fn findings(self, found: Vec<Finding>) -> Result<Vec<Finding>, HarnessError> {
        self.at_most("findings", found.len(), FINDINGS)?;
        for finding in &found {
            let texts = [Some(&finding.what), finding.fix.as_ref()];
            texts.into_iter().flatten().try_for_each(|text| self.at_most("bytes of a finding", text.len(), NOTE))?;
        }
        Ok(found)
    }

    /// An id becomes part of a file's name and of what people are shown.
    fn id(self, id: &str) -> Result<(), HarnessError> {
        if id.is_empty() || id.chars().any(char::is_control) {
            return Err(self.refused(format!("the id `{}`, which is empty or cannot be shown", id.escape_debug())));
        }
        self.at_most("bytes of an id", id.len(), NAME)
    }

    fn at_most(self, what: &str, found: usize, most: usize) -> Result<(), HarnessError> {
        match found <= most {
            true => Ok(()),
            false => Err(self.refused(format!("{found} {what}: {most} are allowed"))),
        }
    }

    fn refused(self, what: String) -> HarnessError {
        HarnessError::Failed(format!("the adapter `{}` answered with {what}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use mesh::messages::Priority;
    use mesh::messages::receipt::DeliveryStatus;
    use mesh::ports::harness::{Carries, Severity};

    use super::*;

    const OF_X: Bounds<'_> = Bounds("x");

    fn session(id: &str) -> Session {
        Session { id: id.to_owned(), parent: None, workdir: "/w".to_owned(), process: None, route_hint: None }
    }

    #[track_caller]
    fn check<T: std::fmt::Debug>(outcome: Result<T, HarnessError>, expected: &str) {
        let told = outcome.map_or_else(|error| error.to_string(), |_| "allowed".to_owned());
        assert!(told.contains(expected), "{told}");
    }

    #[test]
    fn a_session_is_named_by_a_short_word() {
        check(OF_X.session(session("s1")), "allowed");
        check(OF_X.session(session("")), "is empty or cannot be shown");
        check(OF_X.session(session("a\nb")), "the id `a\\nb`, which is empty or cannot be shown");
        check(OF_X.session(session(&"s".repeat(257))), "the adapter `x` answered with 257 bytes of an id: 256 are");
        check(OF_X.session(Session { workdir: "w".repeat(4_097), ..session("s") }), "4097 bytes of a session's folder");
        check(OF_X.session(Session { parent: Some(String::new()), ..session("s") }), "is empty");
        check(OF_X.session(Session { route_hint: Some("h".repeat(9_000)), ..session("s") }), "bytes of a route hint");
        check(OF_X.sessions(vec![session("s"); SESSIONS + 1]), "10001 sessions: 10000 are allowed");
    }

    #[test]
    fn a_hook_tells_of_a_few_sessions() {
        let events = |count: usize| Reading {
            events: (0..count).map(|number| HookEvent::Ended(format!("s{number}"))).collect(),
            ..Reading::default()
        };
        check(OF_X.reading(events(256)), "allowed");
        check(OF_X.reading(events(257)), "257 events of one hook: 256 are allowed");
        let of = |event: HookEvent| Reading { events: vec![event], ..Reading::default() };
        check(OF_X.reading(of(HookEvent::Alive(session("")))), "is empty");
        check(OF_X.reading(of(HookEvent::Stopped("x".repeat(300)))), "300 bytes of an id");
        check(OF_X.reading(of(HookEvent::Rebound { from: "a".into(), to: String::new() })), "is empty");
        check(OF_X.reading(Reading { speaker: Some(session("\u{7}")), ..Reading::default() }), "cannot be shown");
        check(OF_X.reading(Reading { edits: vec!["/f".into(); EDITS + 1], ..Reading::default() }), "files of one hook");
    }

    #[test]
    fn a_route_is_not_waited_for_without_end() {
        let route = Route {
            name: "socket".into(),
            carries: Carries::Message,
            proves: DeliveryStatus::Shown,
            when: Vec::new(),
            least: Priority::Low,
            max_bytes: 1,
            timeout: u32::MAX,
        };
        let found = OF_X.routes(vec![route.clone()]).expect("allowed");
        assert_eq!(found[0].timeout, PATIENCE);
        check(OF_X.routes(vec![route; 17]), "17 routes: 16 are allowed");
    }

    #[test]
    fn what_is_kept_and_shown_is_bounded() {
        let delivered = |bytes: usize| Delivered { status: DeliveryStatus::Shown, evidence: Some("e".repeat(bytes)) };
        check(OF_X.delivered(delivered(EVIDENCE)), "allowed");
        check(OF_X.delivered(delivered(EVIDENCE + 1)), "65537 bytes of evidence");
        let finding = |bytes: usize| Finding { severity: Severity::Ok, what: "f".repeat(bytes), fix: None };
        check(OF_X.findings(vec![finding(1); 257]), "257 findings");
        check(OF_X.findings(vec![finding(NOTE + 1)]), "bytes of a finding");
        let plan = Plan { edits: Vec::new(), next_steps: vec!["s".repeat(NOTE + 1)] };
        check(OF_X.plan(plan), "bytes of a next step");
    }
}
