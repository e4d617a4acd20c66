//! The browser of the tests, which tests/setup has put there, and what it is told to do (checks.mjs).

use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{Program, Stage};

pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Signs a browser in at the server on a port and has it do one thing.
pub(crate) fn browser(stage: &Stage, port: u16, check: &str) -> Program {
    let chromium = tests().join("node_modules/.chromium");
    Program::new("node")
        .arg(tests().join("page/checks.mjs"))
        .args([check, &format!("http://127.0.0.1:{port}"), &code(stage)])
        .env("HOME", &stage.folder)
        .env("CHROMIUM", chromium.join("chromium"))
        .env("LD_LIBRARY_PATH", chromium.join("al2023/lib"))
        .env("FONTCONFIG_FILE", tests().join("page/fonts.conf"))
}

/// The code in the address that `ui --web` prints.
fn code(stage: &Stage) -> String {
    let said = stage.relay_ok(&["ui", "--web", "--no-open", "--json"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let address = said["address"].as_str().expect("an address");
    address.split_once("#code=").expect("a code").1.to_owned()
}
