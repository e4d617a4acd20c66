//! The settings of threads of tools: `[codex]`, and roles (`[roles.NAME]`). A project may name roles and narrow what they
//! may do; it widens nothing that the user's own settings say, and names no program and no prompt file outside of itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mesh::ports::driver::Approvals;
use mesh::ports::runner::Reach;
use serde::{Deserialize, Deserializer};

use super::file::Duration;
use super::{ConfigError, Origin, Setting};
use crate::environment::Environment;
use crate::errors::Explain;
use crate::exit::Exit;

/// How long a turn may take if nothing else is said, in milliseconds.
const TIMEOUT: u64 = 300_000;
/// The name of new threads if nothing else is said.
const IDENTITY: &str = "codex";

/// What one origin says of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadValues {
    pub(crate) codex: CodexValues,
    pub(crate) roles: BTreeMap<String, RoleValues>,
}

/// `[codex]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct CodexValues {
    identity: Option<String>,
    role: Option<String>,
    timeout: Option<Milliseconds>,
    model: Option<String>,
    effort: Option<String>,
    sandbox: Option<Sandbox>,
    approval_policy: Option<Policy>,
    base_instructions: Option<PathBuf>,
    developer_instructions: Option<PathBuf>,
    /// The user's alone, as the next.
    program: Option<PathBuf>,
    allow: Option<Vec<String>>,
}

/// `[roles.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct RoleValues {
    harness: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    sandbox: Option<Sandbox>,
    approval_policy: Option<Policy>,
    base_instructions: Option<PathBuf>,
    developer_instructions: Option<PathBuf>,
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Milliseconds(u64);

impl<'de> Deserialize<'de> for Milliseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Milliseconds, D::Error> {
        let Duration(milliseconds) = Duration::deserialize(deserializer)?;
        Ok(Milliseconds(milliseconds))
    }
}

/// What a thread may change, by Codex's words or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sandbox(Reach);

impl Sandbox {
    fn named(text: &str) -> Result<Sandbox, String> {
        let reach = match text {
            "read-only" => Reach::Look,
            "workspace-write" => Reach::Edit,
            "danger-full-access" => Reach::Unguarded,
            ours => ours.parse::<Reach>().map_err(|_| {
                format!("`{text}` is no sandbox: read-only, workspace-write, work or danger-full-access")
            })?,
        };
        Ok(Sandbox(reach))
    }

    fn as_str(self) -> &'static str {
        match self.0 {
            Reach::Look => "read-only",
            Reach::Edit => "workspace-write",
            Reach::Work => "work",
            Reach::Unguarded => "danger-full-access",
        }
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sandbox, D::Error> {
        Sandbox::named(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Who answers what a thread asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Policy {
    OnRequest,
    Never,
}

impl Policy {
    fn as_str(self) -> &'static str {
        match self {
            Policy::OnRequest => "on-request",
            Policy::Never => "never",
        }
    }
}

/// The settings of threads, with what each origin says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadSettings {
    layers: Vec<(Origin, ThreadValues)>,
    /// The user's own file, for hints.
    own_file: Option<String>,
}

/// What a new thread gets where its caller says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadDefaults {
    pub(crate) harness: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) reach: Reach,
    pub(crate) approvals: Approvals,
    pub(crate) base: Option<PathBuf>,
    pub(crate) instructions: Option<PathBuf>,
}

/// No role has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the settings have no role `{name}`")]
pub(crate) struct UnknownRole {
    name: String,
    known: Vec<String>,
    /// The user's own file.
    own_file: Option<String>,
}

impl Explain for UnknownRole {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self.known.as_slice() {
            [] => {
                let file = self.own_file.as_deref().unwrap_or("your own settings");
                format!("write `[roles.{}]` into {file}", self.name)
            }
            known => format!("there are {}", known.join(", ")),
        })
    }
}

impl ThreadSettings {
    pub(super) fn of(layers: impl IntoIterator<Item = (Origin, ThreadValues)>) -> ThreadSettings {
        let layers = layers.into_iter().filter(|(_, values)| *values != ThreadValues::default()).collect();
        ThreadSettings { layers, own_file: None }
    }

    pub(super) fn name_own_file(&mut self, path: String) {
        self.own_file = Some(path);
    }

    /// The name of new threads.
    pub(crate) fn identity(&self) -> Setting<String> {
        self.pick(|codex| codex.identity.clone())
            .unwrap_or_else(|| Setting { value: IDENTITY.to_owned(), origin: Origin::Default })
    }

    /// The role of threads that name none.
    pub(crate) fn role(&self) -> Option<String> {
        self.pick(|codex| codex.role.clone()).map(|role| role.value)
    }

    /// How long a turn may take, in milliseconds.
    pub(crate) fn timeout(&self) -> u64 {
        self.pick(|codex| codex.timeout).map_or(TIMEOUT, |timeout| timeout.value.0)
    }

    /// The program that is Codex. A project names none.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        self.pick(|codex| codex.program.clone()).map(|program| program.value)
    }

    /// Whether the user's own settings allow what is refused otherwise: `approval-policy=never`, `config.KEY`.
    pub(crate) fn allows(&self, what: &str) -> bool {
        let allowed = self.pick(|codex| codex.allow.clone());
        allowed.is_some_and(|allowed| allowed.value.iter().any(|allowed| allowed == what))
    }

    /// What a new thread gets, of a role if one is named.
    pub(crate) fn defaults(&self, role: Option<&str>) -> Result<ThreadDefaults, UnknownRole> {
        let mut roles = Vec::new();
        if let Some(name) = role {
            let of_it =
                |(origin, values): &(Origin, ThreadValues)| Some((origin.clone(), values.roles.get(name)?.clone()));
            roles = self.layers.iter().filter_map(of_it).collect();
            if roles.is_empty() {
                let known = self.layers.iter().flat_map(|(_, values)| values.roles.keys().cloned()).collect();
                return Err(UnknownRole { name: name.to_owned(), known, own_file: self.own_file.clone() });
            }
        }
        let all: Vec<(Origin, RoleValues)> = roles
            .into_iter()
            .chain(self.layers.iter().map(|(origin, values)| (origin.clone(), values.codex.as_role())))
            .collect();
        let first = |is_it: fn(&Origin) -> bool| all.iter().filter(move |(origin, _)| is_it(origin));
        let is_project = |origin: &Origin| matches!(origin, Origin::Project(_));
        let is_own = |origin: &Origin| !matches!(origin, Origin::Project(_));
        let own_reach = first(is_own).find_map(|(_, role)| role.sandbox).map_or(Reach::Look, |sandbox| sandbox.0);
        let reach =
            first(is_project).find_map(|(_, role)| role.sandbox).map_or(own_reach, |Sandbox(p)| p.min(own_reach));
        let own_policy = first(is_own).find_map(|(_, role)| role.approval_policy).unwrap_or(Policy::OnRequest);
        let policy = match first(is_project).find_map(|(_, role)| role.approval_policy) {
            Some(Policy::OnRequest) => Policy::OnRequest,
            Some(Policy::Never) if self.allows("approval-policy=never") => Policy::Never,
            Some(Policy::Never) | None => own_policy,
        };
        Ok(ThreadDefaults {
            harness: all.iter().find_map(|(_, role)| role.harness.clone()),
            model: all.iter().find_map(|(_, role)| role.model.clone()),
            effort: all.iter().find_map(|(_, role)| role.effort.clone()),
            reach,
            approvals: match policy {
                Policy::OnRequest => Approvals::Ask,
                Policy::Never => Approvals::Refuse,
            },
            base: all.iter().find_map(|(_, role)| role.base_instructions.clone()),
            instructions: all.iter().find_map(|(_, role)| role.developer_instructions.clone()),
        })
    }

    /// Every value that is set, with its strongest origin, and the defaults that count otherwise.
    pub(super) fn listed(&self) -> Vec<(Cow<'static, str>, String, Origin)> {
        let identity = self.identity();
        let timeout = std::time::Duration::from_millis(self.timeout());
        let origin = self.pick(|codex| codex.timeout).map_or(Origin::Default, |timeout| timeout.origin);
        let mut lines = vec![
            ("codex.identity".into(), identity.value, identity.origin),
            ("codex.timeout".into(), humantime::format_duration(timeout).to_string(), origin),
        ];
        let mut add = |key: String, value: String, origin: &Origin| {
            if !lines.iter().any(|(known, ..): &(Cow<'_, str>, _, _)| *known == key) {
                lines.push((key.into(), value, origin.clone()));
            }
        };
        for (origin, ThreadValues { codex, roles }) in &self.layers {
            let own = [
                ("role", codex.role.clone()),
                ("program", codex.program.as_ref().map(|program| program.display().to_string())),
                ("allow", codex.allow.as_ref().map(|allow| allow.join(" "))),
            ];
            for (key, value) in own.into_iter().chain(codex.as_role().words()) {
                value.into_iter().for_each(|value| add(format!("codex.{key}"), value, origin));
            }
            for (name, role) in roles {
                for (key, value) in role.words() {
                    value.into_iter().for_each(|value| add(format!("roles.{name}.{key}"), value, origin));
                }
            }
        }
        lines
    }

    fn pick<T>(&self, get: impl Fn(&CodexValues) -> Option<T>) -> Option<Setting<T>> {
        self.layers
            .iter()
            .find_map(|(origin, values)| get(&values.codex).map(|value| Setting { value, origin: origin.clone() }))
    }
}

impl CodexValues {
    /// What flags say. The timeout is in milliseconds.
    pub(crate) fn of_flags(identity: Option<String>, role: Option<String>, timeout: Option<u64>) -> CodexValues {
        CodexValues { identity, role, timeout: timeout.map(Milliseconds), ..CodexValues::default() }
    }

    fn as_role(&self) -> RoleValues {
        RoleValues {
            harness: None,
            model: self.model.clone(),
            effort: self.effort.clone(),
            sandbox: self.sandbox,
            approval_policy: self.approval_policy,
            base_instructions: self.base_instructions.clone(),
            developer_instructions: self.developer_instructions.clone(),
        }
    }
}

impl RoleValues {
    fn words(&self) -> [(&'static str, Option<String>); 7] {
        let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        [
            ("harness", self.harness.clone()),
            ("model", self.model.clone()),
            ("effort", self.effort.clone()),
            ("sandbox", self.sandbox.map(|sandbox| sandbox.as_str().to_owned())),
            ("approval-policy", self.approval_policy.map(|policy| policy.as_str().to_owned())),
            ("base-instructions", shown(&self.base_instructions)),
            ("developer-instructions", shown(&self.developer_instructions)),
        ]
    }

    fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.base_instructions.iter_mut().chain(self.developer_instructions.iter_mut())
    }
}

impl ThreadValues {
    /// The same with every path changed.
    #[must_use]
    pub(super) fn with_paths(mut self, change: impl Fn(PathBuf) -> PathBuf) -> ThreadValues {
        // A bare name is looked up on the path.
        let program = self.codex.program.as_mut().filter(|program| program.components().count() > 1);
        let codex = [self.codex.base_instructions.as_mut(), self.codex.developer_instructions.as_mut(), program];
        let of_codex = codex.into_iter().flatten();
        for path in of_codex.chain(self.roles.values_mut().flat_map(RoleValues::files)) {
            *path = change(std::mem::take(path));
        }
        self
    }

    /// What of it a project may not set; none if it is all the project's. `file` is its settings file.
    pub(super) fn not_the_projects(&self, file: &Path) -> Option<&'static str> {
        let folder = file.parent().unwrap_or(file);
        let mut values = self.clone();
        let is_outside = |path: &Path| {
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let top = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            !real.starts_with(top) || path.components().any(|part| part == std::path::Component::ParentDir)
        };
        let codex = values.codex.as_role();
        values.roles.insert(String::new(), codex);
        if self.codex.program.is_some() {
            Some("codex.program")
        } else if self.codex.allow.is_some() {
            Some("codex.allow")
        } else if values.roles.values_mut().flat_map(RoleValues::files).any(|path| is_outside(path)) {
            Some("a prompt file outside of the project")
        } else {
            None
        }
    }

    pub(super) fn of_environment(environment: &Environment) -> Result<ThreadValues, ConfigError> {
        let text = |name: &str| environment.get(name).map(str::to_owned);
        let wrong = |name: &'static str, why: String| ConfigError::Variable {
            name,
            value: environment.get(name).unwrap_or_default().to_owned(),
            why,
        };
        const TIME: &str = "RELAY_CODEX_TIMEOUT";
        const SANDBOX: &str = "RELAY_CODEX_SANDBOX";
        let time = |text: String| {
            let time = crate::duration::typed(&text).and_then(|time| u64::try_from(time.as_millis()).ok());
            time.map(Milliseconds).ok_or_else(|| wrong(TIME, "write it as in `10m`".to_owned()))
        };
        let codex = CodexValues {
            identity: text("RELAY_CODEX_IDENTITY"),
            role: text("RELAY_CODEX_ROLE"),
            timeout: text(TIME).map(time).transpose()?,
            model: text("RELAY_CODEX_MODEL"),
            effort: text("RELAY_CODEX_EFFORT"),
            sandbox: text(SANDBOX)
                .map(|named| Sandbox::named(&named).map_err(|why| wrong(SANDBOX, why)))
                .transpose()?,
            ..CodexValues::default()
        };
        Ok(ThreadValues { codex, roles: BTreeMap::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Settings, Values};

    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        codex: CodexValues,
        #[serde(default)]
        roles: BTreeMap<String, RoleValues>,
    }

    fn values(text: &str) -> ThreadValues {
        let File { codex, roles } = toml::from_str(text).expect("well formed");
        ThreadValues { codex, roles }
    }

    fn settings(flags: &str, project: &str, user: &str) -> ThreadSettings {
        let (project_file, user_file) = ("/p/.relay-mesh.toml".into(), "/u/config.toml".into());
        ThreadSettings::of([
            (Origin::Flags, values(flags)),
            (Origin::Project(project_file), values(project)),
            (Origin::User(user_file), values(user)),
        ])
    }

    #[test]
    fn f3_f12_the_strongest_origin_counts() {
        let three = settings("codex.identity = 'flag'", "codex.identity = 'project'", "codex.identity = 'user'");
        assert_eq!(three.identity().value, "flag");
        assert_eq!(settings("", "codex.identity = 'project'", "codex.identity = 'user'").identity().value, "project");
        assert_eq!(settings("", "", "codex.timeout = '10m'").timeout(), 600_000);
        assert_eq!(
            (settings("", "", "").identity().value.as_str(), settings("", "", "").timeout()),
            ("codex", 300_000)
        );
        let roles = "[roles.reviewer]\nharness = 'claude'\nmodel = 'm'\neffort = 'high'";
        let both =
            settings("", "[roles.reviewer]\nmodel = 'theirs'", roles).defaults(Some("reviewer")).expect("a role");
        assert_eq!(
            (both.harness.as_deref(), both.model.as_deref(), both.effort.as_deref()),
            (Some("claude"), Some("theirs"), Some("high"))
        );
        let unknown = settings("", "", roles).defaults(Some("tester")).expect_err("no such role");
        assert_eq!(unknown.hint().as_deref(), Some("there are reviewer"));
    }

    #[test]
    fn a_role_is_to_be_written_into_the_file_that_this_user_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().display().to_string();
        let check = |configuration: &str, expected: &str| {
            let environment = Environment::from([("HOME", home.as_str()), ("XDG_CONFIG_HOME", configuration)]);
            let settings = Settings::load(Values::default(), &environment, folder.path()).expect("settings");
            let hint = settings.threads.defaults(Some("tester")).expect_err("no such role").hint();
            assert_eq!(hint, Some(format!("write `[roles.tester]` into {expected}")));
        };
        check("", "~/.config/relay-mesh/config.toml");
        check(&format!("{home}/mine"), "~/mine/relay-mesh/config.toml");
        check("/nowhere/of-relay-mesh", "/nowhere/of-relay-mesh/relay-mesh/config.toml");
        let hint = settings("", "", "").defaults(Some("tester")).expect_err("no such role").hint();
        assert_eq!(hint.as_deref(), Some("write `[roles.tester]` into your own settings"));
    }

    #[test]
    fn f12_a_project_narrows_and_never_widens() {
        let check = |project: &str, user: &str, reach: Reach, approvals: Approvals| {
            let found = settings("", project, user).defaults(None).expect("defaults");
            assert_eq!((found.reach, found.approvals), (reach, approvals), "{project} | {user}");
        };
        let (ask, refuse) = (Approvals::Ask, Approvals::Refuse);
        check("", "", Reach::Look, ask);
        check("codex.sandbox = 'danger-full-access'", "", Reach::Look, ask);
        check("codex.sandbox = 'danger-full-access'", "codex.sandbox = 'workspace-write'", Reach::Edit, ask);
        check("codex.sandbox = 'read-only'", "codex.sandbox = 'work'", Reach::Look, ask);
        check("codex.approval-policy = 'never'", "", Reach::Look, ask);
        check("codex.approval-policy = 'never'", "codex.allow = ['approval-policy=never']", Reach::Look, refuse);
        check("codex.approval-policy = 'on-request'", "codex.approval-policy = 'never'", Reach::Look, ask);
        check("", "codex.approval-policy = 'never'", Reach::Look, refuse);
    }

    #[test]
    fn f12_a_project_names_no_program_no_permission_and_no_file_of_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(".relay-mesh.toml");
        let check = |text: &str, expected: Option<&str>| {
            let values = values(text).with_paths(|path| folder.path().join(path));
            assert_eq!(values.not_the_projects(&file), expected, "{text}");
        };
        check("codex.program = 'codex'", Some("codex.program"));
        check("codex.allow = []", Some("codex.allow"));
        check("codex.base-instructions = 'prompts/base.md'", None);
        let outside = Some("a prompt file outside of the project");
        check("codex.base-instructions = '/etc/passwd'", outside);
        check("[roles.x]\ndeveloper-instructions = '../secret'", outside);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("a link");
        check("[roles.x]\ndeveloper-instructions = 'link'", outside);
        assert!(toml::from_str::<File>("codex.config = {}").is_err(), "nobody's settings have one");
    }
}
