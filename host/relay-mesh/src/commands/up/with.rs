//! `relay-mesh up --with`: what the harnesses of this machine need besides relay-mesh's own server, and how that ended.

use std::str::FromStr;

use adapters::HarnessServer;
use mesh::ports::harness::{HarnessError, Harnesses as _};

use crate::compose::Open;
use crate::context::Context;
use crate::errors::{self, CommandError, Explain as _};
use crate::server::of_harness::{self, HarnessServerRecord};
use crate::shapes::harness_servers::{Brought, WithShape};

/// The harnesses that `--with` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// Those that are here.
    Auto,
    These(Vec<String>),
}

impl FromStr for With {
    type Err = String;

    fn from_str(text: &str) -> Result<With, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("write `auto`, or harnesses, as in `opencode,codex`".to_owned());
        }
        match names.iter().any(|name| name == "auto") {
            true if names.len() > 1 => Err("`auto` stands alone: it is every harness that is here".to_owned()),
            true => Ok(With::Auto),
            false => Ok(With::These(names)),
        }
    }
}

/// Starts what the harnesses need. One that fails keeps none of the others from starting.
pub(super) async fn bring_up(context: &Context, open: &Open, with: &With) -> Result<Vec<WithShape>, CommandError> {
    let names = match with {
        With::Auto => open.adapters.names(),
        With::These(names) => names.iter().map(|name| known(open, name)).collect::<Result<Vec<String>, _>>()?,
    };
    let mut lines = Vec::new();
    for name in names {
        let line = match open.adapters.server_of(&name) {
            Ok(Some(server)) => of_server(context, open, &name, &server).await?,
            Ok(None) => of_none(open, &name, with).await,
            // An adapter without this grant is not asked by `auto`.
            Err(HarnessError::Denied(_)) if *with == With::Auto => None,
            Err(error) => Some(WithShape::failed(&name, &name, error.to_string(), None)),
        };
        lines.extend(line);
    }
    Ok(lines)
}

/// Fails if there is no adapter of one of these names.
pub(super) fn check(open: &Open, names: &[String]) -> Result<(), CommandError> {
    names.iter().try_for_each(|name| known(open, name).map(drop))
}

fn known(open: &Open, name: &str) -> Result<String, CommandError> {
    match open.adapters.describe(name).map_err(|error| errors::adapters::failed(name, error))? {
        Some((manifest, _)) => Ok(manifest.name),
        None => Err(errors::adapters::unknown(name, open.adapters.as_ref())),
    }
}

/// A harness that needs no server of its own. One that is not here is passed over, unless it was named.
async fn of_none(open: &Open, name: &str, with: &With) -> Option<WithShape> {
    let harness = open.adapters.get(name).await.ok().flatten()?;
    let title = &harness.about().title;
    match harness.present().await {
        Ok(Some(_)) => Some(WithShape::of(name, title, Brought::NoneNeeded)),
        Ok(None) | Err(_) if *with == With::Auto => None,
        Ok(None) | Err(_) => Some(WithShape::of(name, title, Brought::NotHere)),
    }
}

async fn of_server(
    context: &Context,
    open: &Open,
    name: &str,
    server: &HarnessServer,
) -> Result<Option<WithShape>, CommandError> {
    let dir = &context.settings.dir.value;
    let machine = open.machine.as_ref();
    let line = |brought, record: &HarnessServerRecord| {
        let line = WithShape::of(name, &server.title, brought).at(record);
        // The user's own password is in their shell already; one that relay-mesh chose is nowhere else.
        let attach = server.attach(&record.url());
        WithShape { attach: attach.map(|(line, variable)| told(&line, variable, context, record.pid)), ..line }
    };
    if let Some(record) = HarnessServerRecord::find(dir, name, machine)?
        && record.listens().await
    {
        return Ok(Some(line(Brought::Running, &record)));
    }
    if server.program.is_none() {
        return Ok(Some(WithShape::of(name, &server.title, Brought::NotHere)));
    }
    let (program, word) = server.known_by();
    let is_ours = HarnessServerRecord::find(dir, name, machine)?.is_some();
    if !is_ours && let Some(other) = processes::running(&program, &word) {
        let line = WithShape::of(name, &server.title, Brought::Elsewhere);
        return Ok(Some(WithShape { pid: Some(other.pid), ..line }));
    }
    Ok(Some(match of_harness::start(&context.settings, name, machine).await {
        Ok(record) if record.port == server.port() => line(Brought::Started, &record),
        Ok(record) => WithShape { not_at: Some(server.port()), ..line(Brought::Started, &record) },
        Err(error) => WithShape::failed(name, &server.title, mesh::reasons(&error), error.hint()),
    }))
}

/// How a user works in the server: the harness's own line, with the password if relay-mesh chose it.
fn told(line: &str, variable: Option<&str>, context: &Context, pid: u32) -> String {
    match variable {
        Some(variable) if context.environment.get(variable).is_none() && cfg!(target_os = "linux") => {
            format!("{variable}=\"$(sed -nz 's/^{variable}=//p' /proc/{pid}/environ | tr -d '\\0')\" {line}")
        }
        Some(_) | None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_stands_alone_and_names_are_a_list() {
        let these = |names: &[&str]| Ok(With::These(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!("auto".parse(), Ok(With::Auto));
        assert_eq!("opencode".parse(), these(&["opencode"]));
        assert_eq!("opencode, codex".parse(), these(&["opencode", "codex"]));
        for wrong in ["", "opencode,", "auto,codex"] {
            assert!(wrong.parse::<With>().is_err(), "{wrong}");
        }
    }
}
