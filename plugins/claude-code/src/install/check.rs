//! Whether Claude Code is set up for the mesh, by the rules that it reads its own settings by.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use serde_json::Value;

use super::entries::{self, HOOKS, is_our_group, is_our_server};
use super::{project, user};

const AGAIN: &str = "run `relay-mesh install claude-code` again";

/// Where the parts of one scope lie.
struct Place {
    root: Root,
    servers: &'static str,
    hooks: &'static str,
    settings: &'static str,
    server: Value,
    permission: String,
}

/// Looks at every file that has a say.
pub(super) fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
    let name = setup.server_name.as_str();
    let place = match setup.scope {
        Scope::Project => Place {
            root: Root::open("project")?,
            servers: project::SERVERS,
            hooks: project::LOCAL_SETTINGS,
            settings: project::LOCAL_SETTINGS,
            server: entries::committed_server(setup),
            permission: project::permission(name),
        },
        Scope::User => Place {
            root: Root::open("config")?,
            servers: user::SERVERS,
            hooks: user::HOOKS_FILE,
            settings: user::SETTINGS,
            server: entries::personal_server(setup),
            permission: user::permission(name),
        },
    };
    let mut found = Findings::default();
    let servers = found.read(&place.root, place.servers)?;
    let hooks = found.read(&place.root, place.hooks)?;
    let settings =
        if place.settings == place.hooks { hooks.clone() } else { found.read(&place.root, place.settings)? };

    found.server(servers.as_ref(), &place, name);
    found.hooks(hooks.as_ref(), &place, setup);
    let allowed = list(settings.as_ref(), "/permissions/allow");
    if !allowed.contains(&place.permission) {
        found.warn(
            format!(
                "Claude Code asks before each tool of the mesh: `{}` is not allowed in {}",
                place.permission, place.settings
            ),
            AGAIN,
        );
    }
    found.other_settings(setup)?;
    found.duplicates(setup)?;
    Ok(found.all)
}

#[derive(Default)]
struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    fn warn(&mut self, what: String, fix: &str) {
        self.all.push(Finding::warning(what, fix));
    }

    fn broken(&mut self, what: String, fix: &str) {
        self.all.push(Finding::broken(what, fix));
    }

    /// A file's value; none where it is not there or not readable, which is then a finding.
    fn read(&mut self, root: &Root, path: &str) -> Result<Option<Value>, Error> {
        let Some(text) = root.read_text(path)? else { return Ok(None) };
        match Document::parse(Some(&text)) {
            Err(broken) => {
                self.broken(format!("{path}, {broken}"), "mend the file: Claude Code passes over it as it is");
                Ok(None)
            }
            Ok(document) => {
                // We keep comments and trailing commas; Claude Code 2.1.329 drops the whole file for one.
                if let Err(error) = serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
                    self.broken(
                        format!("{path} is not plain JSON, so Claude Code passes over it: {error}"),
                        "take comments and trailing commas out of it",
                    );
                }
                Ok(document.get(&[]))
            }
        }
    }

    fn server(&mut self, servers: Option<&Value>, place: &Place, name: &str) {
        let path = place.servers;
        match servers.and_then(|servers| servers.get("mcpServers")?.get(name)) {
            None => self.broken(format!("{path} has no server named `{name}`"), AGAIN),
            Some(entry) if *entry == place.server => {
                self.all.push(Finding::ok(format!("{path} names the server `{name}`")))
            }
            Some(entry) if is_our_server(entry) => {
                self.warn(format!("the server `{name}` in {path} is of another install"), AGAIN);
            }
            Some(_) => self.broken(
                format!("the server named `{name}` in {path} is not relay-mesh's"),
                "rename that server, then run `relay-mesh install claude-code`",
            ),
        }
        let aliases = servers.and_then(|servers| servers.get("mcpServers")?.as_object());
        for (other, _) in aliases.into_iter().flatten().filter(|(other, entry)| *other != name && is_our_server(entry))
        {
            self.warn(format!("{path} names relay-mesh a second time, as `{other}`"), "take one of the two out");
        }
    }

    fn hooks(&mut self, settings: Option<&Value>, place: &Place, setup: &Setup) {
        let groups = |event: &str| settings.and_then(|settings| settings.get("hooks")?.get(event)?.as_array());
        let has = |event: &str, wanted: &dyn Fn(&Value) -> bool| groups(event).into_iter().flatten().any(wanted);
        let of_event = |wanted: &dyn Fn(&str, &Value) -> bool| -> Vec<&str> {
            HOOKS.iter().map(|hook| hook.event).filter(|event| !has(event, &|group| wanted(event, group))).collect()
        };
        let missing = of_event(&|_, group| is_our_group(group));
        let outdated = of_event(&|event, group| {
            HOOKS.iter().any(|hook| hook.event == event && entries::group(hook, setup) == *group)
        });
        let path = place.hooks;
        if !missing.is_empty() {
            self.broken(format!("{path} lacks our hooks for {}", missing.join(", ")), AGAIN);
        } else if !outdated.is_empty() {
            self.warn(format!("the hooks in {path} for {} are of another install", outdated.join(", ")), AGAIN);
        } else {
            self.all.push(Finding::ok(format!("{path} has all {} hooks", HOOKS.len())));
        }
    }

    /// What other settings files may say against us.
    fn other_settings(&mut self, setup: &Setup) -> Result<(), Error> {
        let name = setup.server_name.as_str();
        let mut approved = false;
        for (root, path) in [
            ("managed", "managed-settings.json"),
            ("config", "settings.json"),
            ("project", ".claude/settings.json"),
            ("project", ".claude/settings.local.json"),
        ] {
            let root = match Root::open(root) {
                Ok(root) => root,
                // Without a project there is no project's file to look at.
                Err(Error::NotFound(_) | Error::Denied(_)) => continue,
                Err(error) => return Err(error),
            };
            let Some(value) = root.read_text(path)?.and_then(|text| Document::parse(Some(&text)).ok()?.get(&[])) else {
                continue;
            };
            let is_set = |flag: &str| value.get(flag) == Some(&Value::Bool(true));
            let file = if root.name() == "managed" { "managed-settings.json of this machine" } else { path };
            if is_set("disableAllHooks") {
                self.broken(format!("{file} turns all hooks off"), "take `disableAllHooks` out of it");
            }
            if is_set("allowManagedHooksOnly") {
                self.broken(
                    format!("{file} allows only hooks that an administrator installed"),
                    "ask your administrator to install the hooks of relay-mesh",
                );
            }
            if list(Some(&value), "/disabledMcpjsonServers").iter().any(|disabled| disabled == name) {
                self.broken(format!("{file} disables the server `{name}`"), "take it out of `disabledMcpjsonServers`");
            }
            approved |= is_set("enableAllProjectMcpServers")
                || list(Some(&value), "/enabledMcpjsonServers").iter().any(|enabled| enabled == name);
        }
        if setup.scope == Scope::Project && !approved {
            self.warn(format!("Claude Code asks whether to use the server `{name}` when a session starts"), AGAIN);
        }
        Ok(())
    }

    /// The same server in two scopes would give every agent each tool twice, and each hook too.
    fn duplicates(&mut self, setup: &Setup) -> Result<(), Error> {
        let config = Root::open("config")?;
        let in_plugin = config.read_text(user::MANIFEST)?.is_some_and(|text| user::is_our_manifest(&text));
        if setup.scope == Scope::Project && in_plugin {
            self.warn(
                "relay-mesh is also installed for every project of this user, so hooks run twice here".to_owned(),
                "run `relay-mesh uninstall claude-code` in this project, or with --user for every project",
            );
        }
        // The person's own list of servers lies there where CLAUDE_CONFIG_DIR is set.
        let own = config.read_text(".claude.json")?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let servers = own.as_ref().and_then(|own| own.get("mcpServers")?.as_object());
        for (other, _) in servers.into_iter().flatten().filter(|(_, entry)| is_our_server(entry)) {
            self.warn(
                format!("relay-mesh is also set up by hand for this user, as the server `{other}`"),
                "run `claude mcp remove --scope user` for it",
            );
        }
        Ok(())
    }
}

/// The texts of a list in a value.
fn list(value: Option<&Value>, pointer: &str) -> Vec<String> {
    let list = value.and_then(|value| value.pointer(pointer)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
