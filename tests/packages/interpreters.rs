//! What npm and pip install, in clean roots that have Node or Python beside busybox.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use test_support::{Program, Stage, StdioClient, isolated};

use crate::installed::{CleanRoot, named_all, names, root, stage};

/// Which executable Python is, and where its library is. What is on the PATH may be an environment's or a shim.
const PYTHON: &str = "import os, sys; print(os.path.realpath(sys._base_executable)); print(sys.base_prefix)";

/// What this machine's library folder has for compilers: the beginnings of names.
const OF_COMPILERS: [&str; 4] = ["gcc", "go-", "llvm", "rustlib"];

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_npm_packages_work_in_a_clean_root_with_node() {
    isolated(|| {
        let equipped = Equipped::with_node();
        let place = &equipped.place;
        for package in named_all(".tgz") {
            place.copy(&package);
        }
        // Without a package.json, npm looks for a project in the folders above.
        let seconds = place.install(
            "mkdir /project && cd /project && echo '{}' >package.json \
             && npm install --offline --no-audit --no-fund --ignore-scripts /dist/*.tgz",
        );
        place.use_it(".tgz", seconds, "/project/node_modules/.bin");
        passes_everything_on(&stage(), || place.run_with("/project/node_modules/.bin", "relay-mesh"));
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_wheel_works_in_a_clean_root_with_python() {
    isolated(|| {
        let (equipped, python) = Equipped::with_python();
        let place = &equipped.place;
        place.bring(".whl");
        place.install(&format!("{python} -m venv /environment"));
        let seconds =
            place.install("/environment/bin/pip install --no-index --disable-pip-version-check /dist/relay_mesh-*.whl");
        place.use_it(".whl", seconds, "/environment/bin");
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn uvx_runs_the_wheel_in_a_clean_root_with_python() {
    isolated(|| {
        let (equipped, python) = Equipped::with_python();
        for name in ["uv", "uvx"] {
            // packaging/setup installs it.
            equipped.bring(&root().join("target/tools/venv/bin").join(name), &Path::new("/usr/bin").join(name));
        }
        let place = &equipped.place;
        place.bring(".whl");
        let uvx = format!("uvx --offline --python {python} --from /dist/relay_mesh-*.whl");
        let said = place.run("sh").args(["-c", &format!("{uvx} relay-mesh --version")]).succeed();
        assert_eq!(said, format!("relay-mesh {}\n", env!("CARGO_PKG_VERSION")));
    });
}

/// The launcher gives the program its input, its signals and its exit code: as an MCP client and a shell see it.
fn passes_everything_on(stage: &Stage, run: impl Fn() -> Program) {
    assert_eq!(run().args(["message", "01M8C0A9FEVE18C9DTZ0H6HJG9"]).run().code, Some(3));
    assert_eq!(run().args(["no-such-command"]).run().code, Some(2));
    let client = StdioClient::connected(run().arg("mcp").start(&stage.folder.join("mcp.log")), "packages");
    assert_eq!(client.close(), Some(0), "the server ends with its input");
    let direct = Program::new(stage.binary()).env("HOME", &stage.home);
    let ended = |program: Program| {
        let mut running = program.args(["events", "--subscribe", "agents"]).start(&stage.folder.join("events.log"));
        let mut output = BufReader::new(running.child.stdout.take().expect("its output is a pipe"));
        let mut first = String::new();
        output.read_line(&mut first).expect("it says that it follows");
        assert!(first.contains("subscribed"), "{first}");
        running.stop()
    };
    assert_eq!(ended(run()), ended(direct), "it ends as the program does");
}

/// A clean root with the libraries of this machine, and of its programs with those alone that were brought.
struct Equipped {
    place: CleanRoot,
    /// The folders of this machine that can be read in the root.
    readable: Vec<PathBuf>,
    /// What was mounted for that, in order.
    mounted: Vec<PathBuf>,
}

impl Equipped {
    fn new() -> Equipped {
        let mut equipped = Equipped { place: CleanRoot::new(), readable: Vec::new(), mounted: Vec::new() };
        for folder in ["/usr/lib", "/usr/lib64", "/usr/share", "/lib", "/lib64"].map(Path::new) {
            match std::fs::read_link(folder) {
                Ok(target) => symlink(target, equipped.inside(folder)).expect("the root is writable"),
                Err(_) if folder.is_dir() => equipped.make_readable(folder),
                Err(_) => {}
            }
        }
        equipped.hide_compilers();
        // Scripts name it by its path.
        equipped.link("/bin/busybox", "env");
        equipped
    }

    fn with_node() -> Equipped {
        let mut equipped = Equipped::new();
        let node = Program::new("node").args(["-p", "process.execPath"]).succeed();
        equipped.bring(Path::new(node.trim_end()), Path::new("/usr/bin/node"));
        let npm = Program::new("sh").args(["-c", "realpath \"$(command -v npm)\""]).succeed();
        let npm = Path::new(npm.trim_end());
        // It is a script of a package, and other packages may lie beside that.
        equipped.make_readable(npm.ancestors().nth(3).expect("npm is PACKAGES/npm/bin/npm-cli.js"));
        equipped.link(npm, "npm");
        equipped
    }

    /// The executable is where it is on this machine, because Python looks for its library from there.
    fn with_python() -> (Equipped, String) {
        let mut equipped = Equipped::new();
        let said = Program::new("python3").args(["-c", PYTHON]).succeed();
        let (executable, prefix) = said.trim_end().split_once('\n').expect("it prints two lines");
        equipped.bring(Path::new(executable), Path::new(executable));
        equipped.make_readable(&Path::new(prefix).join("lib"));
        (equipped, executable.to_owned())
    }

    /// Lets a folder of this machine be read in the root, by the same path. What is written there is refused, so that
    /// nothing can be lost when the root is removed.
    fn make_readable(&mut self, folder: &Path) {
        if self.readable.iter().any(|above| folder.starts_with(above)) {
            return;
        }
        let empty = self.place.folder.with_file_name("empty");
        let inside = self.inside(folder);
        for made in [&empty, &inside] {
            std::fs::create_dir_all(made).expect("the root is writable");
        }
        // An overlay without an upper folder cannot be written to, and is not there for a moment before that holds.
        let layers = format!("lowerdir={}:{}", folder.display(), empty.display());
        self.mount(&["-t", "overlay", "-o", &layers, "overlay"], inside);
        self.readable.push(folder.to_owned());
    }

    /// Their libraries lie beside those of all programs.
    fn hide_compilers(&mut self) {
        let libraries = self.inside(Path::new("/usr/lib"));
        for name in names(&libraries) {
            let folder = libraries.join(&name);
            if OF_COMPILERS.iter().any(|begin| name.starts_with(begin)) && folder.is_dir() && !folder.is_symlink() {
                self.mount(&["-t", "tmpfs", "none"], folder);
            }
        }
    }

    fn mount(&mut self, what: &[&str], target: PathBuf) {
        Program::new("mount").args(what).arg(&target).succeed();
        self.mounted.push(target);
    }

    /// Copies a program of this machine to this path in the root.
    fn bring(&self, program: &Path, path: &Path) {
        let inside = self.inside(path);
        std::fs::create_dir_all(inside.parent().expect("it is in a folder")).expect("the root is writable");
        std::fs::copy(program, inside).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    }

    fn link(&self, path: impl AsRef<Path>, name: &str) {
        let programs = self.inside(Path::new("/usr/bin"));
        std::fs::create_dir_all(&programs).expect("the root is writable");
        symlink(path, programs.join(name)).expect("the root is writable");
    }

    /// Where a path of the root is on this machine.
    fn inside(&self, path: &Path) -> PathBuf {
        self.place.folder.join(path.strip_prefix("/").expect("it is a whole path"))
    }
}

impl Drop for Equipped {
    fn drop(&mut self) {
        Program::new("umount").args(self.mounted.iter().rev()).run();
    }
}
