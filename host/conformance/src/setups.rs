//! The setups to install, and the files in a user's folders before and after.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use mesh::ports::harness::{Action, Scope, Server, Setup};

use crate::fixtures::SettingsCase;
use crate::scratch::Stage;

/// A scope and a transport, as in `relay-mesh install`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstallVariant {
    pub(crate) scope: Scope,
    /// Its name in the report.
    pub(crate) name: &'static str,
    over_http: OverHttp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverHttp {
    Yes,
    No,
}

pub(crate) const INSTALL_VARIANTS: [InstallVariant; 4] = [
    InstallVariant { scope: Scope::User, name: "for the user", over_http: OverHttp::No },
    InstallVariant { scope: Scope::Project, name: "for a project", over_http: OverHttp::No },
    InstallVariant { scope: Scope::User, name: "for the user over HTTP", over_http: OverHttp::Yes },
    InstallVariant { scope: Scope::Project, name: "for a project over HTTP", over_http: OverHttp::Yes },
];

impl InstallVariant {
    pub(crate) fn setup(self, action: Action) -> Setup {
        let program = "/opt/relay mesh/bin/relay-mesh".to_owned();
        let server = match self.over_http {
            OverHttp::No => Server::Stdio(vec![program.clone(), "mcp".to_owned()]),
            OverHttp::Yes => Server::Http("http://127.0.0.1:7423/mcp".to_owned()),
        };
        Setup {
            action,
            scope: self.scope,
            server,
            server_name: "relay-mesh".to_owned(),
            program: vec![program],
            environment: vec![("RELAY_DIR".to_owned(), "/srv/relay \"mesh\"".to_owned())],
        }
    }
}

/// The files below the home, which holds the project too, by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Writes a case's files under the manifest's roots. The inner error names a root that the manifest does not have.
pub(crate) fn furnish(stage: &Stage<'_>, case: &SettingsCase) -> io::Result<Result<(), String>> {
    for ((root, path), bytes) in &case.files {
        let Some(folder) = stage.root(root) else {
            return Ok(Err(format!("settings/{}/{root}: the manifest has no root `{root}`", case.name)));
        };
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(file, bytes)?;
    }
    Ok(Ok(()))
}

/// The files below a folder.
pub(crate) fn files(folder: &Path) -> io::Result<Files> {
    let mut found = Files::new();
    collect(folder, folder, &mut found)?;
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Files) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, found)?;
        } else {
            let under = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            found.insert(under, std::fs::read(&path)?);
        }
    }
    Ok(())
}

/// The differences, in words. None if there are none.
pub(crate) fn difference(before: &Files, after: &Files) -> Option<String> {
    let mut words = Vec::new();
    for (path, bytes) in before {
        match after.get(path) {
            None => words.push(format!("`{path}` is gone")),
            Some(now) if now != bytes => {
                let at = bytes.iter().zip(now).take_while(|(one, other)| one == other).count();
                let shown = |text: &[u8]| String::from_utf8_lossy(&text[at..(at + 60).min(text.len())]).into_owned();
                words.push(format!("`{path}` differs from byte {at}: {:?} was {:?}", shown(now), shown(bytes)));
            }
            Some(_) => {}
        }
    }
    words.extend(after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("`{path}` is left")));
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &[(&str, &str)], after: &[(&str, &str)], expected: Option<&str>) {
        let files = |list: &[(&str, &str)]| -> Files {
            list.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
        };
        assert_eq!(difference(&files(before), &files(after)).as_deref(), expected);
    }

    #[test]
    fn a_difference_says_which_byte_of_which_file() {
        check(&[("a", "x")], &[("a", "x")], None);
        check(&[("a", "x")], &[], Some("`a` is gone"));
        check(&[], &[("a", "x")], Some("`a` is left"));
        check(&[("a", "xy")], &[("a", "xz")], Some("`a` differs from byte 1: \"z\" was \"y\""));
        check(&[("a", "xy")], &[("a", "x")], Some("`a` differs from byte 1: \"\" was \"y\""));
    }
}
