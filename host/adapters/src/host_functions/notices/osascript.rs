//! Notifications by `osascript`, which every Mac has: Apple's own interface takes them from application bundles alone.

use std::collections::BTreeMap;
use std::path::Path;

use crate::host_functions::{HostResult, failed, programs};
use crate::template::Surroundings;

const PROGRAM: &str = "/usr/bin/osascript";
/// The most that it may say of an error, in bytes.
const LARGEST: usize = 4096;

/// Every Mac has one. If nobody is logged in there, `osascript` says so.
pub(super) fn has_desktop(_surroundings: &Surroundings) -> bool {
    true
}

pub(super) async fn show(title: &str, body: &str) -> HostResult<()> {
    let (arguments, environment) = (arguments(title, body), BTreeMap::new());
    let outcome =
        programs::run(Path::new(PROGRAM), &arguments, environment, Path::new("/"), Vec::new(), LARGEST).await?;
    match outcome.exit_code {
        0 => Ok(()),
        _ => Err(failed(String::from_utf8_lossy(&outcome.stderr).trim_end())),
    }
}

/// The script takes the texts as its arguments, so that nothing in them is taken for script, and after `--` nothing in
/// them is taken for an option.
fn arguments(title: &str, body: &str) -> Vec<String> {
    let script = ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];
    let lines = script.into_iter().flat_map(|line| ["-e", line]);
    lines.chain(["--", title, body]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_script_or_an_option() {
        for text in ["\" & (do shell script \"id\") & \"", "-e", "--", "end run", ""] {
            let given = arguments(text, text);
            assert_eq!(given[..6], arguments("a", "b")[..6], "the script is always the same");
            assert_eq!(given[6..], ["--", text, text]);
        }
    }
}
