//! Which route a message takes next: a decision from its ladder, with nothing looked up.

use crate::delivery::wake_file::ROUTE;
use crate::messages::Priority;
use crate::messages::receipt::Ladder;
use crate::ports::harness::Route;
use crate::ports::machine::Instant;
use crate::sessions::Activity;

/// How often the bell is rung for a message. More than once, for a session that has only just
/// begun does not watch its bell yet.
const MOST_RINGS: u32 = 2;

/// What to do about one message now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No route is left, or none fits what the session does. A change of either is looked at again.
    Nothing,
    /// The route tried last still has time to work.
    Wait(Instant),
    /// This route is next.
    Try(usize),
}

/// Routes are tried in order, each once but for the bell, and the next one only when the last one's patience has run
/// out or it refused. A session that waits for its person is left alone, and a route is left out for mail that is
/// less urgent than what it carries.
pub(super) fn next_step(
    now: Instant,
    ladder: &Ladder,
    priority: Priority,
    routes: &[Route],
    activity: Activity,
) -> Step {
    match activity {
        Activity::AwaitingHuman | Activity::Gone => return Step::Nothing,
        Activity::Idle | Activity::Busy => {}
    }
    for (index, route) in routes.iter().enumerate().filter(|(_, route)| route.least <= priority) {
        match ladder.tried.get(&route.name) {
            Some((times, at)) => {
                let refused = refusal(ladder, route).is_some();
                let until = at.plus(u64::from(route.patience));
                if !refused && now < until {
                    return Step::Wait(until);
                }
                if route.name == ROUTE && *times < MOST_RINGS && route.when.contains(&activity) {
                    return Step::Try(index);
                }
            }
            None if route.when.contains(&activity) => return Step::Try(index),
            None => {}
        }
    }
    Step::Nothing
}

/// Why a message cannot be brought to a session, where each of its routes has refused it and none
/// has ever taken it.
pub(super) fn refused_by_all(ladder: &Ladder, priority: Priority, routes: &[Route]) -> Option<String> {
    let mut routes = routes.iter().filter(|route| route.least <= priority).peekable();
    if routes.peek().is_none() || !is_untouched(ladder) {
        return None;
    }
    let refusals: Option<Vec<String>> = routes.map(|route| refusal(ladder, route)).collect();
    Some(format!("no route took it: {}", refusals?.join("; ")))
}

/// What a route said when it refused a message; none where it did not.
fn refusal(ladder: &Ladder, route: &Route) -> Option<String> {
    let (_, reason, _) = ladder.refused.iter().rfind(|(name, ..)| *name == route.name)?;
    Some(format!("{} ({reason})", route.name))
}

/// Whether a message is stored and no more, its sender not yet told why.
pub(super) fn is_untouched(ladder: &Ladder) -> bool {
    ladder.climbed.is_empty() && ladder.undeliverable.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::receipt::{Event, Rung};
    use crate::ports::harness::Load;

    fn routes() -> Vec<Route> {
        let route = |name: &str, when: &[Activity], patience| Route {
            name: name.to_owned(),
            load: Load::Bell,
            proves: Rung::Offered,
            when: when.to_vec(),
            least: Priority::Normal,
            room: 1_000,
            patience,
        };
        vec![
            route("socket", &[Activity::Idle, Activity::Busy], 5_000),
            route("queue", &[Activity::Idle], 1_000),
            route("notification", &[Activity::Idle, Activity::Busy], 0),
        ]
    }

    fn check(now: u64, tried: &[(&str, u64)], refused: &[&str], activity: Activity, expected: &str) {
        let mut ladder = Ladder::default();
        for (route, at) in tried {
            let rung = Event::Rung { rung: Rung::Offered, route: (*route).to_owned(), evidence: None };
            ladder.take(Instant(*at), rung);
        }
        for route in refused {
            ladder.take(Instant(now), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
        }
        let routes = routes();
        let step = match next_step(Instant(now), &ladder, Priority::Normal, &routes, activity) {
            Step::Nothing => "nothing".to_owned(),
            Step::Wait(until) => format!("wait until {}", until.0),
            Step::Try(route) => format!("try {}", routes[route].name),
        };
        assert_eq!(step, expected);
    }

    #[test]
    fn routes_are_tried_in_order_and_with_patience() {
        check(0, &[], &[], Activity::Idle, "try socket");
        check(4_999, &[("socket", 0)], &[], Activity::Idle, "wait until 5000");
        check(5_000, &[("socket", 0)], &[], Activity::Idle, "try queue");
        check(5_000, &[("socket", 0)], &[], Activity::Busy, "try notification");
        check(100, &[], &["socket"], Activity::Idle, "try queue");
        check(5_500, &[("socket", 0), ("queue", 5_000)], &[], Activity::Idle, "wait until 6000");
        check(9_000, &[("socket", 0), ("queue", 5_000), ("notification", 8_000)], &[], Activity::Idle, "nothing");
    }

    #[test]
    fn what_was_tried_in_an_earlier_session_is_tried_again() {
        let mut ladder = Ladder::default();
        ladder.take(Instant(10), Event::Refused { route: "socket".to_owned(), reason: "no".to_owned() });
        let step =
            |began| next_step(Instant(100), &ladder.since(Instant(began)), Priority::Normal, &routes(), Activity::Idle);
        assert_eq!(step(10), Step::Try(1), "this session refused it");
        assert_eq!(step(11), Step::Try(0), "the one before did");
    }

    #[test]
    fn the_bell_is_rung_once_more_before_the_next_route() {
        let bell = [Route { name: ROUTE.to_owned(), ..routes().remove(0) }, routes().remove(2)];
        let step = |now, rung_at: &[u64]| {
            let mut ladder = Ladder::default();
            for at in rung_at {
                let rung = Event::Rung { rung: Rung::Offered, route: ROUTE.to_owned(), evidence: None };
                ladder.take(Instant(*at), rung);
            }
            next_step(Instant(now), &ladder, Priority::Normal, &bell, Activity::Idle)
        };
        assert_eq!(step(0, &[]), Step::Try(0));
        assert_eq!(step(4_999, &[0]), Step::Wait(Instant(5_000)));
        assert_eq!(step(5_000, &[0]), Step::Try(0));
        assert_eq!(step(9_999, &[0, 5_000]), Step::Wait(Instant(10_000)));
        assert_eq!(step(10_000, &[0, 5_000]), Step::Try(1));
    }

    #[test]
    fn what_each_route_refused_is_given_up_once() {
        let refused = |routes: &[&str]| {
            let mut ladder = Ladder::default();
            for route in routes {
                ladder.take(Instant(0), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
            }
            ladder
        };
        let all = refused(&["socket", "queue", "notification"]);
        let why = "no route took it: socket (no); queue (no); notification (no)";
        assert_eq!(refused_by_all(&all, Priority::Normal, &routes()).as_deref(), Some(why));
        assert_eq!(refused_by_all(&refused(&["socket", "queue"]), Priority::Normal, &routes()), None, "one is left");
        assert_eq!(
            refused_by_all(&Ladder::default(), Priority::Normal, &[]),
            None,
            "a harness without routes fetches its mail"
        );
        for (event, what) in [
            (Event::Undeliverable { reason: why.to_owned() }, "it was said before"),
            (Event::Rung { rung: Rung::Offered, route: "bell".to_owned(), evidence: None }, "the bell was rung"),
        ] {
            let mut ladder = all.clone();
            ladder.take(Instant(1), event);
            assert_eq!(refused_by_all(&ladder, Priority::Normal, &routes()), None, "{what}");
        }
    }

    #[test]
    fn a_route_that_breaks_into_a_turn_is_for_urgent_mail_alone() {
        let steer = Route { name: "steer".to_owned(), least: Priority::Urgent, ..routes().remove(0) };
        let routes = [steer, routes().remove(2)];
        let step = |priority| next_step(Instant(0), &Ladder::default(), priority, &routes, Activity::Busy);
        assert_eq!(step(Priority::Urgent), Step::Try(0));
        assert_eq!(step(Priority::High), Step::Try(1));
        let mut ladder = Ladder::default();
        ladder.take(Instant(0), Event::Refused { route: "notification".to_owned(), reason: "no".to_owned() });
        assert_eq!(refused_by_all(&ladder, Priority::Urgent, &routes), None, "one is left");
        let why = "no route took it: notification (no)";
        assert_eq!(refused_by_all(&ladder, Priority::Normal, &routes).as_deref(), Some(why), "none was there for it");
    }

    #[test]
    fn a_session_that_waits_for_its_person_is_left_alone() {
        check(0, &[], &[], Activity::AwaitingHuman, "nothing");
        check(0, &[], &[], Activity::Gone, "nothing");
    }
}
