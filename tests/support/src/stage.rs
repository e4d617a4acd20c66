//! A stage: one test's own home, project under version control, and data folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::isolation;
use crate::programs::{Outcome, Program};

/// The variable that names a binary to test instead of the one cargo built: the released one, by `make test`.
pub const BINARY: &str = "RELAY_MESH_BINARY";

/// The folders of one test and the binary under test.
pub struct Stage {
    /// Contains all the others.
    pub folder: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// The user's project: a git repository with one commit.
    pub project: PathBuf,
    /// The data folder of relay-mesh.
    pub data: PathBuf,
    binary: PathBuf,
    _temporary: TempDir,
}

impl Stage {
    /// Sets up a stage for this binary, or for the one that [`BINARY`] names. Pass `env!("CARGO_BIN_EXE_relay-mesh")`.
    ///
    /// # Panics
    /// If the variable names no file.
    pub fn new(binary: &str) -> Stage {
        let mut builder = tempfile::Builder::new();
        builder.prefix("stage-");
        let temporary = match isolation::room() {
            Some(room) => builder.tempdir_in(room),
            None => builder.tempdir(),
        }
        .expect("a temporary folder can be made");
        Stage::set(chosen(binary), temporary)
    }

    /// The same below `folder`, such as one on a disk, for exactly this binary. A test's own stage is in memory.
    pub fn within(folder: &Path, binary: &Path) -> Stage {
        let temporary = tempfile::Builder::new().prefix("stage-").tempdir_in(folder);
        Stage::set(binary, temporary.expect("a temporary folder can be made"))
    }

    fn set(binary: impl Into<PathBuf>, temporary: TempDir) -> Stage {
        let folder = temporary.path().to_owned();
        let stage = Stage {
            home: folder.join("home"),
            project: folder.join("home/project"),
            data: folder.join("home/.relay-mesh"),
            binary: binary.into(),
            folder,
            _temporary: temporary,
        };
        std::fs::create_dir_all(&stage.project).expect("the stage is writable");
        std::fs::write(stage.project.join("README.md"), "# A project\n").expect("the stage is writable");
        stage.share_compiled_adapters();
        stage.git(&["init", "-q", "-b", "main"]);
        stage.git(&["add", "."]);
        stage.git(&["commit", "-q", "-m", "The project begins"]);
        stage
    }

    /// Runs relay-mesh to its end with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.relay(arguments).run()
    }

    /// Runs relay-mesh with these arguments, expects success and returns its standard output.
    pub fn relay_ok(&self, arguments: &[&str]) -> String {
        self.relay(arguments).succeed()
    }

    /// relay-mesh with these arguments, about to be run in the project.
    pub fn relay(&self, arguments: &[&str]) -> Program {
        let environment = self.environment();
        let environment = environment.iter().map(|(name, value)| (name, value));
        Program::new(&self.binary).args(arguments).envs(environment).within(&self.project)
    }

    /// Runs relay-mesh with these arguments in the project and kills the first process of it that makes a system call
    /// for the nth time. The exit code is none if that was relay-mesh itself.
    pub fn run_killed_at(
        &self,
        call: &str,
        nth: usize,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Outcome {
        self.run_killed_with(call, nth, arguments, [])
    }

    /// The same with further variables.
    pub fn run_killed_with(
        &self,
        call: &str,
        nth: usize,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        variables: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Outcome {
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let outcome = Program::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject])
            .arg(&self.binary)
            .args(arguments)
            .envs(self.environment())
            .envs(variables)
            .within(&self.project)
            .run();
        // strace ends as the traced program did, so its own errors must be checked.
        assert!(!outcome.stderr.contains("strace: "), "{outcome:?}");
        outcome
    }

    /// All reservations, as `owner pattern`.
    pub fn held(&self) -> Vec<String> {
        let told: Value = serde_json::from_str(&self.relay_ok(&["reservations", "--json"])).expect("JSON");
        let word = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
        let all = told["reservations"].as_array().expect("a list").iter();
        all.map(|one| format!("{} {}", word(one, "owner"), word(one, "pattern"))).collect()
    }

    /// The project's folder, as an argument.
    pub fn project_path(&self) -> String {
        self.project.display().to_string()
    }

    /// The binary that this stage is for.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Writes the user's own settings of relay-mesh.
    pub fn configure(&self, settings: &str) {
        let folder = self.home.join(".config/relay-mesh");
        std::fs::create_dir_all(&folder).expect("the home is writable");
        std::fs::write(folder.join("config.toml"), settings).expect("the home is writable");
    }

    /// Every file and folder below a folder, with the files' bytes, except git's own.
    pub fn tree(&self, folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
                let path = entry.expect("the folder can be read").path();
                if path.is_dir() && !path.ends_with(".git") {
                    tree.insert(path.clone(), Vec::new());
                    folders.push(path);
                } else if path.is_file() {
                    tree.insert(path.clone(), std::fs::read(&path).expect("the file can be read"));
                }
            }
        }
        tree
    }

    /// The project's `git status --porcelain`, including ignored files.
    pub fn git_status(&self) -> String {
        self.git(&["status", "--porcelain", "--ignored", "--untracked-files=all"])
    }

    /// Runs git in the project.
    pub fn git(&self, arguments: &[&str]) -> String {
        Program::new("git")
            .args(["-c", "user.name=A Person", "-c", "user.email=person@example.org"])
            .args(arguments)
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .within(&self.project)
            .succeed()
    }

    /// The user's own folder of programs, which is on PATH.
    pub fn programs(&self) -> PathBuf {
        self.home.join(".local/bin")
    }

    /// Puts an executable script among the user's programs.
    pub fn program(&self, name: &str, text: &str) {
        let file = self.programs().join(name);
        std::fs::create_dir_all(self.programs()).expect("the home is writable");
        std::fs::write(&file, text).expect("the home is writable");
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("the file is ours");
    }

    /// Puts a real client on PATH under this name. It has its variables although the program that starts it passes
    /// none on, and runs this shell code before.
    pub fn client(&self, name: &str, program: &Path, environment: &[(String, String)], first: &str) {
        let usual = ["PATH", "HOME", "TMPDIR", "LANG", "TERM", "RELAY_DIR"];
        let own = environment.iter().filter(|(name, _)| !usual.contains(&name.as_str()));
        let exports: String = own.map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        let real = std::fs::canonicalize(program).expect("the client is installed");
        // A link of that name may be there already.
        let _gone = std::fs::remove_file(self.programs().join(name));
        self.program(name, &format!("#!/bin/sh\n{exports}{first}\nexec '{}' \"$@\"\n", real.display()));
    }

    /// The environment of the user's programs. The binary is on PATH, as after an installation.
    pub fn environment(&self) -> Vec<(String, String)> {
        let programs = self.binary.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let own = self.programs();
        let searched =
            format!("{programs}:{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", own.display());
        [
            ("HOME", self.home.display().to_string()),
            ("TMPDIR", self.folder.display().to_string()),
            ("RELAY_DIR", self.data.display().to_string()),
            ("PATH", searched),
            ("LANG", "C.UTF-8".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

/// The binary that [`BINARY`] names, else `built`.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says by this variable which binary is tested")]
fn chosen(built: &str) -> PathBuf {
    let Some(named) = std::env::var_os(BINARY).map(PathBuf::from) else { return PathBuf::from(built) };
    assert!(named.is_absolute() && named.is_file(), "{BINARY} has to be a file's whole path: {}", named.display());
    named
}
