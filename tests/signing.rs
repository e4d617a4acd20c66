//! Publishers: the key that signed an adapter is pinned with the user's consent, and nobody else's update takes its place.

use std::fs;
use std::path::Path;

use serde_json::Value;
use test_support::components::{component, manifest, ship};
use test_support::{Outcome, Program, Stage, page_commands, run_page, search_path};

const YES: [&str; 3] = ["--yes", "--grant", "state"];

#[test]
fn an_update_comes_from_who_signed_what_is_installed() {
    let stage = stage();
    let (old, new) = (key(&stage, "old"), key(&stage, "new"));
    refused(&stage, &["plugin", "install", &package(&stage, "0.1.0")], "`polite` is not signed");
    let first = signed(&stage, "0.1.0", &["old"]);
    let said = told(&stage, &[&["plugin", "install", &first][..], &YES].concat(), 0);
    assert!(said.contains(&format!("signed by {old}, which signed nothing that is installed here")), "{said}");
    assert!(said.contains("it is pinned: an update has to be signed by the same key"), "{said}");
    assert_eq!(json(&stage, &["plugin", "inspect", "polite"])["publishers"], serde_json::json!([old]));

    let update = ["plugin", "update", "polite"];
    let unsigned = package(&stage, "0.2.0");
    for flags in [&[][..], &["--allow-unsigned"]] {
        let words = [&update[..], &[&unsigned], flags].concat();
        refused(&stage, &words, &format!("`polite` was signed by {old}, and this is not signed"));
    }
    let strangers = signed(&stage, "0.2.0", &["new"]);
    let words = [&update[..], &[&strangers, "--allow-unsigned"]].concat();
    let said = refused(&stage, &words, &format!("`polite` was signed by {old}, and this is signed by {new}"));
    assert!(said.contains(&format!("--new-key {new}")), "{said}");
    assert_eq!(json(&stage, &["plugin", "inspect", "polite"])["version"], "0.1.0");

    // Everybody can add a signature: that of a key which the version does not name counts for nothing.
    let both = signed(&stage, "0.3.0", &["old", "new"]);
    let said = told(&stage, &[&update[..], &[&both]].concat(), 0);
    assert!(said.contains(&format!("signed by {new} as well, which counts for nothing")), "{said}");
    assert_eq!(json(&stage, &["plugin", "inspect", "polite"])["publishers"], serde_json::json!([old]));
    let alone = signed(&stage, "0.3.1", &["new"]);
    refused(&stage, &[&update[..], &[&alone]].concat(), &format!("was signed by {old}, and this is signed by {new}"));
    // The publisher changes the key: one version names the new one and is signed with both, and from then on that is
    // enough.
    let both = signed_naming(&stage, "0.3.2", &["old", "new"], &[&old, &new]);
    let said = told(&stage, &[&update[..], &[&both]].concat(), 0);
    assert!(said.contains(&format!("signed by {new} as well: from then on")), "{said}");
    told(&stage, &[&update[..], &[&signed(&stage, "0.4.0", &["new"])]].concat(), 0);
    // The old key is no longer one of them.
    let late = signed(&stage, "0.5.0", &["old"]);
    refused(&stage, &[&update[..], &[&late]].concat(), &format!("was signed by {new}, and this is signed by {old}"));
    // Unless the user names it.
    let not_it = [&update[..], &[&late, "--new-key", &new]].concat();
    refused(&stage, &not_it, &format!("is signed by {old}, and not by {new}"));
    told(&stage, &[&update[..], &[&late, "--new-key", &old]].concat(), 0);
    let verified = told(&stage, &["plugin", "verify"], 0);
    assert!(verified.contains(&format!("signed by {old}")), "{verified}");
}

#[test]
fn what_was_changed_after_it_was_signed_is_refused_whatever_is_allowed() {
    let stage = stage();
    key(&stage, "old");
    let folder = signed(&stage, "0.1.0", &["old"]);
    let file = Path::new(&folder).join("polite.wasm");
    let whole = fs::read(&file).expect("the component");
    // A manifest that asks for something else, inside of it.
    let at = whole.windows(13).position(|part| part == b"exit-code = 2").expect("the manifest is inside");
    let mut changed = whole.clone();
    changed[at + 12] = b'3';
    fs::write(&file, &changed).expect("the stage is writable");
    let install = [&["plugin", "install", &folder, "--allow-unsigned"][..], &YES].concat();
    refused(&stage, &install, "no signature fits: it was changed after it was signed");
    assert!(told(&stage, &["plugin", "inspect", &folder], 0).contains("signed      broken"));

    // A manifest beside it that asks for more than the signed one.
    fs::write(&file, &whole).expect("the stage is writable");
    let beside = Path::new(&folder).join("adapter.toml");
    let text = manifest("polite") + "\n[grants.roots.more]\npath = \"~/.more\"\n";
    fs::write(&beside, text).expect("the stage is writable");
    refused(&stage, &install, "the manifest beside it is another one than the signed one");
    let outcome = run(&stage, &["plugin", "sign", &folder, "--key", "old.pem"]);
    assert!(outcome.stderr.contains("its manifest is inside of it, and another one beside it"), "{outcome:?}");
    fs::remove_file(&beside).expect("it is there");
    told(&stage, &install, 0);
}

#[test]
fn a_stolen_key_is_refused_for_what_comes_and_for_what_is_there() {
    let stage = stage();
    let (old, new) = (key(&stage, "old"), key(&stage, "new"));
    told(&stage, &[&["plugin", "install", &signed(&stage, "0.1.0", &["old"])][..], &YES].concat(), 0);
    let hook =
        |stage: &Stage| stage.relay(&["hook", "polite", "Stop"]).env("XDG_CACHE_HOME", cache()).input("{}").run();
    assert_eq!(hook(&stage).code, Some(0));

    // A project that comes with a clone does not decide whom its user trusts.
    let project = stage.project.join(".relay-mesh.toml");
    fs::write(&project, "[adapters]\nrefused-keys = []\n").expect("the project is writable");
    let outcome = run(&stage, &["plugin", "list"]);
    assert!(outcome.stderr.contains("sets `adapters`, which a project may not set"), "{outcome:?}");
    fs::remove_file(&project).expect("it is there");
    stage.configure("[adapters]\nrefused-keys = ['ed25519:short']\n");
    let outcome = run(&stage, &["plugin", "list"]);
    assert!(outcome.stderr.contains("line 2: a publisher's key is `ed25519:` and 43 letters"), "{outcome:?}");

    stage.configure(&format!("[adapters]\nrefused-keys = ['{old}']\n"));
    let outcome = hook(&stage);
    assert!(outcome.stderr.contains("no adapter is named `polite`"), "{outcome:?}");
    let listed = told(&stage, &["plugin", "list"], 0);
    assert!(listed.contains("your settings refuse the key that signed it"), "{listed}");
    let verified = told(&stage, &["plugin", "verify"], 1);
    assert!(verified.contains("your settings refuse the key that signed it"), "{verified}");
    let later = signed(&stage, "0.2.0", &["old"]);
    let by_it = format!("is signed by {old} alone, and your settings refuse that key");
    refused(&stage, &["plugin", "update", "polite", &later], &by_it);
    // The publisher signs with another key, and the user has learnt it elsewhere.
    let later = signed(&stage, "0.3.0", &["new"]);
    told(&stage, &[&["plugin", "update", "polite", &later, "--new-key", &new][..], &YES].concat(), 0);
    assert_eq!(hook(&stage).code, Some(0));
}

#[test]
fn keys_of_others_sign_as_well_and_what_is_no_key_is_told() {
    let stage = stage();
    let folder = package(&stage, "0.1.0");
    let openssl = Program::new("openssl").args(["genpkey", "-algorithm", "ed25519", "-out", "theirs.pem"]);
    openssl.env("PATH", search_path()).within(&stage.project).succeed();
    let said = told(&stage, &["plugin", "sign", &folder, "--key", "theirs.pem"], 0);
    let public =
        Program::new("openssl").args(["pkey", "-in", "theirs.pem", "-pubout", "-outform", "DER", "-out", "public.der"]);
    public.env("PATH", search_path()).within(&stage.project).succeed();
    let public = fs::read(stage.project.join("public.der")).expect("the public half");
    let printed =
        said.split_whitespace().find(|word| word.starts_with("ed25519:")).expect("a key").trim_end_matches(':');
    assert_eq!(decoded(printed), public[public.len() - 32..], "{said}");
    // And they read ours.
    key(&stage, "ours");
    let read = Program::new("openssl").args(["pkey", "-in", "ours.pem", "-noout"]);
    read.env("PATH", search_path()).within(&stage.project).succeed();

    let again = run(&stage, &["plugin", "keygen", "ours.pem"]);
    assert!(again.stderr.contains("a key that is lost cannot be made again"), "{again:?}");
    let nowhere = run(&stage, &["plugin", "keygen", "my keys/new/key.pem"]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert!(nowhere.stderr.contains("\nhint: make its folder first: `mkdir -p 'my keys/new'`"), "{nowhere:?}");
    assert!(!stage.project.join("my keys").exists(), "no folder was made");
    fs::write(stage.project.join("torn.pem"), "-----BEGIN PRIVATE KEY-----\nMC4C\n").expect("writable");
    for (key, expected) in [
        ("torn.pem", "`torn.pem` holds no key to sign with"),
        ("README.md", "`README.md` holds no key to sign with"),
        ("public.der", "`public.der` holds no key to sign with"),
        ("nowhere.pem", "the key `nowhere.pem` cannot be read"),
    ] {
        let outcome = run(&stage, &["plugin", "sign", &folder, "--key", key]);
        assert!(outcome.stderr.contains(expected) && outcome.code != Some(0), "{key}: {outcome:?}");
    }
    // From standard input, as a job that has it in a secret does.
    let pem = fs::read_to_string(stage.project.join("ours.pem")).expect("the key");
    let signing = stage.relay(&["plugin", "sign", &folder, "--key", "-", "--json"]).input(pem).run();
    let publishers: Value = serde_json::from_str(&signing.stdout).expect("JSON");
    assert_eq!(publishers["publishers"].as_array().map(Vec::len), Some(2), "{signing:?}");
}

/// The bytes of a key as it is printed.
fn decoded(key: &str) -> Vec<u8> {
    use base64::Engine as _;
    let text = key.trim_start_matches("ed25519:");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).expect("base64")
}

#[test]
fn every_command_for_publishers_prints_what_the_page_says() {
    let stage = stage();
    let text = manifest("polite").replace("polite", "toad").replace("POLITE", "TOAD");
    ship(&stage.project, "toad", &component(env!("CARGO_TARGET_TMPDIR"), "polite"), &text);
    let commands = page_commands("docs/installing-adapters.md");
    assert_eq!(commands.len(), 3, "{commands:?}");
    let shell = |_: &str| Program::new("sh").arg("-ec").envs(stage.environment()).within(&stage.project);
    run_page(&commands, shell);
    assert!(told(&stage, &["plugin", "inspect", "./toad.wasm"], 0).contains("ed25519:"), "it is signed");
}

/// Makes a key, and returns its public half.
fn key(stage: &Stage, name: &str) -> String {
    stage.relay_ok(&["plugin", "keygen", &format!("{name}.pem")]).trim().to_owned()
}

/// A folder with this version of the polite adapter.
fn package(stage: &Stage, version: &str) -> String {
    package_naming(stage, version, &[])
}

/// The same with keys that may sign later versions.
fn package_naming(stage: &Stage, version: &str, publishers: &[&str]) -> String {
    let folder = stage.folder.join(format!("unsigned-{version}"));
    let named = if publishers.is_empty() { String::new() } else { format!("publishers = {publishers:?}\n") };
    let text = named + &manifest("polite").replace("0.1.0", version);
    ship(&folder, "polite", &component(env!("CARGO_TARGET_TMPDIR"), "polite"), &text).display().to_string()
}

/// The same with the manifest inside, signed with each of these keys.
fn signed(stage: &Stage, version: &str, keys: &[&str]) -> String {
    signed_naming(stage, version, keys, &[])
}

fn signed_naming(stage: &Stage, version: &str, keys: &[&str], publishers: &[&str]) -> String {
    let from = package_naming(stage, version, publishers);
    let folder = stage.folder.join(format!("signed-{version}-{}", keys.join("-")));
    fs::create_dir_all(&folder).expect("the stage is writable");
    let file = folder.join("polite.wasm").display().to_string();
    stage.relay_ok(&["plugin", "sign", &from, "--key", &format!("{}.pem", keys[0]), "--output", &file]);
    for key in &keys[1..] {
        stage.relay_ok(&["plugin", "sign", &file, "--key", &format!("{key}.pem")]);
    }
    folder.display().to_string()
}

fn refused(stage: &Stage, arguments: &[&str], expected: &str) -> String {
    let said = told(stage, arguments, 4);
    assert!(said.contains(expected), "{arguments:?}: {said}");
    said
}

fn told(stage: &Stage, arguments: &[&str], code: i32) -> String {
    let outcome = run(stage, arguments);
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    format!("{}{}", outcome.stdout, outcome.stderr)
}

fn json(stage: &Stage, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(stage, &[arguments, &["--json"]].concat()).stdout).expect("JSON")
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    stage.relay(arguments).env("XDG_CACHE_HOME", cache()).run()
}

fn cache() -> String {
    format!("{}/cache", env!("CARGO_TARGET_TMPDIR"))
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
