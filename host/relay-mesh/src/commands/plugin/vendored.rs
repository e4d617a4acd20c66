//! The sdk, as `plugin new` writes it into a new repository: until it is published, an author has no other way to it.
//! Its manifest takes from the workspace what a package of its own has to say itself.

use toml::{Table, Value};

use super::templates::{Template, WIT};

/// Whether the sdk can be had from crates.io.
pub(super) const IS_PUBLISHED: bool = false;
/// The folder of the new repository that holds it.
pub(super) const FOLDER: &str = "sdk";

macro_rules! sdk {
    ($($path:literal),+ $(,)?) => {
        &[$(Template { path: $path, text: include_str!(concat!("../../../templates/sdk/", $path)) }),+]
    };
}

/// Every file of the sdk but its manifest, its tests and the interface.
const FILES: &[Template] = sdk![
    "README.md",
    "assets/SKILL.md",
    "assets/adapter.toml",
    "src/bindings.rs",
    "src/checklist.rs",
    "src/context.rs",
    "src/dated_state.rs",
    "src/edit/jsonc/mod.rs",
    "src/edit/jsonc/shape.rs",
    "src/edit/jsonc/splice.rs",
    "src/edit/jsonc/style.rs",
    "src/edit/marked.rs",
    "src/edit/mod.rs",
    "src/edit/toml/array.rs",
    "src/edit/toml/lines.rs",
    "src/edit/toml/mod.rs",
    "src/export.rs",
    "src/hook_groups.rs",
    "src/hook_output.rs",
    "src/hook_settings.rs",
    "src/hooks.rs",
    "src/host_functions/channels.rs",
    "src/host_functions/clock.rs",
    "src/host_functions/files.rs",
    "src/host_functions/http.rs",
    "src/host_functions/log.rs",
    "src/host_functions/mod.rs",
    "src/host_functions/notices.rs",
    "src/host_functions/programs.rs",
    "src/host_functions/state.rs",
    "src/identity.rs",
    "src/install.rs",
    "src/launch.rs",
    "src/lib.rs",
    "src/optional/commands.rs",
    "src/optional/driver.rs",
    "src/optional/driver/acp.rs",
    "src/optional/driver/acp/calls.rs",
    "src/optional/driver/acp/permission.rs",
    "src/optional/driver/acp/tests.rs",
    "src/optional/driver/rpc.rs",
    "src/optional/evidence.rs",
    "src/optional/mod.rs",
    "src/optional/runner.rs",
    "src/optional/runner/json.rs",
    "src/optional/runner/reading.rs",
    "src/payload.rs",
    "src/plan.rs",
    "src/push.rs",
    "src/servers.rs",
    "src/sessions.rs",
    "src/testing/conversation.rs",
    "src/testing/fake_host.rs",
    "src/testing/fakes.rs",
    "src/testing/mod.rs",
    "src/testing/recorded.rs",
    "src/testing/run.rs",
    "src/testing/words.rs",
    "src/turns.rs",
    "src/words.rs",
];

/// The files of the sdk, below [`FOLDER`].
pub(super) fn files() -> impl Iterator<Item = (String, String)> {
    let of_sdk = FILES.iter().chain(WIT).map(|file| (file.path.to_owned(), file.text.to_owned()));
    of_sdk.chain([("Cargo.toml".to_owned(), manifest())]).map(|(path, text)| (format!("{FOLDER}/{path}"), text))
}

/// The sdk's manifest, without its workspace.
fn manifest() -> String {
    let parse = |text: &str| text.parse::<Table>().unwrap_or_default();
    let workspace = parse(include_str!("../../../templates/sdk/workspace.toml"));
    let shared = |part: &str| workspace.get("workspace").and_then(|workspace| workspace.get(part)?.as_table());
    let mut own = parse(include_str!("../../../templates/sdk/package.toml"));
    let fill = |table: &mut Table, from: Option<&Table>| {
        for (name, value) in table.iter_mut() {
            let is_inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
            if let Some(said) = from.and_then(|from| from.get(name)).filter(|_| is_inherited) {
                *value = said.clone();
            }
        }
    };
    for (part, from) in [("package", shared("package")), ("dependencies", shared("dependencies"))] {
        if let Some(Value::Table(table)) = own.get_mut(part) {
            fill(table, from);
        }
    }
    // Its lints and its own tests stay behind.
    own.remove("lints");
    own.remove("dev-dependencies");
    own.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::templates::tests::files_in;
    use super::*;

    #[test]
    fn every_file_of_the_sdk_is_written() {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
        let mut found = BTreeSet::new();
        files_in(&sdk, "", &mut found);
        found.retain(|path| !path.starts_with("tests/"));
        let written: BTreeSet<String> =
            files().map(|(path, _)| path.strip_prefix("sdk/").expect("below it").to_owned()).collect();
        // The interface lies in a folder of its own here, and `WIT` names its files by that.
        assert_eq!(written, found);
    }

    #[test]
    fn its_manifest_needs_no_workspace() {
        let text = manifest();
        assert!(!text.contains("workspace"), "{text}");
        let table: Table = text.parse().expect("TOML");
        assert_eq!(table["package"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
        assert!(table["dependencies"]["wit-bindgen"]["version"].is_str(), "{text}");
    }
}
