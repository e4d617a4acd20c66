//! Which route to try next for a message: a pure decision from its history.

use crate::delivery::wake_file::ROUTE;
use crate::messages::Priority;
use crate::messages::receipt::DeliveryHistory;
use crate::ports::harness::Route;
use crate::ports::machine::Instant;
use crate::sessions::Activity;

/// How often the wake file is written for a message. More than once, since a session that has just started, was cleared
/// or has gone into another folder does not watch its wake file yet.
const MOST_RINGS: u32 = 5;
/// So many of them come before the next route. The others come when every route has been tried, each after so many times
/// as long as the one before.
const RINGS_AT_FIRST: u32 = 2;
const LATER: u64 = 6;

/// The next step for a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextRoute {
    /// No route is left, or none fits the session's activity. A change of either triggers a new decision.
    Nothing,
    /// The last route still has time until its timeout.
    Wait(Instant),
    /// The index of the next route.
    Try(usize),
}

/// Routes are tried in order, each once except the wake file. The next one follows only after the last one refused or
/// timed out. A session that waits for its user gets nothing, and a route is skipped for mail below its `least`
/// priority.
pub(super) fn next_step(
    now: Instant,
    history: &DeliveryHistory,
    priority: Priority,
    routes: &[Route],
    activity: Activity,
) -> NextRoute {
    match activity {
        Activity::NeedsInput | Activity::Ended => return NextRoute::Nothing,
        Activity::Idle | Activity::Busy => {}
    }
    let mut once_more = None;
    for (index, route) in routes.iter().enumerate().filter(|(_, route)| route.least <= priority) {
        match history.tried.get(&route.name) {
            Some((times, at)) => {
                let refused = refusal(history, route).is_some();
                let until = at.plus(u64::from(route.timeout));
                if !refused && now < until {
                    return NextRoute::Wait(until);
                }
                if route.name == ROUTE && *times < MOST_RINGS && route.when.contains(&activity) {
                    if *times < RINGS_AT_FIRST {
                        return NextRoute::Try(index);
                    }
                    once_more = Some((index, at.plus(u64::from(route.timeout) * LATER.pow(*times - 1))));
                }
            }
            None if route.when.contains(&activity) => return NextRoute::Try(index),
            None => {}
        }
    }
    match once_more {
        Some((_, at)) if now < at => NextRoute::Wait(at),
        Some((index, _)) => NextRoute::Try(index),
        None => NextRoute::Nothing,
    }
}

/// Why a message cannot be delivered to a session: every route refused it and none ever accepted it. `None` otherwise.
pub(super) fn refused_by_all(history: &DeliveryHistory, priority: Priority, routes: &[Route]) -> Option<String> {
    let mut routes = routes.iter().filter(|route| route.least <= priority).peekable();
    if routes.peek().is_none() || !is_untouched(history) {
        return None;
    }
    let refusals: Option<Vec<String>> = routes.map(|route| refusal(history, route)).collect();
    Some(format!("no route took it: {}", refusals?.join("; ")))
}

/// Why a route refused a message; `None` if it did not.
fn refusal(history: &DeliveryHistory, route: &Route) -> Option<String> {
    let (_, reason, _) = history.refused.iter().rfind(|(name, ..)| *name == route.name)?;
    Some(format!("{} ({reason})", route.name))
}

/// Whether a message is only stored, and was not yet reported as undeliverable.
pub(super) fn is_untouched(history: &DeliveryHistory) -> bool {
    history.reached.is_empty() && history.undeliverable.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::receipt::{DeliveryStatus, Event};
    use crate::ports::harness::Carries;

    fn routes() -> Vec<Route> {
        let route = |name: &str, when: &[Activity], timeout| Route {
            name: name.to_owned(),
            carries: Carries::Notification,
            proves: DeliveryStatus::Notified,
            when: when.to_vec(),
            least: Priority::Normal,
            max_bytes: 1_000,
            timeout,
        };
        vec![
            route("socket", &[Activity::Idle, Activity::Busy], 5_000),
            route("queue", &[Activity::Idle], 1_000),
            route("notification", &[Activity::Idle, Activity::Busy], 0),
        ]
    }

    fn check(now: u64, tried: &[(&str, u64)], refused: &[&str], activity: Activity, expected: &str) {
        let mut history = DeliveryHistory::default();
        for (route, at) in tried {
            let status = Event::Status { status: DeliveryStatus::Notified, route: (*route).to_owned(), evidence: None };
            history.take(Instant(*at), status);
        }
        for route in refused {
            history.take(Instant(now), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
        }
        let routes = routes();
        let step = match next_step(Instant(now), &history, Priority::Normal, &routes, activity) {
            NextRoute::Nothing => "nothing".to_owned(),
            NextRoute::Wait(until) => format!("wait until {}", until.0),
            NextRoute::Try(route) => format!("try {}", routes[route].name),
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
        let mut history = DeliveryHistory::default();
        history.take(Instant(10), Event::Refused { route: "socket".to_owned(), reason: "no".to_owned() });
        let step = |began| {
            next_step(Instant(100), &history.since(Instant(began)), Priority::Normal, &routes(), Activity::Idle)
        };
        assert_eq!(step(10), NextRoute::Try(1), "this session refused it");
        assert_eq!(step(11), NextRoute::Try(0), "the one before did");
    }

    #[test]
    fn the_wake_file_is_written_twice_before_the_next_route_and_later_again() {
        let wake_file = [Route { name: ROUTE.to_owned(), ..routes().remove(0) }, routes().remove(2)];
        let step = |now, status_at: &[u64]| {
            let mut history = DeliveryHistory::default();
            for at in status_at {
                let status =
                    Event::Status { status: DeliveryStatus::Notified, route: ROUTE.to_owned(), evidence: None };
                history.take(Instant(*at), status);
            }
            next_step(Instant(now), &history, Priority::Normal, &wake_file, Activity::Idle)
        };
        assert_eq!(step(0, &[]), NextRoute::Try(0));
        assert_eq!(step(4_999, &[0]), NextRoute::Wait(Instant(5_000)));
        assert_eq!(step(5_000, &[0]), NextRoute::Try(0));
        assert_eq!(step(9_999, &[0, 5_000]), NextRoute::Wait(Instant(10_000)));
        assert_eq!(step(10_000, &[0, 5_000]), NextRoute::Try(1));
        let told = |now, status_at: &[u64]| {
            let mut history = DeliveryHistory::default();
            for (route, at) in status_at.iter().map(|at| (ROUTE, *at)).chain([("notification", 10_000)]) {
                let status =
                    Event::Status { status: DeliveryStatus::Notified, route: route.to_owned(), evidence: None };
                history.take(Instant(at), status);
            }
            next_step(Instant(now), &history, Priority::Normal, &wake_file, Activity::Idle)
        };
        assert_eq!(told(34_999, &[0, 5_000]), NextRoute::Wait(Instant(35_000)), "every route has been tried");
        assert_eq!(told(35_000, &[0, 5_000]), NextRoute::Try(0));
        assert_eq!(told(40_000, &[0, 5_000, 35_000]), NextRoute::Wait(Instant(215_000)));
        assert_eq!(told(9_999_999, &[0, 5_000, 35_000, 215_000, 1_295_000]), NextRoute::Nothing);
    }

    #[test]
    fn what_each_route_refused_is_given_up_once() {
        let refused = |routes: &[&str]| {
            let mut history = DeliveryHistory::default();
            for route in routes {
                history.take(Instant(0), Event::Refused { route: (*route).to_owned(), reason: "no".to_owned() });
            }
            history
        };
        let all = refused(&["socket", "queue", "notification"]);
        let why = "no route took it: socket (no); queue (no); notification (no)";
        assert_eq!(refused_by_all(&all, Priority::Normal, &routes()).as_deref(), Some(why));
        assert_eq!(refused_by_all(&refused(&["socket", "queue"]), Priority::Normal, &routes()), None, "one is left");
        assert_eq!(
            refused_by_all(&DeliveryHistory::default(), Priority::Normal, &[]),
            None,
            "a harness without routes fetches its mail"
        );
        for (event, what) in [
            (Event::Undeliverable { reason: why.to_owned() }, "it was said before"),
            (
                Event::Status { status: DeliveryStatus::Notified, route: "wake-file".to_owned(), evidence: None },
                "the wake file was written",
            ),
        ] {
            let mut history = all.clone();
            history.take(Instant(1), event);
            assert_eq!(refused_by_all(&history, Priority::Normal, &routes()), None, "{what}");
        }
    }

    #[test]
    fn a_route_that_breaks_into_a_turn_is_for_urgent_mail_alone() {
        let steer = Route { name: "steer".to_owned(), least: Priority::Urgent, ..routes().remove(0) };
        let routes = [steer, routes().remove(2)];
        let step = |priority| next_step(Instant(0), &DeliveryHistory::default(), priority, &routes, Activity::Busy);
        assert_eq!(step(Priority::Urgent), NextRoute::Try(0));
        assert_eq!(step(Priority::High), NextRoute::Try(1));
        let mut history = DeliveryHistory::default();
        history.take(Instant(0), Event::Refused { route: "notification".to_owned(), reason: "no".to_owned() });
        assert_eq!(refused_by_all(&history, Priority::Urgent, &routes), None, "one is left");
        let why = "no route took it: notification (no)";
        assert_eq!(refused_by_all(&history, Priority::Normal, &routes).as_deref(), Some(why), "none was there for it");
    }

    #[test]
    fn a_session_that_waits_for_its_person_is_left_alone() {
        check(0, &[], &[], Activity::NeedsInput, "nothing");
        check(0, &[], &[], Activity::Ended, "nothing");
    }
}
