//! How this program was installed, and by which command the same way brings a newer one. It is told from where the
//! program lies and from what the package managers have written beside it: nothing is run.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A way of installing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Channel {
    Debian,
    Rpm,
    Homebrew,
    Npm,
    Python,
    Cargo,
    /// A container image.
    Image,
    /// Built in a clone of the repository.
    Source,
    /// From an archive, by hand or by install.sh.
    Archive,
}

/// How this program was installed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstalledBy {
    pub(crate) channel: Channel,
    /// What the user runs to have a newer version.
    pub(crate) command: String,
}

/// Looks below `root` for the databases of the system's package managers.
pub(crate) fn of(program: &Path, root: &Path) -> InstalledBy {
    let by = |channel: Channel, command: String| InstalledBy { channel, command };
    let bin = program.parent().unwrap_or(Path::new("/"));
    if let Some(project) = above(program, "node_modules") {
        return by(Channel::Npm, npm(&project));
    }
    if program.components().any(|part| part.as_os_str() == "Cellar") {
        return by(Channel::Homebrew, "brew upgrade relay-mesh".to_owned());
    }
    if let Some(command) = python(bin) {
        return by(Channel::Python, command);
    }
    if let Some(command) = cargo(bin) {
        return by(Channel::Cargo, command);
    }
    if let Some(clone) = program.ancestors().find(|above| is_clone(above)) {
        return by(Channel::Source, format!("git -C {0} pull && make -C {0} release", shell_word(clone)));
    }
    if is_of_debian(program, root) {
        return by(Channel::Debian, "sudo apt-get install ./relay-mesh_VERSION-1_ARCH.deb".to_owned());
    }
    if root.join("usr/share/licenses/relay-mesh").is_dir() && program.starts_with(root.join("usr/bin")) {
        return by(Channel::Rpm, "sudo rpm --upgrade relay-mesh-VERSION-1.ARCH.rpm".to_owned());
    }
    if [".dockerenv", "run/.containerenv"].iter().any(|mark| root.join(mark).exists())
        && program.starts_with(root.join("usr/bin"))
    {
        return by(Channel::Image, "podman pull IMAGE".to_owned());
    }
    by(Channel::Archive, format!("RELAY_MESH_BIN={} sh install.sh", shell_word(bin)))
}

/// The folder that holds the uppermost folder of this name above a path.
fn above(path: &Path, name: &str) -> Option<PathBuf> {
    let folders: Vec<&Path> =
        path.ancestors().filter(|above| above.file_name().is_some_and(|one| one == name)).collect();
    folders.last()?.parent().map(Path::to_owned)
}

fn npm(project: &Path) -> String {
    let is_global = project.file_name().is_some_and(|name| name == "lib");
    match is_global {
        true => "npm install --global relay-mesh@latest".to_owned(),
        false if above(project, "_npx").is_some() => "npx relay-mesh@latest".to_owned(),
        false => format!("npm --prefix {} install relay-mesh@latest", shell_word(project)),
    }
}

/// The command of the environment of Python that owns the program, if one does.
fn python(bin: &Path) -> Option<String> {
    let environment = bin.parent()?;
    let versions = fs::read_dir(environment.join("lib")).ok()?.flatten();
    let packages = versions.filter_map(|version| fs::read_dir(version.path().join("site-packages")).ok());
    let is_ours = |name: &str| name.starts_with("relay_mesh-") && name.ends_with(".dist-info");
    packages.flat_map(Iterator::flatten).find(|entry| entry.file_name().to_str().is_some_and(is_ours))?;
    let within = |names: [&str; 2]| environment.parent().is_some_and(|above| above.ends_with(names.join("/")));
    Some(match () {
        () if within(["uv", "tools"]) => "uv tool upgrade relay-mesh".to_owned(),
        () if within(["pipx", "venvs"]) => "pipx upgrade relay-mesh".to_owned(),
        () => format!("{} -m pip install --upgrade relay-mesh", shell_word(&bin.join("python"))),
    })
}

/// The command of Cargo, if its list beside the folder has the program.
fn cargo(bin: &Path) -> Option<String> {
    let list = fs::read_to_string(bin.parent()?.join(".crates.toml")).ok()?;
    let line = list.lines().find(|line| line.trim_start_matches('"').starts_with("relay-mesh "))?;
    // The list says from where: a registry, or a folder of this machine.
    let folder = line.split_once("(path+file://").and_then(|(_, rest)| rest.split_once(')')).map(|(folder, _)| folder);
    Some(match folder {
        Some(folder) => format!("cargo install --locked --path {}", shell_word(Path::new(folder))),
        None => "cargo install --locked relay-mesh".to_owned(),
    })
}

fn is_clone(folder: &Path) -> bool {
    folder.join("host/relay-mesh/Cargo.toml").is_file()
}

/// dpkg lists the files of each package. Where `/bin` is a link to `/usr/bin`, either may be listed.
fn is_of_debian(program: &Path, root: &Path) -> bool {
    let Ok(below) = program.strip_prefix(root) else { return false };
    let lists = root.join("var/lib/dpkg/info");
    fs::read_to_string(lists.join("relay-mesh.list"))
        .is_ok_and(|list| list.lines().any(|line| Path::new(line).strip_prefix("/").is_ok_and(|one| one == below)))
}

/// A path as a shell takes it.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map(std::borrow::Cow::into_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, path: &str, text: &str) -> PathBuf {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    #[test]
    fn where_the_program_lies_says_how_it_was_installed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        file(root, "var/lib/dpkg/info/relay-mesh.list", "/.\n/usr\n/usr/bin/relay-mesh\n");
        file(root, "home/venv/lib/python3.11/site-packages/relay_mesh-0.1.0.dist-info/RECORD", "");
        file(root, "home/uv/tools/relay-mesh/lib/python3.12/site-packages/relay_mesh-0.1.0.dist-info/RECORD", "");
        file(root, "home/pipx/venvs/relay-mesh/lib/python3.12/site-packages/relay_mesh-0.1.0.dist-info/RECORD", "");
        file(root, "home/other/lib/python3.11/site-packages/another-1.dist-info/RECORD", "");
        file(root, "home/.cargo/.crates.toml", "[v1]\n\"relay-mesh 0.1.0 (registry+https://x)\" = [\"relay-mesh\"]\n");
        file(root, "home/own/.crates.toml", "[v1]\n\"relay-mesh 0.1.0 (path+file:///a b)\" = [\"relay-mesh\"]\n");
        file(root, "home/clone/host/relay-mesh/Cargo.toml", "");
        let at = root.display();
        for (program, channel, command) in [
            ("usr/bin/relay-mesh", Channel::Debian, "sudo apt-get install ./relay-mesh_VERSION-1_ARCH.deb".to_owned()),
            ("usr/local/bin/relay-mesh", Channel::Archive, format!("RELAY_MESH_BIN={at}/usr/local/bin sh install.sh")),
            (
                "usr/lib/node_modules/relay-mesh/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "npm install --global relay-mesh@latest".to_owned(),
            ),
            (
                "home/p/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                format!("npm --prefix {at}/home/p install relay-mesh@latest"),
            ),
            (
                "home/.npm/_npx/1a/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "npx relay-mesh@latest".to_owned(),
            ),
            ("opt/Cellar/relay-mesh/0.1.0/bin/relay-mesh", Channel::Homebrew, "brew upgrade relay-mesh".to_owned()),
            (
                "home/venv/bin/relay-mesh",
                Channel::Python,
                format!("{at}/home/venv/bin/python -m pip install --upgrade relay-mesh"),
            ),
            ("home/uv/tools/relay-mesh/bin/relay-mesh", Channel::Python, "uv tool upgrade relay-mesh".to_owned()),
            ("home/pipx/venvs/relay-mesh/bin/relay-mesh", Channel::Python, "pipx upgrade relay-mesh".to_owned()),
            (
                "home/other/bin/relay-mesh",
                Channel::Archive,
                format!("RELAY_MESH_BIN={at}/home/other/bin sh install.sh"),
            ),
            ("home/.cargo/bin/relay-mesh", Channel::Cargo, "cargo install --locked relay-mesh".to_owned()),
            ("home/own/bin/relay-mesh", Channel::Cargo, "cargo install --locked --path '/a b'".to_owned()),
            (
                "home/clone/target/release/relay-mesh",
                Channel::Source,
                format!("git -C {at}/home/clone pull && make -C {at}/home/clone release"),
            ),
        ] {
            assert_eq!(of(&root.join(program), root), InstalledBy { channel, command }, "{program}");
        }
    }

    #[test]
    fn packages_of_rpm_and_images_are_told_by_what_they_bring() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let program = root.join("usr/bin/relay-mesh");
        assert_eq!(of(&program, root).channel, Channel::Archive);
        file(root, "run/.containerenv", "");
        assert_eq!(of(&program, root).channel, Channel::Image);
        file(root, "usr/share/licenses/relay-mesh/LICENSE-MIT", "");
        assert_eq!(of(&program, root).channel, Channel::Rpm);
        assert_eq!(of(&root.join("opt/relay-mesh"), root).channel, Channel::Archive);
    }
}
