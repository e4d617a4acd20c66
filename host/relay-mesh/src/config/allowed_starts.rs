//! Which agents may start runs, and which may start agents. The permissions are in files beside the user's settings, so a
//! project cannot bring its own, and each holds for one named mesh, as those of commands do.

use std::path::Path;

use mesh::allowances::{Allowance, Budget, Starts};
use mesh::driven::SpawnBounds;
use mesh::names::AgentName;
use mesh::ports::runner::Reach;
use serde::Deserialize;

use super::allowed_commands::Meant;
use super::user_file::{self, ENTRY, UserFile};
use super::{ConfigError, Settings};
use crate::environment::Environment;

/// Relative to the configuration folder.
const RUNS: &str = "relay-mesh/runs.toml";
const RUNS_HEAD: &str = "# Which of your agents may start runs, by `relay-mesh runs allow`. Each entry counts for the mesh \
                         that it\n# names. `depth = 2` above the entries would let a run start runs of its own.\n";
const AGENTS: &str = "relay-mesh/spawn.toml";
const AGENTS_HEAD: &str = "# Which of your agents may start agents, by `relay-mesh spawn allow`. Each entry counts for the \
                           mesh that it\n# names. Above the entries may stand how deep started agents may start others \
                           (`depth = 1`: not at all),\n# how many one agent may have at a time (`each = 4`), and how \
                           many there may be on this machine (`all = 16`).\n";
/// A run starts no runs unless the user says otherwise.
const DEPTH: u32 = 1;

/// The user's permissions for one mesh.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    file: UserFile,
    mesh: Meant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    depth: Option<u32>,
    each: Option<usize>,
    all: Option<usize>,
    share: Option<usize>,
    #[serde(default)]
    allow: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    agent: AgentName,
    harness: String,
    #[serde(default)]
    reach: Reach,
    budget: Option<String>,
    mesh: String,
}

impl Allowed {
    /// The user's file; it need not exist.
    pub(crate) fn to_start(
        starts: Starts,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Allowed, ConfigError> {
        let (file, head) = match starts {
            Starts::Runs => (RUNS, RUNS_HEAD),
            Starts::Agents => (AGENTS, AGENTS_HEAD),
        };
        Ok(Allowed { file: UserFile::of(file, head, environment)?, mesh: Meant::of(settings) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// How deep runs may start runs.
    pub(crate) fn depth(&self) -> Result<u32, ConfigError> {
        Ok(self.file.parse::<File>(&self.file.text()?)?.depth.unwrap_or(DEPTH))
    }

    /// How many agents may be started, and how deep.
    pub(crate) fn bounds(&self) -> Result<SpawnBounds, ConfigError> {
        let File { depth, each, all, share, .. } = self.file.parse(&self.file.text()?)?;
        let usual = SpawnBounds::default();
        Ok(SpawnBounds {
            depth: depth.unwrap_or(usual.depth),
            each: each.unwrap_or(usual.each),
            all: all.unwrap_or(usual.all),
            share: share.unwrap_or(usual.share).max(1),
        })
    }

    pub(crate) fn listed(&self) -> Result<Vec<Allowance>, ConfigError> {
        let mesh = self.mesh.words();
        let entries = self.file.parse::<File>(&self.file.text()?)?.allow.into_iter().filter(|entry| entry.mesh == mesh);
        entries.map(|entry| self.allowance(entry)).collect()
    }

    /// Gives a permission in place of the one that the agent had for this harness.
    pub(crate) fn allow(&self, allowance: &Allowance) -> Result<(), ConfigError> {
        let _alone = self.file.alone()?;
        let text = self.file.text()?;
        let (kept, _) = self.without(&text, &allowance.agent, Some(&allowance.harness))?;
        self.file.write_with(&kept, &self.written(allowance))
    }

    /// Takes an agent's permission for a harness back, or all that it has. Returns those that are gone.
    pub(crate) fn disallow(&self, agent: &AgentName, harness: Option<&str>) -> Result<Vec<Allowance>, ConfigError> {
        let _alone = self.file.alone()?;
        let (kept, gone) = self.without(&self.file.text()?, agent, harness)?;
        if !gone.is_empty() {
            self.file.write(&kept)?;
        }
        Ok(gone)
    }

    /// The text without an agent's entries, and those entries.
    fn without(
        &self,
        text: &str,
        agent: &AgentName,
        harness: Option<&str>,
    ) -> Result<(String, Vec<Allowance>), ConfigError> {
        let mesh = self.mesh.words();
        let file: File = self.file.parse(text)?;
        let goes = |entry: &Entry| {
            entry.mesh == mesh && entry.agent == *agent && harness.is_none_or(|harness| entry.harness == harness)
        };
        let gone = file.allow.iter().filter(|entry| goes(entry)).cloned();
        let gone = gone.map(|entry| self.allowance(entry)).collect::<Result<Vec<_>, _>>()?;
        let which: Vec<bool> = file.allow.iter().map(goes).collect();
        let kept = user_file::without(text, ENTRY, &which).ok_or_else(|| {
            self.file.invalid("its entries are not written one by one, so it cannot be changed here".to_owned())
        })?;
        Ok((kept, gone))
    }

    fn allowance(&self, entry: Entry) -> Result<Allowance, ConfigError> {
        let Entry { agent, harness, reach, budget, mesh: _ } = entry;
        let budget = budget
            .map(|budget| budget.parse::<Budget>())
            .transpose()
            .map_err(|error| self.file.invalid(error.to_string()))?;
        Ok(Allowance { agent, harness, reach, budget })
    }

    fn written(&self, allowance: &Allowance) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let Allowance { agent, harness, reach, budget } = allowance;
        let budget = budget.map_or_else(String::new, |budget| format!("budget = \"{budget}\"\n"));
        format!(
            "{ENTRY}\nagent = {}\nharness = {}\nreach = \"{}\"\n{budget}mesh = {}\n",
            quoted(agent.as_str()),
            quoted(harness),
            reach.as_str(),
            quoted(&self.mesh.words()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(line: &str) -> Allowance {
        let words: Vec<&str> = line.split(' ').collect();
        Allowance {
            agent: words[0].parse().expect("a name"),
            harness: words[1].to_owned(),
            reach: words[2].parse().expect("a reach"),
            budget: words.get(3).map(|budget| budget.parse().expect("a budget")),
        }
    }

    #[test]
    fn permissions_are_given_changed_and_taken_back_for_one_mesh() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |mesh: &str| Allowed {
            file: UserFile::at(folder.path().join(AGENTS), AGENTS_HEAD),
            mesh: Meant::Servers(mesh.to_owned()),
        };
        let (here, elsewhere) = (of("files:/home/u"), of("nats://b"));
        assert_eq!(here.depth().expect("a depth"), 1);
        here.allow(&allowance("bob codex look")).expect("allowed");
        here.allow(&allowance("bob claude-code edit 5/day")).expect("allowed");
        elsewhere.allow(&allowance("bob codex work")).expect("allowed");
        here.allow(&allowance("bob codex edit")).expect("allowed");
        let listed = here.listed().expect("listed");
        assert_eq!(listed, [allowance("bob claude-code edit 5/day"), allowance("bob codex edit")]);
        let bob = "bob".parse().expect("a name");
        assert_eq!(here.disallow(&bob, Some("codex")).expect("taken back"), [allowance("bob codex edit")]);
        assert_eq!(here.disallow(&bob, None).expect("taken back").len(), 1);
        assert_eq!(elsewhere.listed().expect("listed"), [allowance("bob codex work")]);
        std::fs::write(here.path(), "depth = 3\n").expect("written");
        assert_eq!(here.depth().expect("a depth"), 3);
        let bounds = SpawnBounds { depth: 3, ..SpawnBounds::default() };
        assert_eq!(here.bounds().expect("bounds"), bounds);
        std::fs::write(here.path(), "each = 2\nall = 3\n").expect("written");
        assert_eq!(here.bounds().expect("bounds"), SpawnBounds { depth: 1, each: 2, all: 3, share: 64 });
        std::fs::write(here.path(), "depht = 3\n").expect("written");
        assert!(here.depth().is_err());
    }
}
