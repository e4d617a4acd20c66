//! The linker of the released program, `host/relay-mesh/layout/linker`: no test builds the release, so a small
//! program is linked by it here, as rustc would have it and as it would for musl, where it does not name lld itself.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;

use test_support::Program;

#[test]
fn the_functions_of_a_program_lie_in_the_order_of_the_list() {
    for (linked_by, arguments) in
        [("the lld that rustc names", &[][..]), ("the lld that it found", &["-C", "linker-features=-lld"])]
    {
        in_the_order_of_the_list(linked_by, arguments);
    }
}

fn in_the_order_of_the_list(linked_by: &str, arguments: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = std::fs::read_to_string(root.join("host/relay-mesh/layout/functions")).expect("the list is there");
    // With digests of another compiler, so that they are found by their names.
    let names: Vec<String> =
        listed.lines().filter(|name| name.starts_with("_ZN10relay_mesh")).map(other_digest).collect();
    let [first, second, third] = &names[..3] else { panic!("the list has too few functions of ours") };
    let folder = tempfile::tempdir().expect("a folder");
    // As cargo has it: rustc writes into a folder of the profile's.
    let deps = folder.path().join("release/deps");
    std::fs::create_dir_all(&deps).expect("a folder");
    let function = |name: &str, says: u8| {
        format!(
            "#[unsafe(export_name = {name:?})]\n#[inline(never)]\npub extern \"C\" fn f{says}() -> u8 {{ std::hint::black_box({says}) }}\n"
        )
    };
    let main = "fn main() { println!(\"{}\", f1() + f2() + f3()); }\n";
    let source = [function(third, 3), function(first, 1), function(second, 2), main.to_owned()].concat();
    std::fs::write(folder.path().join("main.rs"), source).expect("the folder is writable");
    let linker = format!("linker={}", root.join("host/relay-mesh/layout/linker").display());
    let program = deps.join("program");
    Program::new("rustc")
        .args(["--edition", "2024", "-O", "-C", &linker])
        .args(arguments)
        .arg("-o")
        .arg(&program)
        .arg("main.rs")
        .environment_of_this_process()
        .within(folder.path())
        .succeed();

    assert_eq!(Program::new(&program).succeed(), "6\n", "it runs");
    let map = std::fs::read_to_string(folder.path().join("release/relay-mesh.map")).expect("there is a map");
    let places = [first, second, third].map(|name| {
        let line = map.lines().find(|line| line.ends_with(&format!(" {name}")));
        let address = line.and_then(|line| line.split_whitespace().next()).unwrap_or_else(|| panic!("no {name}"));
        u64::from_str_radix(address, 16).expect("an address")
    });
    assert!(places.is_sorted(), "they lie in the order of the list by {linked_by}: {places:x?}");
}

/// A symbol as another compiler would have it.
fn other_digest(symbol: &str) -> String {
    let (name, _) = symbol.rsplit_once("17h").expect("a symbol ends in its digest");
    format!("{name}17h0123456789abcdefE")
}
