//! The user's event hooks. They are in a file beside the user's settings, so a project cannot bring its own, and each
//! holds for one named mesh, as permissions do.

use std::path::Path;

use mesh::event_hooks::{EventHook, HookAction, HookMatch, HookTrigger};
use mesh::names::AgentName;
use mesh::ports::machine::Instant;
use serde::Deserialize;

use super::allowed_commands::Meant;
use super::user_file::{self, UserFile};
use super::{ConfigError, Settings};
use crate::environment::Environment;
use crate::shapes::rfc3339;

/// Relative to the configuration folder.
const FILE: &str = "relay-mesh/hooks.toml";
const HEAD: &str = "# What is done when something happens on the mesh, by `relay-mesh on`. Each entry counts for the mesh that it\n\
                    # names. A `secret` signs the requests of a webhook: keep this file to yourself.\n";
/// The line that an entry begins with.
const ENTRY: &str = "[[hook]]";
/// How long a command may take if nothing else is said, in seconds.
pub(crate) const USUAL_TIMEOUT: u64 = 60;

/// The user's event hooks for one mesh.
#[derive(Clone, Debug)]
pub(crate) struct EventHooks {
    file: UserFile,
    mesh: Meant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    hook: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    on: HookTrigger,
    agent: Option<AgentName>,
    harness: Option<String>,
    #[serde(rename = "match")]
    matches: Option<String>,
    run: Option<String>,
    tell: Option<String>,
    post: Option<String>,
    #[serde(default)]
    notify: bool,
    timeout: Option<u64>,
    secret: Option<String>,
    since: String,
    mesh: String,
}

impl EventHooks {
    /// The user's file; it need not exist.
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Result<EventHooks, ConfigError> {
        Ok(EventHooks { file: UserFile::of(FILE, HEAD, environment)?, mesh: Meant::of(settings) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn listed(&self) -> Result<Vec<EventHook>, ConfigError> {
        let mesh = self.mesh.words();
        let entries = self.file.parse::<File>(&self.file.text()?)?.hook.into_iter().filter(|entry| entry.mesh == mesh);
        entries.map(|entry| self.hook(entry)).collect()
    }

    /// Adds hooks, all or none.
    pub(crate) fn add(&self, hooks: &[EventHook]) -> Result<(), ConfigError> {
        let _alone = self.file.alone()?;
        let text = self.file.text()?;
        // A file with an error is left as it is.
        self.file.parse::<File>(&text)?;
        let entries: Vec<String> = hooks.iter().map(|hook| self.written(hook)).collect();
        self.file.write_with_private(&text, &entries.join("\n"))
    }

    /// Removes a hook; none if no hook of this mesh has that id.
    pub(crate) fn remove(&self, id: &str) -> Result<Option<EventHook>, ConfigError> {
        let _alone = self.file.alone()?;
        let text = self.file.text()?;
        let (mesh, file) = (self.mesh.words(), self.file.parse::<File>(&text)?);
        let goes: Vec<bool> = file.hook.iter().map(|entry| entry.mesh == mesh && entry.id == id).collect();
        let Some(entry) = file.hook.iter().zip(&goes).find(|(_, goes)| **goes).map(|(entry, _)| entry.clone()) else {
            return Ok(None);
        };
        let kept = user_file::without(&text, ENTRY, &goes).ok_or_else(|| {
            self.file.invalid("its entries are not written one by one, so it cannot be changed here".to_owned())
        })?;
        self.file.write(&kept)?;
        self.hook(entry).map(Some)
    }

    fn hook(&self, entry: Entry) -> Result<EventHook, ConfigError> {
        let Entry { id, on, agent, harness, matches, run, tell, post, notify, timeout, secret, since, mesh: _ } = entry;
        let invalid = |what: &str| self.file.invalid(format!("the hook `{id}` {what}"));
        let actions = [
            run.map(HookAction::Run),
            tell.map(HookAction::Tell),
            post.map(HookAction::Post),
            notify.then_some(HookAction::Notify),
        ];
        let mut actions = actions.into_iter().flatten();
        let (Some(action), None) = (actions.next(), actions.next()) else {
            return Err(invalid("has to do one thing: run, tell, post or notify"));
        };
        let matches = matches.map(|text| text.parse::<HookMatch>()).transpose();
        let matches = matches.map_err(|error| invalid(&format!("has no pattern: {error}")))?;
        let since = humantime::parse_rfc3339(&since).ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let since = since.ok_or_else(|| invalid("has no time since when it counts"))?;
        let since = Instant(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        let timeout = timeout.unwrap_or(USUAL_TIMEOUT).saturating_mul(1_000);
        Ok(EventHook { id: id.clone(), on, agent, harness, matches, action, timeout, secret, since })
    }

    fn written(&self, hook: &EventHook) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let EventHook { id, on, agent, harness, matches, action, timeout, secret, since } = hook;
        let mut text = format!("{ENTRY}\nid = {}\non = \"{on}\"\n", quoted(id));
        let mut field = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.push_str(&format!("{name} = {}\n", quoted(value)));
            }
        };
        field("agent", agent.as_ref().map(AgentName::as_str));
        field("harness", harness.as_deref());
        field("match", matches.as_ref().map(HookMatch::as_str));
        match action {
            HookAction::Run(command) => field("run", Some(command)),
            HookAction::Tell(to) => field("tell", Some(to)),
            HookAction::Post(url) => field("post", Some(url)),
            HookAction::Notify => {}
        }
        field("secret", secret.as_deref());
        field("since", Some(&rfc3339(*since)));
        field("mesh", Some(&self.mesh.words()));
        if *action == HookAction::Notify {
            text.push_str("notify = true\n");
        }
        if *timeout != USUAL_TIMEOUT * 1_000 {
            text.push_str(&format!("timeout = {}\n", timeout.div_ceil(1_000)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(id: &str, action: HookAction) -> EventHook {
        EventHook {
            id: id.to_owned(),
            on: HookTrigger::FileChanged,
            agent: Some("alice".parse().expect("a name")),
            harness: Some("codex".to_owned()),
            matches: Some("*.rs".parse().expect("a pattern")),
            action,
            timeout: 5_000,
            secret: Some("whsec_c2VjcmV0".to_owned()),
            since: Instant(1_700_000_000_123),
        }
    }

    #[test]
    fn a_file_whose_hooks_are_one_array_is_refused_and_stays_as_it_is() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hooks.toml");
        let here = EventHooks { file: UserFile::at(path.clone(), HEAD), mesh: Meant::Servers("m".to_owned()) };
        let text = "hook = [{ id = 'x', on = 'ended', notify = true, since = '2026-01-01T00:00:00Z', mesh = 'm' }]\n";
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        let error = here.add(&[hook("h1", HookAction::Notify)]).expect_err("refused").to_string();
        assert!(error.contains("its entries are not written one by one"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), text);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o644);
        assert_eq!(here.listed().expect("listed").len(), 1);
    }

    #[test]
    fn hooks_are_kept_as_they_were_given_for_one_mesh_and_removed_one_by_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let of = |mesh: &str| EventHooks {
            file: UserFile::at(folder.path().join("hooks.toml"), HEAD),
            mesh: Meant::Servers(mesh.to_owned()),
        };
        let (here, elsewhere) = (of("files:/home/u"), of("nats://b"));
        let hooks = [
            hook("h1", HookAction::Run("lint \"$RELAY_FILE\" 'it''s' \\ \n second line".to_owned())),
            hook("h2", HookAction::Tell("#audit".to_owned())),
            hook("h3", HookAction::Post("https://example.org/hook".to_owned())),
            EventHook { agent: None, harness: None, matches: None, secret: None, ..hook("h4", HookAction::Notify) },
        ];
        here.add(&hooks).expect("added");
        elsewhere.add(&hooks[..1]).expect("added");
        assert_eq!(here.listed().expect("listed"), hooks);
        let mode = std::fs::metadata(here.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "secrets are in it");
        assert_eq!(here.remove("h1").expect("removed"), Some(hooks[0].clone()));
        assert_eq!(here.remove("h1").expect("nothing"), None);
        assert_eq!(here.listed().expect("listed"), hooks[1..]);
        assert_eq!(elsewhere.listed().expect("listed"), hooks[..1]);
        let text = std::fs::read_to_string(here.path()).expect("there");
        for (wrong, expected) in [
            ("notify = true\n", "has to do one thing"),
            ("match = \"[a\"\nnotify = true\n", "no pattern"),
            ("whatever = 1\n", "unknown field"),
        ] {
            let entry = format!(
                "{ENTRY}\nid = \"x\"\non = \"ended\"\nsince = \"2026-01-01T00:00:00Z\"\nmesh = \"files:/home/u\"\n"
            );
            let wrong = if wrong.starts_with("notify") {
                format!("{entry}tell = \"a\"\n{wrong}")
            } else {
                format!("{entry}{wrong}")
            };
            std::fs::write(here.path(), format!("{text}\n{wrong}")).expect("written");
            let error = here.listed().expect_err("wrong").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
