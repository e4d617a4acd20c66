//! How this program was installed, and by which command the same way brings a newer one. It is told from where the
//! program lies and from what the package managers have written beside it: nothing is run.

use std::ffi::OsString;
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
        return by(Channel::Npm, npm(program, &project));
    }
    if program.components().any(|part| part.as_os_str() == "Cellar") {
        return by(Channel::Homebrew, "brew upgrade relay-mesh".to_owned());
    }
    if let Some(command) = python(bin, root) {
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

/// The command of npm, or of what keeps packages for Node in its place: pnpm has a folder `.pnpm` for each package, and
/// Bun and Yarn have a list of their own in a project.
fn npm(program: &Path, project: &Path) -> String {
    let word = || shell_word(project);
    if above(program, ".pnpm").is_some() {
        return match () {
            () if above(project, "dlx").is_some() => "pnpm dlx relay-mesh@latest".to_owned(),
            () if program.ancestors().any(|above| above.ends_with("pnpm/global")) => {
                "pnpm add --global relay-mesh@latest".to_owned()
            }
            () => format!("pnpm --dir {} add relay-mesh@latest", word()),
        };
    }
    let has = |names: &[&str]| names.iter().any(|name| project.join(name).is_file());
    match project.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
        name if name.starts_with("bunx-") => return "bunx relay-mesh@latest".to_owned(),
        _ if project.ends_with(".bun/install/global") => return "bun add --global relay-mesh@latest".to_owned(),
        _ if project.ends_with("yarn/global") => return "yarn global add relay-mesh@latest".to_owned(),
        _ if has(&["bun.lock", "bun.lockb"]) => return format!("bun add --cwd {} relay-mesh@latest", word()),
        _ if has(&["yarn.lock"]) => return format!("yarn --cwd {} add relay-mesh@latest", word()),
        _ => {}
    }
    // A project may have this name too, and has a list of what it needs.
    let is_global = project.file_name().is_some_and(|name| name == "lib") && !project.join("package.json").is_file();
    match is_global {
        true => "npm install --global relay-mesh@latest".to_owned(),
        false if above(project, "_npx").is_some() => "npx relay-mesh@latest".to_owned(),
        false => format!("npm --prefix {} install relay-mesh@latest", word()),
    }
}

/// The command of what put the program into its environment of Python, if one has it. Not each has a pip or a Python
/// of its own.
fn python(bin: &Path, root: &Path) -> Option<String> {
    let environment = bin.parent()?;
    let above = environment.parent().unwrap_or(environment);
    let version = ["lib", "lib64"].into_iter().find_map(|lib| python_with_us(&environment.join(lib)))?;
    let has = |path: &str| environment.join(path).exists();
    let is_in = |folders: &[&str]| folders.iter().any(|folder| above.ends_with(folder));
    let is_in_cache_of_uv = above
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("archive-v") || name.starts_with("environments-v"));
    let is_of_uv = || {
        let settings = fs::read_to_string(environment.join("pyvenv.cfg")).unwrap_or_default();
        settings.lines().any(|line| line.split('=').next().is_some_and(|name| name.trim() == "uv"))
    };
    // Debian and others have pip change what is outside of an environment only if the user says so each time.
    let is_marked = root.join("usr/lib").join(&version).join("EXTERNALLY-MANAGED").exists();
    let anyway = |is_guarded: bool| if is_guarded { " --break-system-packages" } else { "" };
    let own = ["python", "python3"].into_iter().find(|name| bin.join(name).exists());
    Some(match own {
        _ if is_in_cache_of_uv => "uvx relay-mesh@latest".to_owned(),
        _ if is_in(&["uv/tools"]) || has("uv-receipt.toml") => "uv tool upgrade relay-mesh".to_owned(),
        _ if is_in(&["pipx", "pipx/.cache"]) => "pipx run --no-cache relay-mesh".to_owned(),
        _ if is_in(&["pipx/venvs"]) || has("pipx_metadata.json") => "pipx upgrade relay-mesh".to_owned(),
        // It may hold a `python` of the user's own that has other packages.
        _ if environment.ends_with(".local") || above.ends_with("Library/Python") => {
            format!("python3 -m pip install --user --upgrade{} relay-mesh", anyway(is_marked))
        }
        Some(name) if is_of_uv() => {
            format!("uv pip install --python {} --upgrade relay-mesh", shell_word(&bin.join(name)))
        }
        // Homebrew's Python has that mark too.
        Some(name) => {
            let (own, anyway) = (shell_word(&bin.join(name)), anyway(has("Cellar")));
            format!("{own} -m pip install --upgrade{anyway} relay-mesh")
        }
        None => format!("sudo python3 -m pip install --upgrade{} relay-mesh", anyway(is_marked)),
    })
}

/// The folder of a Python, such as `python3.11`, whose packages below this one hold ours. Debian's pip puts them into
/// `dist-packages`, and pip on Fedora puts them below `lib64`.
fn python_with_us(lib: &Path) -> Option<OsString> {
    let is_ours = |name: &str| name.starts_with("relay_mesh-") && name.ends_with(".dist-info");
    let holds_us = |packages: PathBuf| {
        let mut entries = fs::read_dir(packages).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().is_some_and(is_ours))
    };
    let mut versions = fs::read_dir(lib).ok()?.flatten();
    let of_ours = versions
        .find(|version| ["site-packages", "dist-packages"].iter().any(|name| holds_us(version.path().join(name))));
    of_ours.map(|version| version.file_name())
}

/// The command of Cargo, if its list beside the folder has the program.
fn cargo(bin: &Path) -> Option<String> {
    let list = fs::read_to_string(bin.parent()?.join(".crates.toml")).ok()?;
    let line = list.lines().find(|line| line.trim_start_matches('"').starts_with("relay-mesh "))?;
    // The list says from where: a registry, a repository, or a folder of this machine.
    let from = |what: &str| line.split_once(what).and_then(|(_, rest)| rest.split_once(')')).map(|(from, _)| from);
    if let Some(folder) = from("(path+file://") {
        return Some(format!("cargo install --locked --path {}", shell_word(Path::new(folder))));
    }
    if let Some(address) = from("(git+") {
        let (address, _commit) = address.split_once('#').unwrap_or((address, ""));
        let (address, asked) = address.split_once('?').unwrap_or((address, ""));
        // A tag or a commit stays what it is: what comes after it is asked for without.
        let branch = asked.strip_prefix("branch=").map(|branch| format!(" --branch {}", shell_word(Path::new(branch))));
        let address = shell_word(Path::new(address));
        return Some(format!("cargo install --locked --git {address}{} relay-mesh", branch.unwrap_or_default()));
    }
    Some("cargo install --locked relay-mesh".to_owned())
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
        let at = root.display();
        let brew = || "brew upgrade relay-mesh".to_owned();
        file(root, "var/lib/dpkg/info/relay-mesh.list", "/.\n/usr\n/usr/bin/relay-mesh\n");
        file(root, "home/.cargo/.crates.toml", "[v1]\n\"relay-mesh 0.1.0 (registry+https://x)\" = [\"relay-mesh\"]\n");
        file(root, "home/own/.crates.toml", "[v1]\n\"relay-mesh 0.1.0 (path+file:///a b)\" = [\"relay-mesh\"]\n");
        for (folder, from) in [("git", "#12ab"), ("branch", "?branch=next#12ab")] {
            let list = format!("[v1]\n\"relay-mesh 0.1.0 (git+https://x.example/r{from})\" = [\"relay-mesh\"]\n");
            file(root, &format!("home/{folder}/.crates.toml"), &list);
        }
        for list in ["p/lib/package.json", "bun/bun.lock", "yarn/yarn.lock", ".bun/install/global/bun.lock"] {
            file(root, &format!("home/{list}"), "{}");
        }
        file(root, "home/clone/host/relay-mesh/Cargo.toml", "");
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
            (
                "home/p/lib/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                format!("npm --prefix {at}/home/p/lib install relay-mesh@latest"),
            ),
            (
                "home/.nvm/versions/node/v22/lib/node_modules/relay-mesh/node_modules/@relay-mesh/a/bin/relay-mesh",
                Channel::Npm,
                "npm install --global relay-mesh@latest".to_owned(),
            ),
            (
                "opt/homebrew/lib/node_modules/relay-mesh/node_modules/@relay-mesh/darwin-arm64/bin/relay-mesh",
                Channel::Npm,
                "npm install --global relay-mesh@latest".to_owned(),
            ),
            (
                "home/.local/share/pnpm/global/5/.pnpm/a@1/node_modules/@relay-mesh/a/bin/relay-mesh",
                Channel::Npm,
                "pnpm add --global relay-mesh@latest".to_owned(),
            ),
            (
                "home/.local/share/pnpm/global/v11/1a/node_modules/.pnpm/a@1/node_modules/@relay-mesh/a/bin/relay-mesh",
                Channel::Npm,
                "pnpm add --global relay-mesh@latest".to_owned(),
            ),
            (
                "home/.cache/pnpm/dlx/1a/2b/node_modules/.pnpm/a@1/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "pnpm dlx relay-mesh@latest".to_owned(),
            ),
            (
                "home/p/node_modules/.pnpm/a@1/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                format!("pnpm --dir {at}/home/p add relay-mesh@latest"),
            ),
            (
                "home/.bun/install/global/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "bun add --global relay-mesh@latest".to_owned(),
            ),
            (
                "tmp/bunx-1000-relay-mesh@latest/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "bunx relay-mesh@latest".to_owned(),
            ),
            (
                "home/bun/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                format!("bun add --cwd {at}/home/bun relay-mesh@latest"),
            ),
            (
                "home/.config/yarn/global/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                "yarn global add relay-mesh@latest".to_owned(),
            ),
            (
                "home/yarn/node_modules/@relay-mesh/linux-x64/bin/relay-mesh",
                Channel::Npm,
                format!("yarn --cwd {at}/home/yarn add relay-mesh@latest"),
            ),
            ("opt/homebrew/Cellar/relay-mesh/0.1.0/bin/relay-mesh", Channel::Homebrew, brew()),
            ("usr/local/Cellar/relay-mesh/0.1.0/bin/relay-mesh", Channel::Homebrew, brew()),
            ("home/linuxbrew/.linuxbrew/Cellar/relay-mesh/0.1.0/bin/relay-mesh", Channel::Homebrew, brew()),
            ("home/.cargo/bin/relay-mesh", Channel::Cargo, "cargo install --locked relay-mesh".to_owned()),
            ("home/own/bin/relay-mesh", Channel::Cargo, "cargo install --locked --path '/a b'".to_owned()),
            (
                "home/git/bin/relay-mesh",
                Channel::Cargo,
                "cargo install --locked --git https://x.example/r relay-mesh".to_owned(),
            ),
            (
                "home/branch/bin/relay-mesh",
                Channel::Cargo,
                "cargo install --locked --git https://x.example/r --branch next relay-mesh".to_owned(),
            ),
            (
                "home/clone/target/release/relay-mesh",
                Channel::Source,
                format!("git -C {at}/home/clone pull && make -C {at}/home/clone release"),
            ),
        ] {
            assert_eq!(of(&root.join(program), root), InstalledBy { channel, command }, "{program}");
        }
    }

    /// Environments as pip, uv and pipx leave them: with the Python that is beside the program, if one is.
    #[test]
    fn the_program_of_a_wheel_is_upgraded_by_what_has_installed_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let at = root.display();
        file(root, "usr/lib/python3.11/EXTERNALLY-MANAGED", "");
        let of_pip = "home = /usr/bin\nversion = 3.11.2\n";
        let of_uv = "home = /usr/bin\nimplementation = CPython\nuv = 0.9.11\n";
        let user = "python3 -m pip install --user --upgrade";
        let system = "sudo python3 -m pip install --upgrade";
        for (environment, packages, beside, command) in [
            (
                "home/venv",
                "lib/python3.11/site-packages",
                &[("pyvenv.cfg", of_pip), ("bin/python", "")][..],
                // The mark of the system's Python says nothing about an environment.
                format!("{at}/home/venv/bin/python -m pip install --upgrade relay-mesh"),
            ),
            (
                "home/by uv",
                "lib/python3.11/site-packages",
                &[("pyvenv.cfg", of_uv), ("bin/python", "")],
                format!("uv pip install --python '{at}/home/by uv/bin/python' --upgrade relay-mesh"),
            ),
            (
                "home/.local",
                "lib/python3.11/site-packages",
                &[("bin/python3", "")],
                format!("{user} --break-system-packages relay-mesh"),
            ),
            ("other/.local", "lib/python3.9/site-packages", &[], format!("{user} relay-mesh")),
            ("fedora/.local", "lib64/python3.13/site-packages", &[], format!("{user} relay-mesh")),
            ("Users/u/Library/Python/3.12", "lib/python/site-packages", &[], format!("{user} relay-mesh")),
            (
                "home/.cache/uv/archive-v0/1aB",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_uv), ("bin/python", "")],
                "uvx relay-mesh@latest".to_owned(),
            ),
            (
                "home/.local/share/uv/tools/relay-mesh",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_uv), ("bin/python", "")],
                "uv tool upgrade relay-mesh".to_owned(),
            ),
            (
                "srv/tools/relay-mesh",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_uv), ("uv-receipt.toml", "")],
                "uv tool upgrade relay-mesh".to_owned(),
            ),
            (
                "home/.local/share/pipx/venvs/relay-mesh",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_pip), ("bin/python", "")],
                "pipx upgrade relay-mesh".to_owned(),
            ),
            (
                "home/.local/pipx/venvs/relay-mesh",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_pip), ("bin/python", "")],
                "pipx upgrade relay-mesh".to_owned(),
            ),
            (
                "home/.cache/pipx/1a2b",
                "lib/python3.12/site-packages",
                &[("pyvenv.cfg", of_pip), ("pipx_metadata.json", "{}"), ("bin/python", "")],
                "pipx run --no-cache relay-mesh".to_owned(),
            ),
            ("usr/local", "lib/python3.11/dist-packages", &[], format!("{system} --break-system-packages relay-mesh")),
            ("of fedora/usr/local", "lib64/python3.13/site-packages", &[], format!("{system} relay-mesh")),
            (
                "opt/python",
                "lib/python3.13/site-packages",
                &[("bin/python3", "")],
                format!("{at}/opt/python/bin/python3 -m pip install --upgrade relay-mesh"),
            ),
            (
                "opt/homebrew",
                "lib/python3.13/site-packages",
                &[("bin/python3", ""), ("Cellar/python@3.13/README.md", "")],
                format!("{at}/opt/homebrew/bin/python3 -m pip install --upgrade --break-system-packages relay-mesh"),
            ),
        ] {
            file(root, &format!("{environment}/{packages}/relay_mesh-0.1.0.dist-info/RECORD"), "");
            for (path, text) in beside {
                file(root, &format!("{environment}/{path}"), text);
            }
            let program = root.join(environment).join("bin/relay-mesh");
            let expected = InstalledBy { channel: Channel::Python, command };
            assert_eq!(of(&program, root), expected, "{environment}");
        }
        // Packages of others say nothing.
        file(root, "home/other/lib/python3.11/site-packages/another-1.dist-info/RECORD", "");
        assert_eq!(of(&root.join("home/other/bin/relay-mesh"), root).channel, Channel::Archive);
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
