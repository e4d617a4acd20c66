//! Places in which a package is installed, and what is done with what was installed.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use test_support::{Program, Stage, page_commands};

/// A root with busybox and nothing else, in which a package is installed.
pub(crate) struct CleanRoot {
    pub(crate) folder: PathBuf,
    _stage: Stage,
}

impl CleanRoot {
    pub(crate) fn new() -> CleanRoot {
        let stage = stage();
        let folder = stage.folder.join("root");
        for name in ["bin", "dist", "etc", "root", "tmp"] {
            std::fs::create_dir_all(folder.join(name)).expect("the root is writable");
        }
        std::fs::write(folder.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").expect("the root is writable");
        let place = CleanRoot::of(folder, stage);
        place.run("busybox").args(["--install", "-s", "/bin"]).succeed();
        place
    }

    /// A root that is there, with what a system or a container's runtime adds: /proc, /dev/null, and busybox to look at it.
    pub(crate) fn of(folder: PathBuf, stage: Stage) -> CleanRoot {
        for name in ["bin", "dev", "proc"] {
            std::fs::create_dir_all(folder.join(name)).expect("the root is writable");
        }
        std::fs::copy("/bin/busybox", folder.join("bin/busybox")).expect("packaging/setup installs busybox-static");
        std::fs::write(folder.join("dev/null"), "").expect("the root is writable");
        Program::new("mount").args(["--bind", "/dev/null"]).arg(folder.join("dev/null")).succeed();
        Program::new("mount").args(["-t", "proc", "proc"]).arg(folder.join("proc")).succeed();
        CleanRoot { folder, _stage: stage }
    }

    /// Copies a file of dist/ into the root.
    pub(crate) fn bring(&self, ending: &str) {
        self.copy(&named(ending));
    }

    /// The same for the file of this name.
    pub(crate) fn copy(&self, name: &str) {
        std::fs::copy(dist().join(name), self.folder.join("dist").join(name)).expect("it can be copied");
    }

    pub(crate) fn run(&self, program: &str) -> Program {
        self.run_with("/usr/bin", program)
    }

    /// With the programs of this folder of the root first on the PATH.
    pub(crate) fn run_with(&self, programs: &str, program: &str) -> Program {
        let path = format!("PATH={programs}:/bin:/usr/bin");
        let inside = ["/bin/busybox", "env", "-i", "HOME=/root", &path, program];
        Program::new("chroot").arg(&self.folder).args(inside)
    }

    /// Installs by a command in the root, and returns how many seconds it took.
    pub(crate) fn install(&self, command: &str) -> f64 {
        let began = Instant::now();
        self.run("sh").args(["-c", command]).succeed();
        began.elapsed().as_secs_f64()
    }

    /// Uses what was installed into this folder of the root.
    pub(crate) fn use_it(&self, ending: &str, seconds: f64, programs: &str) {
        hello_world(&self.folder.join("bin/hello-world"));
        use_it(ending, seconds, "/bin/hello-world", || self.run_with(programs, "sh"));
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
///
/// `hello` is where the shell finds what `hello_world` has made.
pub(crate) fn use_it(ending: &str, seconds: f64, hello: &str, shell: impl Fn() -> Program) {
    let compilers =
        "for one in cc gcc clang tcc rustc cargo; do command -v $one; done; ls -A /usr/lib/gcc 2>/dev/null; true";
    assert_eq!(shell().args(["-c", compilers]).succeed(), "", "a clean root has no compiler");
    let said = shell().args(["-c", "relay-mesh --version"]).succeed();
    assert_eq!(said, format!("relay-mesh {}\n", env!("CARGO_PKG_VERSION")));
    let began = Instant::now();
    // The README's twenty seconds. Several packages are tried in one root, so what is read may hold older mail too.
    let twenty = page_commands("README.md").into_iter().filter(|command| command.section == "Try it");
    let (typed, prints): (Vec<_>, Vec<_>) = twenty.map(|command| (command.typed, command.prints)).unzip();
    assert_eq!(typed.len(), 4, "{typed:?}");
    let said = shell().args(["-c", &typed.join(" && ")]).succeed();
    assert_eq!(said.lines().last(), prints.concat().last().map(String::as_str), "{said}");
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
        "times_hello_world": times(hello, &shell),
    });
    std::fs::write(notes.join(format!("{ending}.json")), note.to_string()).expect("dist/ is writable");
}

/// The smallest program there is: static, prints a line.
pub(crate) fn hello_world(path: &Path) {
    let source = path.with_extension("c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n")
        .expect("it is writable");
    Program::new("cc").args(["-static", "-O2", "-o"]).args([path, &source]).succeed();
}

/// How many times as long as this program `relay-mesh --version` takes. The fastest of several turns counts on each
/// side: what else the machine does is in neither. It is noted, and nothing is asserted of it.
fn times(hello: &str, shell: impl Fn() -> Program) -> f64 {
    let turn = |command: &str| {
        let again = format!("i=0; while [ $i -lt 10 ]; do {command} >/dev/null || exit 1; i=$((i + 1)); done");
        let began = Instant::now();
        shell().args(["-c", &again]).succeed();
        began.elapsed().as_secs_f64()
    };
    let (mut least, mut least_hello) = (f64::MAX, f64::MAX);
    for _ in 0..5 {
        least = least.min(turn("relay-mesh --version"));
        least_hello = least_hello.min(turn(hello));
    }
    least / least_hello
}

/// The file of dist/ whose name ends so.
pub(crate) fn named(ending: &str) -> String {
    let found = named_all(ending);
    assert_eq!(found.len(), 1, "`make dist` packs one file {ending}: {found:?}");
    found[0].clone()
}

pub(crate) fn named_all(ending: &str) -> Vec<String> {
    let mut all = names(&dist());
    all.retain(|name| name.ends_with(ending));
    all
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

pub(crate) fn dist() -> PathBuf {
    root().join("dist")
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
