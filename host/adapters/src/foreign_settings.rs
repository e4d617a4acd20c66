//! Whose settings a path is among: those of the harnesses whose adapters are built in or were installed earlier, in
//! folders of their own and in projects. Another adapter reaches them only by a grant that is named after the harness,
//! so that the user sees whose they are.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::manifest::Manifest;
use crate::places::{Asker, real};
use crate::sources::BUILT_IN;
use crate::template::{Surroundings, fill_path};

/// Where harnesses with a built-in adapter keep more than that adapter requests: what they are signed in with.
const FURTHER: [(&str, &str); 1] = [("opencode", "${XDG_DATA_HOME:-~/.local/share}/opencode")];
/// What a harness reads in each folder of a project, or beside its own folder in a home.
const IN_PROJECTS: [(&str, &str); 9] = [
    (".claude", "claude-code"),
    (".claude.json", "claude-code"),
    (".mcp.json", "claude-code"),
    (".codex", "codex"),
    (".cursor", "cursor"),
    (".gemini", "gemini-cli"),
    (".opencode", "opencode"),
    ("opencode.json", "opencode"),
    ("opencode.jsonc", "opencode"),
];

/// A folder with a harness's settings, as its adapter's manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsFolder {
    owner: String,
    path: String,
}

impl SettingsFolder {
    /// The folders that a manifest requests as its own: no whole project, and nothing that it names after one of
    /// `others`.
    pub(crate) fn of_manifest(manifest: &Manifest, others: &[String]) -> Vec<SettingsFolder> {
        let is_own = |root: &String| *root == manifest.name || !others.contains(root);
        let is_project = |path: &str| ["${project}", "${main-worktree}"].contains(&path.trim_end_matches('/'));
        let roots = manifest.requests.roots.iter().filter(|(root, asked)| is_own(root) && !is_project(&asked.path));
        roots.map(|(_, asked)| SettingsFolder { owner: manifest.name.clone(), path: asked.path.clone() }).collect()
    }
}

/// The settings that are not those of one adapter. Empty for an adapter that is built in.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignSettings {
    own: String,
    /// Each with its owner.
    folders: Vec<(String, PathBuf)>,
    /// Projects, and what may contain some. Names of settings count below the innermost, because a project may be in a
    /// folder of settings: Claude Code's worktrees are.
    bases: Vec<PathBuf>,
    projects: Vec<PathBuf>,
}

impl ForeignSettings {
    pub(crate) fn of(asker: &Asker, surroundings: &Surroundings) -> ForeignSettings {
        let Asker::Stranger { name, earlier } = asker else { return ForeignSettings::default() };
        let others = of_built_in().iter().chain(earlier.iter()).filter(|folder| folder.owner != *name);
        let folders = others.filter_map(|folder| {
            let place = fill_path(&folder.path, surroundings).ok()?;
            Some((folder.owner.clone(), real(&place)))
        });
        let project = |template: &str| fill_path(template, surroundings).ok().map(|path| real(&path));
        let projects: Vec<PathBuf> = ["${project}", "${main-worktree}"].into_iter().filter_map(project).collect();
        let bases = projects.iter().cloned().chain(surroundings.home.as_deref().map(real)).collect();
        ForeignSettings { own: name.clone(), folders: folders.collect(), bases, projects }
    }

    /// The same below a root, where projects may be too.
    pub(crate) fn below(mut self, root: &Path) -> ForeignSettings {
        self.bases.push(real(root));
        self
    }

    /// Whether every place is free.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whose settings a place is among, if not those of the harness after which the grant is named. Links in it must
    /// have been followed.
    pub(crate) fn owner(&self, grant: &str, place: &Path) -> Option<&str> {
        let is_in = |(owner, folder): &&(String, PathBuf)| owner != grant && place.starts_with(folder);
        self.folders.iter().find(is_in).map(|(owner, _)| owner.as_str()).or_else(|| self.owner_in_project(grant, place))
    }

    /// Whose settings are below a place. A project contains settings of many, and its files are judged one by one.
    pub(crate) fn owner_below(&self, grant: &str, place: &Path) -> Option<&str> {
        if self.projects.iter().any(|project| project == place) {
            return None;
        }
        let mut below = self.folders.iter().filter(|(owner, folder)| owner != grant && folder.starts_with(place));
        below.next().map(|(owner, _)| owner.as_str())
    }

    fn owner_in_project(&self, grant: &str, place: &Path) -> Option<&'static str> {
        let below = self.bases.iter().filter_map(|base| place.strip_prefix(base).ok());
        let innermost = below.min_by_key(|rest| rest.components().count())?;
        let is_foreign = |owner: &str| owner != grant && owner != self.own;
        let mut names = innermost.iter().filter_map(|name| name.to_str());
        names.find_map(|name| {
            // The file system may not tell `.CLAUDE` from `.claude`.
            let found = IN_PROJECTS.iter().find(|(settings, _)| settings.eq_ignore_ascii_case(name));
            found.map(|(_, owner)| *owner).filter(|owner| is_foreign(owner))
        })
    }
}

/// The folders of built-in adapters. Parsed once in a process: each folder that is opened is compared.
fn of_built_in() -> &'static [SettingsFolder] {
    static FOLDERS: OnceLock<Vec<SettingsFolder>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let manifests = BUILT_IN.iter().filter_map(|one| Manifest::parse(one.manifest).ok());
        let further =
            FURTHER.iter().map(|(owner, path)| SettingsFolder { owner: (*owner).to_owned(), path: (*path).to_owned() });
        manifests.flat_map(|manifest| SettingsFolder::of_manifest(&manifest, &[])).chain(further).collect()
    })
}

/// No settings but those of built-in adapters.
pub(crate) fn none_installed() -> Arc<[SettingsFolder]> {
    Arc::from([])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_in_projects_are_those_of_built_in_adapters() {
        for owner in IN_PROJECTS.iter().map(|(_, owner)| owner).chain(FURTHER.iter().map(|(owner, _)| owner)) {
            assert!(BUILT_IN.iter().any(|one| one.name == *owner), "{owner}");
        }
    }
}
