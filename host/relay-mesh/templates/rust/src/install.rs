//! Sets {{title}} up for the mesh and removes the setup. The adapter plans the edits. The host shows the plan to
//! the user, applies all of it or nothing, and can undo it.

use relay_mesh_sdk::checklist::Checklist;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Server, Setup, is_hook_line};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::servers::{self, Refused};
use relay_mesh_sdk::{Error, Install, hook_settings, programs};
use serde_json::{Map, Value, json};

use crate::Harness;

/// The adapter's name in our hooks.
const NAME: &str = "{{name}}";
const TITLE: &str = "{{title}}";
/// The property that lists the MCP servers.
const SERVERS: &str = "mcpServers";
const EVENTS: [&str; 6] = ["session-start", "prompt", "before-tool", "after-tool", "turn-end", "session-end"];
/// The program in a project's settings, which a team commits: it holds nothing of one machine.
const COMMITTED_PROGRAM: &str = "${RELAY_MESH_BIN:-relay-mesh}";

impl Install for Harness {
    fn present() -> Result<Option<String>, Error> {
        programs::version("version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let (root, path) = settings(setup.scope)?;
        draft.jsonc(&root, path, |settings: &mut Document| {
            servers::put(settings, SERVERS, &setup.server_name, &server(setup))?;
            hook_settings::put(settings, &hooks(setup), is_our_hook)?;
            Ok::<(), Refused>(())
        })?;
        if !draft.changes_nothing() {
            draft.next_step(format!("Start a new {TITLE} session; one that runs already knows nothing of the mesh."));
            draft.tell_token(setup, TITLE);
        }
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let (root, path) = settings(setup.scope)?;
        draft.prune(&root, path, |settings| {
            // In the reverse order of the install.
            hook_settings::take(settings, is_our_hook);
            servers::take(settings, SERVERS, &setup.server_name);
        })
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        let again = format!("run `relay-mesh install {NAME}` again");
        let (root, path) = settings(setup.scope)?;
        let mut list = Checklist::default();
        let settings = list.read(&root, path, TITLE)?.map(|(_, value)| value);
        list.server(settings.as_ref(), path, (SERVERS, &setup.server_name), &server(setup), &again);
        list.hooks(settings.as_ref(), path, &hooks(setup), is_our_hook, &again);
        Ok(list.finish())
    }
}

/// The one file that holds servers and hooks.
fn settings(scope: Scope) -> Result<(Root, &'static str), Error> {
    Ok(match scope {
        Scope::Project => (Root::open("project")?, ".{{name}}/settings.json"),
        Scope::User => (Root::open("config")?, "settings.json"),
    })
}

fn server(setup: &Setup) -> Value {
    match &setup.server {
        Server::Http(url) => json!({"url": url, "headers": {"Authorization": "Bearer ${RELAY_MESH_TOKEN}"}}),
        Server::Stdio(command) => {
            let program = match setup.scope {
                Scope::Project => COMMITTED_PROGRAM,
                Scope::User => command.first().map_or("relay-mesh", String::as_str),
            };
            let mut entry = json!({"command": program, "args": command.get(1..).unwrap_or_default()});
            if setup.scope == Scope::User && !setup.environment.is_empty() {
                let variables: Map<String, Value> =
                    setup.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
                entry["env"] = Value::Object(variables);
            }
            entry
        }
    }
}

fn hooks(setup: &Setup) -> Vec<(&'static str, Value)> {
    let line = |event: &str| match setup.scope {
        Scope::Project => setup.committed_hook_line(NAME, event),
        Scope::User => setup.hook_line(NAME, event),
    };
    EVENTS.map(|event| (event, json!({"command": line(event)}))).to_vec()
}

/// Whether a hook is ours, of this install or an older one. The program's path does not matter.
fn is_our_hook(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|command| is_hook_line(command, NAME))
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::install::Action;
    use relay_mesh_sdk::testing::{self, Fakes, carry_out, setup};

    use super::*;

    #[test]
    fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
        let recorded = include_str!("../fixtures/settings/with-comments/project/.{{name}}/settings.json");
        for scope in [Scope::Project, Scope::User] {
            for theirs in testing::SETTINGS.iter().chain([&recorded]) {
                let folders = Fakes::default().file("project", ".{{name}}/settings.json", *theirs);
                let host = folders.file("config", "settings.json", *theirs).start();
                let before = host.files();
                assert_ne!(carry_out::<Harness>(&host, &setup(Action::Install, scope)), "");
                assert_eq!(carry_out::<Harness>(&host, &setup(Action::Install, scope)), "", "again, on {theirs}");
                let found = Harness::check(&setup(Action::Install, scope)).expect("it is checked");
                assert_eq!(testing::complaints(&found), "");
                carry_out::<Harness>(&host, &setup(Action::Remove, scope));
                assert_eq!(host.files(), before, "{scope:?} on {theirs}");
            }
        }
    }

    #[test]
    fn a_team_commits_nothing_of_this_machine() {
        let host = Fakes::default().root("project").start();
        carry_out::<Harness>(&host, &setup(Action::Install, Scope::Project));
        let settings = host.text("project", ".{{name}}/settings.json").expect("settings");
        assert!(!settings.contains("/opt/") && !settings.contains("/srv/"), "{settings}");
    }
}
