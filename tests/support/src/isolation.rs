//! A room of its own for each test: no network but loopback, its own process ids, its own mounts.
//!
//! A test runs its own executable again inside the room. Whatever it starts there dies with it, a
//! fixed port cannot clash with another test's, and no client can reach the outside world. It works
//! as root and, where the system allows user namespaces, as anybody else.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::programs::Program;

/// Tells the inner run that it is inside, and where its memory-backed folder is.
const ROOM: &str = "RELAY_TEST_ROOM";

/// The first process of the room: it brings loopback up and lends a folder in memory. A shell stays
/// in front of the test, because somebody has to reap the orphans of a process namespace.
const OPEN_THE_ROOM: &str = r#"ip link set lo up && mount -t tmpfs -o mode=0700 room "$RELAY_TEST_ROOM" && "$@""#;

/// Runs `body` in a room of its own. Give it the body of the whole test as a closure.
///
/// # Panics
/// Where `body` panics, and where the room cannot be opened: a test that cannot be isolated fails,
/// it is never skipped.
pub fn isolated<F: FnOnce()>(body: F) {
    if room().is_some() {
        return body();
    }
    let test = name_of::<F>();
    let folder = folder();
    let outcome = itself(&folder).args(["--exact", &test, "--nocapture", "--include-ignored"]).run();
    let ran = outcome.stdout.contains("test result: ok. 1 passed");
    assert!(outcome.code == Some(0) && ran, "in its room, {test} failed\n{}\n{}", outcome.stdout, outcome.stderr);
    pass_on(&outcome.stdout);
}

/// The same for a program that is no test: inside the room it runs again with the same arguments, and
/// what it says goes where this run's words go. Gives its exit code.
///
/// # Panics
/// Where the room cannot be opened.
pub fn isolated_program(body: impl FnOnce() -> u8) -> u8 {
    if room().is_some() {
        return body();
    }
    let folder = folder();
    let code = itself(&folder).args(std::env::args_os().skip(1)).run_in_sight();
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("room-").tempdir().expect("a temporary folder can be made")
}

/// This executable once more, in a room that has this folder in memory.
fn itself(folder: &tempfile::TempDir) -> Program {
    Program::new("unshare")
        .args(["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", OPEN_THE_ROOM, "room"])
        .arg(std::env::current_exe().expect("a program knows its own executable"))
        .environment_of_this_process()
        .env(ROOM, folder.path())
}

/// What a test that passed has said is of use to whoever asked for it with `--nocapture`.
#[expect(clippy::print_stdout, reason = "the test runner takes what a test prints, and shows it when asked")]
fn pass_on(said: &str) {
    print!("{said}");
}

/// The memory-backed folder of the room that this process runs in.
#[expect(clippy::disallowed_methods, reason = "the outer run tells the inner one by this variable that it is inside")]
pub(crate) fn room() -> Option<&'static PathBuf> {
    static INSIDE: OnceLock<Option<PathBuf>> = OnceLock::new();
    INSIDE.get_or_init(|| std::env::var_os(ROOM).map(PathBuf::from)).as_ref()
}

/// The test's name as the test runner spells it: the path of the function around the closure,
/// without the crate.
fn name_of<F>() -> String {
    let path = std::any::type_name::<F>();
    let function = path.strip_suffix("::{{closure}}").unwrap_or(path);
    function.split_once("::").map_or(function, |(_, rest)| rest).to_owned()
}
