//! Which agents may start runs. The permissions are in a file beside the user's settings, so a project cannot bring its
//! own, and each holds for one named mesh, as those of commands do.

use std::path::{Path, PathBuf};

use mesh::names::AgentName;
use mesh::ports::runner::Reach;
use mesh::runs::{Allowance, Budget};
use serde::Deserialize;

use super::consents::Meant;
use super::{ConfigError, Settings, file, mode};
use crate::environment::Environment;

/// Relative to the configuration folder.
const FILE: &str = "relay-mesh/runs.toml";
const HEAD: &str = "# Which of your agents may start runs, by `relay-mesh runs allow`. Each entry counts for the mesh that it\n\
                    # names. `depth = 2` above the entries would let a run start runs of its own.\n";
const ENTRY: &str = "[[allow]]";
/// A run starts no runs unless the user says otherwise.
const DEPTH: u32 = 1;

/// The user's permissions for one mesh.
#[derive(Clone, Debug)]
pub(crate) struct AllowedRuns {
    path: PathBuf,
    mesh: Meant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    depth: Option<u32>,
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

impl AllowedRuns {
    /// The user's file; it need not exist.
    pub(crate) fn of(settings: &Settings, environment: &Environment) -> Result<AllowedRuns, ConfigError> {
        let folder = environment.xdg("XDG_CONFIG_HOME", ".config").ok_or(ConfigError::NoHome)?;
        Ok(AllowedRuns { path: folder.join(FILE), mesh: Meant::of(settings) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How deep runs may start runs.
    pub(crate) fn depth(&self) -> Result<u32, ConfigError> {
        Ok(self.parse(&self.text()?)?.depth.unwrap_or(DEPTH))
    }

    pub(crate) fn listed(&self) -> Result<Vec<Allowance>, ConfigError> {
        let mesh = self.mesh.words();
        let entries = self.parse(&self.text()?)?.allow.into_iter().filter(|entry| entry.mesh == mesh);
        entries.map(|entry| self.allowance(entry)).collect()
    }

    /// Gives a permission in place of the one that the agent had for this harness.
    pub(crate) fn allow(&self, allowance: &Allowance) -> Result<(), ConfigError> {
        let _alone = self.alone()?;
        let text = self.text()?;
        let (kept, _) = self.without(&text, &allowance.agent, Some(&allowance.harness))?;
        let kept = if kept.is_empty() { HEAD.to_owned() } else { kept };
        let gap = if kept.ends_with("\n\n") { "" } else { "\n" };
        self.write(&format!("{kept}{gap}{}", self.written(allowance)))
    }

    /// Takes an agent's permission for a harness back, or all that it has. Returns those that are gone.
    pub(crate) fn disallow(&self, agent: &AgentName, harness: Option<&str>) -> Result<Vec<Allowance>, ConfigError> {
        let _alone = self.alone()?;
        let (kept, gone) = self.without(&self.text()?, agent, harness)?;
        if !gone.is_empty() {
            self.write(&kept)?;
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
        let file = self.parse(text)?;
        let goes = |entry: &Entry| {
            entry.mesh == mesh && entry.agent == *agent && harness.is_none_or(|harness| entry.harness == harness)
        };
        let gone = file.allow.iter().filter(|entry| goes(entry)).cloned();
        let gone = gone.map(|entry| self.allowance(entry)).collect::<Result<Vec<_>, _>>()?;
        let mut blocks: Vec<String> = vec![String::new()];
        for line in text.split_inclusive('\n') {
            if line.trim() == ENTRY {
                blocks.push(String::new());
            }
            if let Some(block) = blocks.last_mut() {
                block.push_str(line);
            }
        }
        if blocks.len() != file.allow.len() + 1 {
            let what = "its entries are not written one by one, so it cannot be changed here".to_owned();
            return Err(ConfigError::Invalid { path: self.path.clone(), line: 1, what });
        }
        let head = blocks.remove(0);
        let kept = blocks.into_iter().zip(&file.allow).filter(|(_, entry)| !goes(entry)).map(|(block, _)| block);
        Ok((std::iter::once(head).chain(kept).collect(), gone))
    }

    fn allowance(&self, entry: Entry) -> Result<Allowance, ConfigError> {
        let Entry { agent, harness, reach, budget, mesh: _ } = entry;
        let budget = budget
            .map(|budget| budget.parse::<Budget>())
            .transpose()
            .map_err(|error| ConfigError::Invalid { path: self.path.clone(), line: 1, what: error.to_string() })?;
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

    fn text(&self) -> Result<String, ConfigError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                Ok(String::new())
            }
            Err(source) => Err(ConfigError::Unreadable { path: self.path.clone(), source }),
        }
    }

    fn parse(&self, text: &str) -> Result<File, ConfigError> {
        toml::from_str(text).map_err(|error| file::invalid(&self.path, text, &error))
    }

    fn write(&self, text: &str) -> Result<(), ConfigError> {
        mode::write(&self.path, text).map_err(|source| self.unwritable(source))
    }

    /// Locks out other writers until the result is dropped.
    fn alone(&self) -> Result<std::fs::File, ConfigError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let held = || {
            std::fs::create_dir_all(folder)?;
            let folder = std::fs::File::open(folder)?;
            folder.lock()?;
            Ok(folder)
        };
        held().map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: std::io::Error) -> ConfigError {
        ConfigError::Unwritable { path: self.path.clone(), source }
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
        let of = |mesh: &str| AllowedRuns { path: folder.path().join(FILE), mesh: Meant::Servers(mesh.to_owned()) };
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
        std::fs::write(here.path(), "depht = 3\n").expect("written");
        assert!(here.depth().is_err());
    }
}
