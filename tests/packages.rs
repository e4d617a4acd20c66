//! What people install relay-mesh from. That packing gives the same bytes each time is tested always, with a stand-in for
//! the binary. What `make dist` has packed is installed in a clean root and used there: `make dist` runs those tests.

#![cfg(target_os = "linux")]

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use test_support::{Program, Stage, StdioClient, isolated, search_path};

/// The target of packages for this machine.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// Answers what the packer asks of the binary.
const STAND_IN: &str = r#"#!/bin/sh
case $1 in
    --version) echo relay-mesh VERSION ;;
    completions) echo "completions for $2" ;;
    man) echo ".TH relay-mesh 1" >"$3/relay-mesh.1"; echo ".TH relay-mesh-send 1" >"$3/relay-mesh-send.1" ;;
esac
"#;

#[test]
fn a_binary_is_packed_the_same_twice() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let binary = stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
    let sums: Vec<String> = [("one", "022", "UTC"), ("two", "077", "Asia/Tokyo")]
        .into_iter()
        .map(|(name, mask, zone)| {
            let out = folder.path().join(name);
            let kinds = ["tarball", "npm", "wheel", "homebrew", "installer"];
            let kinds: Vec<&str> = kinds.into_iter().flat_map(|kind| ["--only", kind]).collect();
            Program::new("sh")
                .args(["-c", &format!("umask {mask}; exec \"$@\""), "packed"])
                .args(pack(&binary, &out))
                .args(["--target", TARGET])
                .args(kinds)
                .envs([("TZ", zone), ("SOURCE_DATE_EPOCH", "1795699023")])
                .succeed();
            read(&out.join("SHA256SUMS"))
        })
        .collect();
    assert_eq!(sums[0].lines().count(), 6, "an archive, two npm packages, a wheel, a formula, install.sh\n{}", sums[0]);
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let script = stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
    let older = folder.path().join("older");
    std::fs::create_dir(&older).expect("the folder is writable");
    let older = stand_in(&older, "0.0.1");
    let dynamic = PathBuf::from("/bin/sh");
    let missing = folder.path().join("missing");
    for (binary, target, epoch, said) in [
        (&missing, "", "0", "there is no "),
        (&script, "", "0", "is no 64-bit ELF program"),
        (&dynamic, "", "0", "needs a dynamic linker"),
        (&older, TARGET, "0", "says 'relay-mesh 0.0.1', and Cargo.toml has version"),
        (&script, "mips-unknown-linux-musl", "0", "mips-unknown-linux-musl is no target that is packed"),
        (&script, TARGET, "yesterday", "SOURCE_DATE_EPOCH is 'yesterday'"),
    ] {
        let out = folder.path().join("out");
        let target: &[&str] = if target.is_empty() { &[] } else { &["--target", target] };
        let outcome = Program::new("env").args(pack(binary, &out)).args(target).env("SOURCE_DATE_EPOCH", epoch).run();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(said), "{said}: {outcome:?}");
        assert!(!outcome.stderr.contains("Traceback"), "{outcome:?}");
        assert!(!out.exists(), "nothing was packed");
    }
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn everything_is_packed_the_same_again() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let binary = stage().binary().to_owned();
    let program = Program::new("env").args(pack(&binary, folder.path()));
    program.environment_of_this_process().succeed();
    assert_eq!(read(&folder.path().join("SHA256SUMS")), read(&dist().join("SHA256SUMS")));
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_archive_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        place.bring(".tar.gz");
        let archive = named(".tar.gz");
        let stem = archive.trim_end_matches(".tar.gz");
        let seconds = place.install(&format!("tar -xzf /dist/{archive} -C /tmp && ln -s /tmp/{stem}/relay-mesh /bin/"));
        place.use_it(".tar.gz", seconds);
        let inside = names(&place.folder.join("tmp").join(stem));
        assert_eq!(inside, ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "completions", "man", "relay-mesh"]);
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_installer_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        for file in [".tar.gz", "install.sh", "SHA256SUMS"] {
            place.bring(file);
        }
        let seconds = place.install("RELAY_MESH_URL=file:///dist RELAY_MESH_BIN=/bin sh /dist/install.sh");
        place.use_it("install.sh", seconds);
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_debian_package_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        let database = place.folder.join("var/lib/dpkg");
        for folder in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(database.join(folder)).expect("the root is writable");
        }
        for file in ["status", "available"] {
            std::fs::write(database.join(file), "").expect("the root is writable");
        }
        let dpkg =
            |what: &[&str]| Program::new("dpkg").arg(format!("--root={}", place.folder.display())).args(what).succeed();
        let began = Instant::now();
        dpkg(&["--install", &dist().join(named(".deb")).display().to_string()]);
        place.use_it(".deb", began.elapsed().as_secs_f64());
        dpkg(&["--verify", "relay-mesh"]);
        dpkg(&["--purge", "relay-mesh"]);
        assert!(!place.folder.join("usr/bin/relay-mesh").exists(), "it was removed");
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_rpm_works_in_a_clean_root() {
    isolated(|| {
        let place = CleanRoot::new();
        let rpm = |what: &[&str]| {
            Program::new("rpm").args(["--root", &place.folder.display().to_string()]).args(what).succeed()
        };
        rpm(&["--initdb"]);
        let began = Instant::now();
        // Debian's rpm says that it should not be used to install.
        rpm(&["--install", "--force-debian", &dist().join(named(".rpm")).display().to_string()]);
        place.use_it(".rpm", began.elapsed().as_secs_f64());
        rpm(&["--verify", "relay-mesh"]);
        rpm(&["--erase", "relay-mesh"]);
        assert!(!place.folder.join("usr/bin/relay-mesh").exists(), "it was removed");
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_npm_packages_work_without_a_network() {
    isolated(|| {
        let stage = stage();
        let packages = named_all(".tgz").into_iter().map(|name| dist().join(name));
        // Without one, npm looks for a project in the folders above.
        std::fs::write(stage.project.join("package.json"), "{}").expect("the stage is writable");
        let began = Instant::now();
        Program::new("npm")
            .args(["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"])
            .args(packages)
            .env("HOME", &stage.home)
            .within(&stage.project)
            .succeed();
        let seconds = began.elapsed().as_secs_f64();
        let launcher = stage.project.join("node_modules/.bin");
        use_it(".tgz", seconds, || beside(&stage, &launcher, "sh"));
        passes_everything_on(&stage, &launcher);
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_wheel_works_without_a_network() {
    isolated(|| {
        let stage = stage();
        let environment = stage.project.join(".venv");
        Program::new("python3").args(["-m", "venv"]).arg(&environment).env("HOME", &stage.home).succeed();
        let began = Instant::now();
        Program::new(environment.join("bin/pip"))
            .args(["install", "--no-index", "--disable-pip-version-check"])
            .arg(dist().join(named(".whl")))
            .env("HOME", &stage.home)
            .succeed();
        let seconds = began.elapsed().as_secs_f64();
        use_it(".whl", seconds, || beside(&stage, &environment.join("bin"), "sh"));
    });
}

/// The launcher gives the program its input, its signals and its exit code: as an MCP client and a shell see it.
fn passes_everything_on(stage: &Stage, launcher: &Path) {
    let run = || beside(stage, launcher, "relay-mesh");
    assert_eq!(run().args(["message", "01M8C0A9FEVE18C9DTZ0H6HJG9"]).run().code, Some(3));
    assert_eq!(run().args(["no-such-command"]).run().code, Some(2));
    let client = StdioClient::connected(run().arg("mcp").start(&stage.folder.join("mcp.log")), "packages");
    assert_eq!(client.close(), Some(0), "the server ends with its input");
    let direct = Program::new(stage.binary()).env("HOME", stage.folder.join("new-home"));
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

/// A root with busybox and nothing else, in which a package is installed.
struct CleanRoot {
    folder: PathBuf,
    _stage: Stage,
}

impl CleanRoot {
    fn new() -> CleanRoot {
        let stage = stage();
        let folder = stage.folder.join("root");
        for name in ["bin", "dev", "dist", "etc", "proc", "root", "tmp"] {
            std::fs::create_dir_all(folder.join(name)).expect("the root is writable");
        }
        std::fs::copy("/bin/busybox", folder.join("bin/busybox")).expect("packaging/setup installs busybox-static");
        std::fs::write(folder.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").expect("the root is writable");
        std::fs::write(folder.join("dev/null"), "").expect("the root is writable");
        Program::new("mount").args(["--bind", "/dev/null"]).arg(folder.join("dev/null")).succeed();
        Program::new("mount").args(["-t", "proc", "proc"]).arg(folder.join("proc")).succeed();
        let place = CleanRoot { folder, _stage: stage };
        place.run("busybox").args(["--install", "-s", "/bin"]).succeed();
        place
    }

    /// Copies a file of dist/ into the root.
    fn bring(&self, ending: &str) {
        let name = named(ending);
        std::fs::copy(dist().join(&name), self.folder.join("dist").join(&name)).expect("it can be copied");
    }

    fn run(&self, program: &str) -> Program {
        let inside = ["/bin/busybox", "env", "-i", "HOME=/root", "PATH=/bin:/usr/bin", program];
        Program::new("chroot").arg(&self.folder).args(inside)
    }

    /// Installs by a command in the root, and returns how many seconds it took.
    fn install(&self, command: &str) -> f64 {
        let began = Instant::now();
        self.run("sh").args(["-c", command]).succeed();
        began.elapsed().as_secs_f64()
    }

    fn use_it(&self, ending: &str, seconds: f64) {
        use_it(ending, seconds, || self.run("sh"));
    }
}

impl Drop for CleanRoot {
    fn drop(&mut self) {
        // The room would end without this too. What removes the folder is not to walk into /proc.
        Program::new("umount").arg(self.folder.join("proc")).arg(self.folder.join("dev/null")).run();
    }
}

/// A message between two agents, and the doctor, with what was installed from the package of this ending. What it took
/// is noted for the table in docs/releasing.md.
fn use_it(ending: &str, seconds: f64, shell: impl Fn() -> Program) {
    let said = shell().args(["-c", "relay-mesh --version"]).succeed();
    assert_eq!(said, format!("relay-mesh {}\n", env!("CARGO_PKG_VERSION")));
    let began = Instant::now();
    let talk = "relay-mesh register alice && relay-mesh register bob \
                && relay-mesh send bob 'from a package' --from alice && relay-mesh read --agent bob";
    let said = shell().args(["-c", talk]).succeed();
    assert!(said.ends_with("  from a package\n"), "{said}");
    let first_message = began.elapsed().as_secs_f64();
    let doctor = shell().args(["-c", "relay-mesh doctor"]).succeed();
    let fine = doctor.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(fine, doctor.lines().count(), "{doctor}");
    assert!(doctor.contains("claude-code: adapter: version "), "{doctor}");
    let notes = dist().join(".installed");
    std::fs::create_dir_all(&notes).expect("dist/ is writable");
    let note = json!({
        "ending": ending,
        "seconds": seconds,
        "first_message": first_message,
        "doctor": format!("{fine} of {fine} ok"),
    });
    std::fs::write(notes.join(format!("{ending}.json")), note.to_string()).expect("dist/ is writable");
}

/// A program of this machine or of the package, with the package's programs first, on the stage.
fn beside(stage: &Stage, programs: &Path, program: &str) -> Program {
    let path = format!("{}:{}", programs.display(), search_path().display());
    // The stage's own home has the adapters compiled already, which nobody's has after installing.
    let home = stage.folder.join("new-home");
    std::fs::create_dir_all(&home).expect("the stage is writable");
    Program::new("env").arg(format!("PATH={path}")).arg(program).env("HOME", home).within(&stage.project)
}

/// The packer's command line for this binary.
fn pack(binary: &Path, out: &Path) -> Vec<String> {
    let words = [
        "python3".into(),
        root().join("packaging/pack.py"),
        "--binary".into(),
        binary.into(),
        "--out".into(),
        out.into(),
    ];
    words.map(|word: PathBuf| word.display().to_string()).to_vec()
}

fn stand_in(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join("relay-mesh");
    std::fs::write(&path, STAND_IN.replace("VERSION", version)).expect("the folder is writable");
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    path
}

/// The file of dist/ whose name ends so.
fn named(ending: &str) -> String {
    let found = named_all(ending);
    assert_eq!(found.len(), 1, "`make dist` packs one file {ending}: {found:?}");
    found[0].clone()
}

fn named_all(ending: &str) -> Vec<String> {
    let mut all = names(&dist());
    all.retain(|name| name.ends_with(ending));
    all
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn dist() -> PathBuf {
    root().join("dist")
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
