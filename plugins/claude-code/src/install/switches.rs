//! Settings that turn our tools or hooks off, set by the user, a team or an administrator. What counts where
//! was tried with the real client (tests/switches.rs).

use relay_mesh_sdk::checklist::{Checklist, texts};
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Scope, Server, Setup};
use relay_mesh_sdk::{Error, servers};
use serde_json::Value;

use super::user::PLUGIN;

/// The tools without which an agent cannot join, read or write.
const NEEDED: [&str; 3] = ["register_agent", "fetch_messages", "send_message"];
/// An administrator's list of servers, which takes the place of all others.
const MANAGED_SERVERS: &str = "managed-mcp.json";

/// A settings file.
pub(super) struct Source {
    /// What a finding calls it.
    pub(super) file: String,
    pub(super) is_managed: bool,
    pub(super) value: Value,
}

/// What we are called in the settings.
struct Ours<'a> {
    scope: Scope,
    /// Whether a marketplace brings us, and not a folder of the user's.
    of_marketplace: bool,
    setup: &'a Setup,
    /// The server, in rules for permissions.
    rule: String,
    /// The server, in lists of servers.
    label: String,
}

/// Adds what the settings turn off. `permission` is the rule that an install adds.
pub(super) fn check(list: &mut Checklist, setup: &Setup, permission: &str, of_marketplace: bool) -> Result<(), Error> {
    let name = &setup.server_name;
    let label = match setup.scope {
        Scope::Project => name.clone(),
        Scope::User => format!("plugin:{PLUGIN}:{name}"),
    };
    let ours = Ours { scope: setup.scope, of_marketplace, setup, rule: permission.to_owned(), label };
    let sources = sources()?;
    for source in &sources {
        source.hooks(list, &ours);
        source.servers(list, &ours);
        source.permissions(list, &ours);
    }
    allow_list(list, &sources, &ours);
    managed_servers(list)?;
    approval(list, &sources, &ours);
    Ok(())
}

/// All settings files that there are: the administrator's, the user's, the project's, and those of its one user.
pub(super) fn sources() -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    if let Some(root) = opened("managed")? {
        let drop_ins = match root.entries("managed-settings.d") {
            Ok(entries) => entries,
            Err(Error::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut paths: Vec<String> =
            drop_ins.into_iter().map(|entry| format!("managed-settings.d/{}", entry.name)).collect();
        paths.retain(|path| path.ends_with(".json"));
        paths.sort();
        paths.insert(0, "managed-settings.json".to_owned());
        for path in paths {
            let file = format!("{path} of this machine");
            sources.extend(read(&root, &path)?.map(|value| Source { file, is_managed: true, value }));
        }
    }
    for (root, path) in [
        ("config", super::user::SETTINGS),
        ("project", ".claude/settings.json"),
        ("project", super::project::LOCAL_SETTINGS),
    ] {
        if let Some(root) = opened(root)? {
            let found = read(&root, path)?;
            sources.extend(found.map(|value| Source { file: path.to_owned(), is_managed: false, value }));
        }
    }
    if let Some(root) = opened("main-worktree")? {
        let file = format!("{} of the main worktree", super::project::LOCAL_SETTINGS);
        // Without a repository, and in the main worktree itself, it is the project's own.
        let found = read(&root, super::project::LOCAL_SETTINGS)?;
        let found = found.filter(|value| sources.iter().all(|source| source.value != *value));
        sources.extend(found.map(|value| Source { file, is_managed: false, value }));
    }
    Ok(sources)
}

/// A folder; none without a project, or where there is no such folder.
pub(super) fn opened(root: &str) -> Result<Option<Root>, Error> {
    match Root::open(root) {
        Ok(root) => Ok(Some(root)),
        Err(Error::NotFound(_) | Error::Denied(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file's settings. One that does not parse has none, and is another finding.
pub(super) fn read(root: &Root, path: &str) -> Result<Option<Value>, Error> {
    Ok(root.read_text(path)?.and_then(|text| Document::parse(Some(&text)).ok()?.get(&[])))
}

impl Source {
    fn is_set(&self, flag: &str) -> bool {
        self.value.get(flag) == Some(&Value::Bool(true))
    }

    /// What an administrator alone may set.
    fn is_set_for_all(&self, flag: &str) -> bool {
        self.is_managed && self.is_set(flag)
    }

    fn list(&self, key: &str) -> Option<&Vec<Value>> {
        self.value.get(key)?.as_array()
    }

    /// Who can change it, and how.
    fn fix(&self, what: &str) -> String {
        match self.is_managed {
            true => format!("ask your administrator to take {what} out of it"),
            false => format!("remove {what} from it"),
        }
    }

    fn hooks(&self, list: &mut Checklist, ours: &Ours<'_>) {
        let file = &self.file;
        if self.is_set("disableAllHooks") {
            list.broken(format!("{file} turns all hooks off"), self.fix("`disableAllHooks`"));
        }
        if self.is_set_for_all("allowManagedHooksOnly") {
            list.broken(
                format!("{file} allows only hooks that an administrator installed"),
                "ask your administrator to install the hooks of relay-mesh",
            );
        }
        let surfaces = self.value.get("strictPluginOnlyCustomization").filter(|_| self.is_managed);
        let locks = |surface: &str| match surfaces {
            Some(Value::Bool(all)) => *all,
            Some(Value::Array(some)) => some.iter().any(|one| one == surface),
            _ => false,
        };
        let what = "`strictPluginOnlyCustomization`";
        match ours.scope {
            // A plugin in a user's own folder is none of an administrator's.
            Scope::User if !ours.of_marketplace && ["skills", "agents", "hooks", "mcp"].into_iter().any(locks) => {
                list.broken(format!("{file} allows only plugins of a marketplace"), self.fix(what));
            }
            Scope::User => {}
            Scope::Project => {
                if locks("hooks") {
                    list.broken(format!("{file} allows only hooks of plugins"), self.fix(what));
                }
                if locks("mcp") {
                    list.broken(format!("{file} allows only MCP servers of plugins"), self.fix(what));
                }
            }
        }
        if ours.scope == Scope::User && !ours.of_marketplace {
            if self.is_managed && self.list("strictKnownMarketplaces").is_some() {
                let what = "`strictKnownMarketplaces`";
                list.broken(format!("{file} allows only plugins of some marketplaces"), self.fix(what));
            }
            let plugin = format!("{PLUGIN}@skills-dir");
            if self.value.get("enabledPlugins").and_then(|plugins| plugins.get(&plugin)) == Some(&Value::Bool(false)) {
                list.broken(format!("{file} turns the plugin `{plugin}` off"), self.fix("it"));
            }
        }
    }

    fn servers(&self, list: &mut Checklist, ours: &Ours<'_>) {
        let (file, name) = (&self.file, ours.setup.server_name.as_str());
        if ours.scope == Scope::Project && texts(Some(&self.value), "/disabledMcpjsonServers").contains(&name) {
            let fix = self.fix(&format!("`{name}` in `disabledMcpjsonServers`"));
            list.broken(format!("{file} disables the server `{name}`"), fix);
        }
        let denied =
            |entry: &&Value| entry.get("serverName").is_some_and(|name| *name == ours.label) || ours.is_at(entry);
        if let Some(entry) = self.list("deniedMcpServers").into_iter().flatten().find(denied) {
            let fix = self.fix(&format!("`{entry}` in `deniedMcpServers`"));
            list.broken(format!("{file} denies the server `{}`", ours.label), fix);
        }
    }

    fn permissions(&self, list: &mut Checklist, ours: &Ours<'_>) {
        let file = &self.file;
        for rule in texts(Some(&self.value), "/permissions/deny") {
            let denied = ours.tools_of(rule);
            let fix = self.fix(&format!("`{rule}` in `permissions.deny`"));
            match denied.as_slice() {
                [] => {}
                // Without this one there is no agent.
                some if some.contains(&"register_agent") => {
                    list.broken(format!("{file} denies our tools: `{rule}`"), fix)
                }
                some => list.warn(format!("{file} denies the tool `{}`: `{rule}`", some.join("`, `")), fix),
            }
        }
        for rule in texts(Some(&self.value), "/permissions/ask") {
            if !ours.tools_of(rule).is_empty() {
                let fix = self.fix(&format!("`{rule}` in `permissions.ask`"));
                list.warn(format!("Claude Code asks before our tools, as {file} says: `{rule}`"), fix);
            }
        }
        if self.is_set_for_all("allowManagedPermissionRulesOnly")
            && !texts(Some(&self.value), "/permissions/allow").contains(&ours.rule.as_str())
        {
            list.warn(
                format!("Claude Code asks before each tool of the mesh: {file} lets only an administrator allow tools"),
                format!("ask your administrator to allow `{}`", ours.rule),
            );
        }
        if self.value.pointer("/permissions/defaultMode").is_some_and(|mode| mode == "plan") {
            list.warn(
                format!(
                    "sessions begin in plan mode, as {file} says: no tool of ours that changes anything runs in it"
                ),
                "leave plan mode in the session with Shift+Tab",
            );
        }
    }
}

impl Ours<'_> {
    /// Which of the needed tools a rule is about. A rule with a specifier in parentheses is about no tool of a server.
    fn tools_of(&self, rule: &str) -> Vec<&'static str> {
        let is_about = |tool: &&&str| rule == self.rule || matches(rule, &format!("{}__{tool}", self.rule));
        NEEDED.iter().filter(is_about).copied().collect()
    }

    /// Whether an entry of a list of servers names our command or address.
    fn is_at(&self, entry: &Value) -> bool {
        let server = &self.setup.server;
        let Server::Stdio(command) = server else {
            let Server::Http(url) = server else { return false };
            let wanted = entry.get("serverUrl").and_then(Value::as_str);
            return wanted.is_some_and(|wanted| matches(wanted, url));
        };
        let wanted: Vec<&str> = entry
            .get("serverCommand")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // A committed file and a plugin name the program without its folder, and the shell may say which one it is.
        let is_named = self.scope == Scope::Project || self.of_marketplace;
        let is_program = |word: &str| is_named && ["relay-mesh", "${RELAY_MESH_BIN:-relay-mesh}"].contains(&word);
        wanted.split_first().is_some_and(|(program, arguments)| {
            let own = command.first().is_some_and(|own| own == program);
            (own || is_program(program)) && arguments == command.get(1..).unwrap_or_default()
        })
    }
}

/// Lists of what is allowed add up. Where one of them names a command, commands count and names do not; a plugin's
/// server is known by its command alone.
fn allow_list(list: &mut Checklist, sources: &[Source], ours: &Ours<'_>) {
    let only_managed = sources.iter().any(|source| source.is_set_for_all("allowManagedMcpServersOnly"));
    let counting: Vec<(&Source, &Vec<Value>)> = sources
        .iter()
        .filter(|source| source.is_managed || !only_managed)
        .filter_map(|source| Some((source, source.list("allowedMcpServers")?)))
        .collect();
    let Some((first, _)) = counting.first() else { return };
    let key = match ours.setup.server {
        Server::Stdio(_) => "serverCommand",
        Server::Http(_) => "serverUrl",
    };
    let entries = || counting.iter().flat_map(|(_, entries)| entries.iter());
    let by_place = ours.scope == Scope::User || entries().any(|entry| entry.get(key).is_some());
    let named = |entry: &Value| entry.get("serverName").is_some_and(|name| *name == ours.label);
    if !entries().any(|entry| if by_place { ours.is_at(entry) } else { named(entry) }) {
        let what = if by_place { format!("its `{key}`") } else { format!("{{\"serverName\": \"{}\"}}", ours.label) };
        let fix = match first.is_managed {
            true => format!("ask your administrator to add {what} to `allowedMcpServers`"),
            false => format!("add {what} to `allowedMcpServers`"),
        };
        list.broken(format!("{} does not allow the server `{}`", first.file, ours.label), fix);
    }
}

/// Where an administrator lists servers, there are no others.
fn managed_servers(list: &mut Checklist) -> Result<(), Error> {
    let Some(value) = opened("managed")?.map(|root| read(&root, MANAGED_SERVERS)).transpose()?.flatten() else {
        return Ok(());
    };
    let servers = value.get("mcpServers").and_then(Value::as_object);
    if !servers.into_iter().flatten().any(|(_, entry)| servers::is_ours(entry)) {
        list.broken(
            format!("{MANAGED_SERVERS} of this machine has its own list of servers, and ours is not in it"),
            "ask your administrator to add relay-mesh to it",
        );
    }
    Ok(())
}

fn approval(list: &mut Checklist, sources: &[Source], ours: &Ours<'_>) {
    let name = ours.setup.server_name.as_str();
    let approves = |source: &Source| {
        source.is_set("enableAllProjectMcpServers")
            || texts(Some(&source.value), "/enabledMcpjsonServers").contains(&name)
    };
    if ours.scope == Scope::Project && !sources.iter().any(approves) {
        list.warn(
            format!("Claude Code asks whether to use the server `{name}` when a session starts"),
            super::check::AGAIN,
        );
    }
}

/// Whether a text is what a pattern says, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, is_one) in [
            ("mcp__relay-mesh", "mcp__relay-mesh", true),
            ("mcp__relay-mesh", "mcp__relay-mesh__send_message", false),
            ("*", "mcp__relay-mesh__send_message", true),
            ("mcp__*", "mcp__relay-mesh__send_message", true),
            ("mcp__*__send_*", "mcp__relay-mesh__send_message", true),
            ("mcp__*__read_*", "mcp__relay-mesh__send_message", false),
            ("*message", "mcp__relay-mesh__send_message", true),
            ("mcp__relay*h__*_message", "mcp__relay-mesh__send_message", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, text), is_one, "{pattern} {text}");
        }
    }
}
