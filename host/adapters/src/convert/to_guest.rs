//! Converts types of the mesh into those of a guest.

use mesh::messages::Priority;
use mesh::messages::receipt::DeliveryStatus;
use mesh::ports::harness as mesh_side;
use mesh::sessions as mesh_session;

use crate::bindings::exports::relay::adapter::{hooks, install, push, sessions};
use crate::bindings::relay::adapter::types;

pub(crate) fn session(session: &mesh_session::Session) -> types::Session {
    types::Session {
        id: session.id.clone(),
        parent: session.parent.clone(),
        workdir: session.workdir.clone(),
        process: session.process,
        route_hint: session.route_hint.clone(),
    }
}

pub(crate) fn occasion(occasion: mesh_side::Occasion) -> types::Occasion {
    match occasion {
        mesh_side::Occasion::Start => types::Occasion::Start,
        mesh_side::Occasion::Registration => types::Occasion::Registration,
        mesh_side::Occasion::Compaction => types::Occasion::Compaction,
        mesh_side::Occasion::Resume => types::Occasion::Resume,
    }
}

pub(crate) fn mail(mail: &mesh_side::Mail) -> types::Mail {
    types::Mail {
        ids: mail.ids.iter().map(ToString::to_string).collect(),
        text: mail.text.clone(),
        priority: match mail.priority {
            Priority::Low => types::Priority::Low,
            Priority::Normal => types::Priority::Normal,
            Priority::High => types::Priority::High,
            Priority::Urgent => types::Priority::Urgent,
        },
    }
}

/// A caller, with the environment already narrowed to what the adapter may see.
pub(crate) fn caller(seen: &mesh_session::Caller, environment: Vec<(String, String)>) -> sessions::Caller {
    sessions::Caller {
        transport: match seen.transport {
            mesh_session::Transport::Stdio => sessions::Transport::Stdio,
            mesh_session::Transport::Http => sessions::Transport::Http,
            mesh_session::Transport::CommandLine => sessions::Transport::CommandLine,
        },
        client_name: seen.client_name.clone(),
        client_version: seen.client_version.clone(),
        meta: seen.meta.clone(),
        headers: seen.headers.clone(),
        tool: seen.tool.clone(),
        arguments: seen.arguments.clone(),
        environment,
        workdir: seen.workdir.clone(),
    }
}

pub(crate) fn receipt(sent: &mesh_side::Delivered) -> push::Receipt {
    push::Receipt {
        status: match sent.status {
            DeliveryStatus::Queued | DeliveryStatus::Stored | DeliveryStatus::Notified => {
                push::DeliveryStatus::Notified
            }
            DeliveryStatus::Accepted => push::DeliveryStatus::Accepted,
            DeliveryStatus::Shown | DeliveryStatus::Read | DeliveryStatus::Acknowledged => push::DeliveryStatus::Shown,
        },
        evidence: sent.evidence.clone(),
    }
}

pub(crate) fn setup(setup: &mesh_side::Setup) -> install::Setup {
    install::Setup {
        action: match setup.action {
            mesh_side::Action::Install => install::Action::Install,
            mesh_side::Action::Remove => install::Action::Remove,
        },
        scope: match setup.scope {
            mesh_side::Scope::Project => install::Scope::Project,
            mesh_side::Scope::User => install::Scope::User,
        },
        server: match &setup.server {
            mesh_side::Server::Stdio(words) => install::Server::Stdio(words.clone()),
            mesh_side::Server::Http(url) => install::Server::Http(url.clone()),
        },
        server_name: setup.server_name.clone(),
        program: setup.program.clone(),
        environment: setup.environment.clone(),
    }
}

/// A hook's call, with the environment already narrowed to what the adapter may see.
pub(crate) fn hook_call(call: &mesh_side::HookCall, environment: Vec<(String, String)>) -> hooks::Call {
    hooks::Call { name: call.name.clone(), payload: call.payload.clone(), environment, process: call.process.clone() }
}

pub(crate) fn findings(found: &mesh_side::Findings) -> hooks::Findings {
    hooks::Findings {
        agent: found.agent.clone(),
        mail: found.mail.as_ref().map(mail),
        protocol: found.protocol.clone(),
        refusal: found.refusal.clone(),
        wake_file: found.wake_file.clone(),
        ticket: found.ticket.clone(),
    }
}
