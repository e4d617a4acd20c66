//! Converts a guest's answers into types of the mesh.

use mesh::messages::Priority;
use mesh::messages::receipt::DeliveryStatus;
use mesh::ports::harness as mesh_side;
use mesh::sessions as mesh_session;

use crate::bindings::exports::relay::adapter::{hooks, identity, install, push, sessions};
use crate::bindings::relay::adapter::types;

pub(crate) fn about(about: identity::About) -> mesh_side::About {
    mesh_side::About {
        harness: about.harness,
        title: about.title,
        version: about.version,
        aliases: about.aliases,
        connection_per_session: about.connection_per_session,
    }
}

pub(crate) fn error(error: types::Error) -> mesh_side::HarnessError {
    use crate::host_functions::log::plain;
    match error {
        types::Error::NotFound(what) => mesh_side::HarnessError::NotFound(plain(&what)),
        types::Error::Denied(what) => mesh_side::HarnessError::Denied(plain(&what)),
        types::Error::Unsupported(what) => mesh_side::HarnessError::Unsupported(plain(&what)),
        types::Error::Busy(milliseconds) => mesh_side::HarnessError::Busy(milliseconds),
        types::Error::Failed(what) => mesh_side::HarnessError::Failed(plain(&what)),
    }
}

pub(crate) fn session(session: types::Session) -> mesh_session::Session {
    mesh_session::Session {
        id: session.id,
        parent: session.parent,
        workdir: session.workdir,
        process: session.process,
        route_hint: session.route_hint,
    }
}

pub(crate) fn detection(detection: sessions::Detection) -> mesh_session::Detection {
    mesh_session::Detection {
        session: session(detection.session),
        certainty: match detection.certainty {
            sessions::Certainty::Certain => mesh_session::Certainty::Certain,
            sessions::Certainty::Inherited => mesh_session::Certainty::Inherited,
        },
    }
}

pub(crate) fn activity(activity: types::Activity) -> mesh_session::Activity {
    match activity {
        types::Activity::Idle => mesh_session::Activity::Idle,
        types::Activity::Busy => mesh_session::Activity::Busy,
        types::Activity::NeedsInput => mesh_session::Activity::NeedsInput,
        types::Activity::Ended => mesh_session::Activity::Ended,
    }
}

pub(crate) fn occasion(occasion: types::Occasion) -> mesh_side::Occasion {
    match occasion {
        types::Occasion::Start => mesh_side::Occasion::Start,
        types::Occasion::Registration => mesh_side::Occasion::Registration,
        types::Occasion::Compaction => mesh_side::Occasion::Compaction,
        types::Occasion::Resume => mesh_side::Occasion::Resume,
    }
}

fn status(status: push::DeliveryStatus) -> DeliveryStatus {
    match status {
        push::DeliveryStatus::Notified => DeliveryStatus::Notified,
        push::DeliveryStatus::Accepted => DeliveryStatus::Accepted,
        push::DeliveryStatus::Shown => DeliveryStatus::Shown,
    }
}

fn priority(priority: types::Priority) -> Priority {
    match priority {
        types::Priority::Low => Priority::Low,
        types::Priority::Normal => Priority::Normal,
        types::Priority::High => Priority::High,
        types::Priority::Urgent => Priority::Urgent,
    }
}

pub(crate) fn route(route: push::Route) -> mesh_side::Route {
    mesh_side::Route {
        name: route.name,
        carries: match route.carries {
            push::Carries::Message => mesh_side::Carries::Message,
            push::Carries::Notification => mesh_side::Carries::Notification,
        },
        proves: status(route.proves),
        when: route.when.into_iter().map(activity).collect(),
        least: priority(route.least),
        max_bytes: route.max_bytes,
        timeout: route.timeout_ms,
    }
}

pub(crate) fn delivered(receipt: push::Receipt) -> mesh_side::Delivered {
    mesh_side::Delivered { status: status(receipt.status), evidence: receipt.evidence }
}

pub(crate) fn plan(plan: install::Plan) -> mesh_side::Plan {
    let edit = |edit: install::Edit| mesh_side::Edit {
        root: edit.root,
        path: edit.path,
        before: edit.before,
        after: edit.after,
        executable: edit.executable,
    };
    mesh_side::Plan { edits: plan.edits.into_iter().map(edit).collect(), next_steps: plan.next_steps }
}

pub(crate) fn finding(finding: install::Finding) -> mesh_side::Finding {
    mesh_side::Finding {
        severity: match finding.severity {
            install::Severity::Ok => mesh_side::Severity::Ok,
            install::Severity::Warning => mesh_side::Severity::Warning,
            install::Severity::Broken => mesh_side::Severity::Broken,
        },
        what: finding.what,
        fix: finding.fix,
    }
}

pub(crate) fn reading(reading: hooks::Reading) -> mesh_side::Reading {
    let event = |event: hooks::Event| match event {
        hooks::Event::Alive(seen) => mesh_side::HookEvent::Alive(session(seen)),
        hooks::Event::Activity((session, now)) => mesh_side::HookEvent::Activity { session, activity: activity(now) },
        hooks::Event::Rebound((from, to)) => mesh_side::HookEvent::Rebound { from, to },
        hooks::Event::UserSpoke(session) => mesh_side::HookEvent::UserSpoke(session),
        hooks::Event::Stopped(session) => mesh_side::HookEvent::Stopped(session),
        hooks::Event::Ended(session) => mesh_side::HookEvent::Ended(session),
    };
    mesh_side::Reading {
        speaker: reading.speaker.map(session),
        events: reading.events.into_iter().map(event).collect(),
        occasion: reading.occasion.map(occasion),
        max_bytes: reading.max_bytes,
        attended: reading.attended,
        watches_wake_file: reading.watches_wake_file,
        edits: reading.edits,
    }
}

pub(crate) fn reply(reply: hooks::Reply) -> mesh_side::Reply {
    mesh_side::Reply {
        stdout: reply.stdout,
        stderr: reply.stderr,
        exit_code: reply.exit_code,
        shows_mail: reply.shows_mail,
    }
}
