//! What the workflow that publishes a release does by packaging/publish.py, with a stand-in for npm.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use test_support::{Outcome, Program, search_path};

use crate::targets::refused;
use crate::{TARGET, pack, read, root, stand_in};

/// Knows what was published to it, by its digest.
const NPM: &str = r#"#!/bin/sh
field() { tar -xzOf "$1" package/package.json | sed -n "s/^  \"$2\": \"\(.*\)\",\$/\1/p"; }
case $1 in
    view) cat "$STATE/$(echo "$2" | tr / _)" 2>/dev/null || { echo 'npm error code E404' >&2; exit 1; } ;;
    publish)
        name=$(field "$2" name)@$(field "$2" version)
        echo "$name $3 $4 $5 $6" >>"$STATE/log"
        echo "sha512-$(openssl dgst -sha512 -binary "$2" | base64 -w0)" >"$STATE/$(echo "$name" | tr / _)"
        ;;
esac
"#;

#[test]
fn the_launcher_is_published_last_and_nothing_twice() {
    let place = Place::new();
    let first = place.publish("npm", "latest");
    assert_eq!(first.code, Some(0), "{first:?}");
    let published = read(&place.state.join("log"));
    let options = "--access public --tag latest";
    let [platform, launcher] = published.lines().collect::<Vec<_>>()[..] else { panic!("two packages: {published}") };
    assert!(platform.starts_with("@relay-mesh/linux-") && platform.ends_with(options), "{published}");
    assert_eq!(launcher, format!("relay-mesh@{} {options}", env!("CARGO_PKG_VERSION")));

    let again = place.publish("npm", "latest");
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.stdout.matches(": was published already\n").count(), 2, "{again:?}");
    assert_eq!(read(&place.state.join("log")), published);

    place.change_launcher();
    refused(&place.publish("npm", "latest"), "is published with other content\nhint: ");
}

#[test]
fn only_the_files_of_the_tags_release_are_published() {
    let place = Place::new();
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    let fine = place.publish("check", tag);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert_eq!(fine.stdout, "2 files are what SHA256SUMS says\n");
    refused(&place.publish("check", "v0.0.1"), "the tag is v0.0.1, and Cargo.toml has version ");

    let further = place.files.join("further");
    std::fs::write(&further, "").expect("the folder is writable");
    refused(&place.publish("check", tag), "do not name the same files: further\nhint: ");
    std::fs::remove_file(&further).expect("it is ours");
    place.change_launcher();
    refused(&place.publish("check", tag), "is not what SHA256SUMS says\nhint: ");
    std::fs::remove_file(place.launcher()).expect("it is ours");
    refused(&place.publish("check", tag), "do not name the same files: relay-mesh-npm-");
}

/// npm's packages of a release, and a stand-in for npm.
struct Place {
    folder: tempfile::TempDir,
    files: PathBuf,
    state: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (files, state, npm) =
            (folder.path().join("files"), folder.path().join("state"), folder.path().join("bin/npm"));
        for made in [&state, &folder.path().join("bin")] {
            std::fs::create_dir(made).expect("the folder is writable");
        }
        std::fs::write(&npm, NPM).expect("the folder is writable");
        std::fs::set_permissions(&npm, Permissions::from_mode(0o755)).expect("it is ours");
        Program::new("env")
            .args(pack(&stand_in(folder.path(), env!("CARGO_PKG_VERSION")), &files))
            .args(["--target", TARGET, "--only", "npm", "--only", "npm-launcher"])
            .env("SOURCE_DATE_EPOCH", "1795699023")
            .succeed();
        Place { folder, files, state }
    }

    fn publish(&self, what: &str, tag: &str) -> Outcome {
        let path = format!("{}:{}", self.folder.path().join("bin").display(), search_path().display());
        Program::new("python3")
            .arg(root().join("packaging/publish.py"))
            .arg(what)
            .arg(&self.files)
            .args(["--tag", tag])
            .env("PATH", path)
            .env("STATE", &self.state)
            .run()
    }

    fn launcher(&self) -> PathBuf {
        self.files.join(concat!("relay-mesh-npm-", env!("CARGO_PKG_VERSION"), ".tgz"))
    }

    fn change_launcher(&self) {
        let mut content = std::fs::read(self.launcher()).expect("it was packed");
        content.push(0);
        std::fs::write(self.launcher(), content).expect("it is ours");
    }
}
