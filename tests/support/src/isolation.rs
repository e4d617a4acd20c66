//! Isolates each test in its own namespaces (the room): loopback only, own process ids, own mounts.
//!
//! A test runs its own executable again inside the room. Every process it starts there dies with it, a fixed port
//! cannot clash with another test's, and no client can reach the outside world. It works as root and, if the system
//! allows user namespaces, as any other user.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::programs::Program;

/// Set for the inner run: its memory-backed folder.
const ROOM: &str = "RELAY_TEST_ROOM";

/// The first process of the room: brings loopback up and mounts a folder in memory. The shell stays as the test's
/// parent, because a process must reap the orphans of a process namespace.
const OPEN_THE_ROOM: &str = r#"ip link set lo up && mount -t tmpfs -o mode=0700 room "$RELAY_TEST_ROOM" && "$@""#;

/// Runs `body` in its own room. Pass the body of the whole test as a closure.
///
/// # Panics
/// If `body` panics, or the room cannot be opened: a test that cannot be isolated fails, it is never skipped.
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

/// The same for a program that is not a test: it runs again inside the room with the same arguments, and its output
/// goes to this run's output. Returns its exit code.
///
/// # Panics
/// If the room cannot be opened.
pub fn isolated_program(body: impl FnOnce() -> u8) -> u8 {
    if room().is_some() {
        return body();
    }
    let folder = folder();
    let code = itself(&folder).args(std::env::args_os().skip(1)).run_in_sight();
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Lets a test write below `/etc`, as an administrator does: what it writes is seen in its room alone.
///
/// # Panics
/// Outside of a room, or if the system cannot lay one folder over another.
pub fn own_etc() {
    let room = room().expect("a test writes below /etc in a room of its own");
    let (upper, work) = (room.join("etc"), room.join("etc-work"));
    for folder in [&upper, &work] {
        std::fs::create_dir(folder).expect("the room is writable");
    }
    let layers = format!("lowerdir=/etc,upperdir={},workdir={}", upper.display(), work.display());
    Program::new("mount").args(["-t", "overlay", "-o", &layers, "overlay", "/etc"]).succeed();
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("room-").tempdir().expect("a temporary folder can be made")
}

/// This executable again, in a room with this folder in memory.
fn itself(folder: &tempfile::TempDir) -> Program {
    Program::new("unshare")
        .args(["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", OPEN_THE_ROOM, "room"])
        .arg(std::env::current_exe().expect("a program knows its own executable"))
        .environment_of_this_process()
        .env(ROOM, folder.path())
}

/// Prints the inner run's output, for users of `--nocapture`.
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

/// The test's name for the test runner: the path of the function around the closure, without the crate.
fn name_of<F>() -> String {
    let path = std::any::type_name::<F>();
    let function = path.strip_suffix("::{{closure}}").unwrap_or(path);
    function.split_once("::").map_or(function, |(_, rest)| rest).to_owned()
}
