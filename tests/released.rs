//! Which binary the other tests run: the one that cargo built, or the released one if `make test` names it by a
//! variable. Also checks that the released one is what it should be.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use test_support::{BINARY, Program, Stage};

#[test]
fn the_tests_run_the_binary_that_the_variable_names() {
    let stage = stage();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let named = folder.path().join("relay-mesh");
    std::fs::copy(stage.binary(), &named).expect("the binary can be copied");
    let said = Program::new(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", "what_is_tested", "--ignored", "--nocapture"])
        .env(BINARY, &named)
        .succeed();
    for (what, line) in [("a stage", "stage: "), ("the path", "path: ")] {
        let told = said.lines().find_map(|said| said.strip_prefix(line));
        assert_eq!(told.map(Path::new), Some(&*named), "{what} has another binary\n{said}");
    }
}

#[test]
#[ignore = "it prints what the test above looks at"]
fn what_is_tested() {
    let stage = stage();
    let by_path = Program::new("sh").args(["-c", "command -v relay-mesh"]).envs(stage.environment()).succeed();
    println!("\nstage: {}\npath: {}", stage.binary().display(), by_path.trim());
    println!("{}", stage.relay_ok(&["version"]));
}

#[test]
#[ignore = "of the released binary alone: `make test` runs it"]
fn the_released_binary_is_static_and_lies_anywhere() {
    let stage = stage();
    let named = std::env::vars_os().find(|(name, _)| name == BINARY).map(|(_, path)| PathBuf::from(path));
    assert_eq!(named.as_deref(), Some(stage.binary()), "run it by `make test`");
    let elf = Elf(std::fs::read(stage.binary()).expect("the binary can be read"));
    assert_eq!(elf.0[..4], *b"\x7fELF");
    assert_eq!(elf.kind(), SHARED_OBJECT, "it has a fixed address, and so no address randomisation of its own");
    let segments = elf.segments();
    assert!(!segments.contains(&INTERPRETER), "it needs a dynamic linker: {segments:?}");
    println!("{} is a static-pie program", stage.binary().display());
}

/// ELF type of a position-independent program (ET_DYN).
const SHARED_OBJECT: u64 = 3;
/// ELF segment that names a dynamic linker (PT_INTERP).
const INTERPRETER: u64 = 3;

/// A 64-bit little-endian program, as all Linux releases are.
struct Elf(Vec<u8>);

impl Elf {
    fn kind(&self) -> u64 {
        self.number(16, 2)
    }

    fn segments(&self) -> Vec<u64> {
        let (table, size, count) = (self.number(32, 8), self.number(54, 2), self.number(56, 2));
        (0..count).map(|segment| self.number((table + segment * size) as usize, 4)).collect()
    }

    fn number(&self, at: usize, bytes: usize) -> u64 {
        self.0[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
