//! Checks the name that the component reports, and how much time and memory its calls use.

use std::io;

use mesh::ports::harness::{Harness as _, HarnessError};

use crate::Bench;
use crate::report::Check;

/// Manifest and component must agree, because users consent to the manifest and run the component.
pub(crate) async fn checks(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let manifest = &bench.scratch.manifest;
    let stage = bench.scratch.stage()?;
    let mut checks = Vec::new();
    match stage.adapter().await {
        Ok(adapter) => {
            let about = adapter.about();
            let hint = "let `describe` answer what adapter.toml says";
            checks.push(Check::equal("name", &manifest.name, &about.harness, hint));
            checks.push(Check::equal("title", &manifest.title, &about.title, hint));
            checks.push(Check::equal("version", &manifest.version, &about.version, hint));
            checks.push(Check::equal("aliases", &manifest.aliases.join(" "), &about.aliases.join(" "), hint));
        }
        Err(error) => checks.push(Check::failed("name", &manifest.name, error.to_string(), "see what it says")),
    }
    let by = &manifest.matches;
    checks.push(if by.clients.is_empty() && by.environment.is_empty() {
        Check::absent("matched", "its manifest has no [matches], so that it is used only by its name")
    } else {
        let names: Vec<&str> = by.clients.iter().chain(&by.environment).map(String::as_str).collect();
        Check::held("matched", format!("by {}", names.join(", ")))
    });
    checks.push(match bench.package.has_manifest_inside() {
        true => Check::held("one file", "the component carries its manifest"),
        false => Check::absent("one file", "the manifest is beside the component and must be shipped with it"),
    });
    stage.close().await?;
    checks.push(presence(bench).await?);
    Ok(checks)
}

/// The harness is not installed here, so the adapter must say so.
async fn presence(bench: &Bench<'_>) -> io::Result<Check> {
    let stage = bench.scratch.stage()?;
    let present = match stage.adapter().await {
        Ok(adapter) => adapter.present().await,
        Err(error) => Err(error),
    };
    stage.close().await?;
    let hint = "answer none where the harness's program is not found";
    Ok(match present {
        Ok(None) => Check::held("present", "the harness is not here, and it says so"),
        Ok(Some(version)) => Check::failed("present", "no version: nothing is installed here", version, hint),
        Err(HarnessError::Unsupported(why)) => Check::absent("present", why),
        Err(error) => Check::failed("present", "none", error.to_string(), hint),
    })
}

/// The slowest call and the largest memory of all calls, against the limits. A call beyond a limit has failed its
/// own check.
pub(crate) fn costs(bench: &Bench<'_>) -> Vec<Check> {
    let (usage, limits) = (bench.scratch.usage(), bench.scratch.manifest.limits);
    let hint = "do less in one call, or raise the limit in adapter.toml";
    let time = format!(
        "{}.{:03} ms in `{}`, of {} ms",
        usage.slowest_us / 1000,
        usage.slowest_us % 1000,
        usage.slowest,
        limits.guest_ms
    );
    let memory = format!("{} KB, of {} KB", usage.largest / 1024, limits.memory_mb * 1024);
    vec![
        within("the slowest call", usage.slowest_us, limits.guest_ms * 1000, time, hint),
        within("the largest call", usage.largest as u64, limits.memory_mb * 1024 * 1024, memory, hint),
    ]
}

/// A call should use at most half of a limit: the user's machine may be slower, and a session longer, than the
/// recorded ones.
fn within(name: &str, used: u64, limit: u64, told: String, hint: &str) -> Check {
    match used <= limit / 2 {
        true => Check::held(name, told),
        false => Check::failed(name, "at most half of the limit", told, hint),
    }
}
