//! Checks that OpenCode is set up for the mesh, by the rules by which OpenCode reads its settings.

use relay_mesh_sdk::checklist::Checklist;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::plan::is_stamped;
use relay_mesh_sdk::{Error, Install, clock, servers as entries};
use serde_json::Value;

use super::settings::{self, LIST};
use super::{PROJECT, ScopeFiles, USER, connector, is_local, local};
use crate::payload::Server;
use crate::{OpenCode, http, servers, sessions};

const AGAIN: &str = "run `relay-mesh install opencode` again";
/// The oldest version known to have the plugin interface that the connector uses.
const OLDEST: (u32, u32) = (1, 1);
/// The version that all of this was tried with.
const TRIED: &str = "1.18.33";
/// The default port of `opencode serve`.
const DEFAULT_PORT: u16 = 4096;

/// Checks every file that has an effect on us, and every server that connectors reported.
pub(super) fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
    let place = ScopeFiles::of(setup.scope);
    let root = Root::open(place.root)?;
    let mut found = Checklist::default();
    version(&mut found)?;
    entry(&mut found, &root, place, setup)?;
    permission(&mut found, setup)?;
    connector_file(&mut found, &root, place, setup)?;
    if setup.scope == Scope::Project {
        twice(&mut found, setup)?;
    }
    without_plugins(&mut found)?;
    served(&mut found)?;
    Ok(found.finish())
}

fn version(found: &mut Checklist) -> Result<(), Error> {
    // The caller reports that OpenCode is not installed.
    let Some(version) = OpenCode::present()? else { return Ok(()) };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if (major, minor) < OLDEST {
        found.broken(
            format!("OpenCode {version} is too old for the connector, which was tried with {TRIED}"),
            "run `opencode upgrade`",
        );
    } else if major > OLDEST.0 {
        found.warn(
            format!("OpenCode {version} may load plugins differently from {TRIED}, with which the connector was tried"),
            "check that mail wakes a session; if not, go back to 1.x and tell us",
        );
    }
    Ok(())
}

/// The server's entry in the settings file that overrides the others.
fn entry(found: &mut Checklist, root: &Root, place: &ScopeFiles, setup: &Setup) -> Result<(), Error> {
    let name = setup.server_name.as_str();
    let mut last: Option<(&str, Value)> = None;
    for file in place.settings {
        let Some(text) = root.read_text(file)? else { continue };
        let value = match Document::parse(Some(&text)) {
            Ok(document) => document.get(&[]).unwrap_or_default(),
            Err(broken) => {
                found.broken(format!("{file}, {broken}"), "correct the file: OpenCode does not start with it as it is");
                continue;
            }
        };
        if let Some(entry) = value.get(LIST).and_then(|list| list.get(name)) {
            if let Some((before, _)) = &last {
                found.warn(
                    format!("`{LIST}.{name}` is in {before} and again in {file}, which overrides it"),
                    format!("remove it from {before}"),
                );
            }
            last = Some((file, entry.clone()));
        }
        for alias in entries::aliases(Some(&value), LIST, name) {
            found.warn(format!("{file} names relay-mesh a second time, as `{alias}`"), "remove one of the two");
        }
    }
    match last {
        None => found.broken(format!("no settings file of OpenCode has a server named `{name}`"), AGAIN),
        Some((file, entry)) if !entries::is_ours(&entry) => found.broken(
            format!("the server named `{name}` in {file} is not relay-mesh's"),
            "rename that server, then run `relay-mesh install opencode`",
        ),
        Some((file, entry)) if entry.get("enabled") == Some(&Value::Bool(false)) => {
            found.broken(format!("{file} turns the server `{name}` off"), "remove `enabled` from its entry");
        }
        Some((file, entry)) if entry != settings::entry(setup) => {
            found.warn(format!("the server `{name}` in {file} is of another install"), AGAIN);
        }
        Some((file, _)) => found.ok(format!("{file} names the server `{name}`")),
    }
    Ok(())
}

fn permission(found: &mut Checklist, setup: &Setup) -> Result<(), Error> {
    let rule = settings::rule(&setup.server_name);
    match settings::asks_before_our_tools(setup)? {
        settings::AskRule::No => {}
        settings::AskRule::ByRule => {
            let place = ScopeFiles::of(setup.scope);
            let root = Root::open(place.root)?;
            let mut allowed = false;
            for file in place.settings {
                let value = root
                    .read_text(file)?
                    .and_then(|text| Document::parse(Some(&text)).ok()?.get(&["permission", &rule]));
                allowed |= value.is_some_and(|verdict| verdict == "allow");
            }
            if !allowed {
                found.warn(format!("OpenCode asks before each tool of the mesh: no rule allows `{rule}`"), AGAIN);
            }
        }
        settings::AskRule::Everything(file) => found.warn(
            format!("OpenCode asks before each tool of the mesh: `permission` in {file} is one word for all tools"),
            format!("write it as an object, with \"{rule}\": \"allow\" as its last rule"),
        ),
    }
    Ok(())
}

fn connector_file(found: &mut Checklist, root: &Root, place: &ScopeFiles, setup: &Setup) -> Result<(), Error> {
    let path = place.connector;
    match root.read_text(path)? {
        None => found.broken(
            format!("the connector {path} does not exist, so sessions are not told apart and not woken"),
            format!("{AGAIN}; the folder must be writable"),
        ),
        Some(text) if !is_stamped(&text) => {
            found.warn(format!("{path} is not as relay-mesh wrote it"), format!("delete it and {AGAIN}"));
        }
        Some(text) if !text.starts_with(connector(setup).trim_end()) => {
            found.warn(format!("{path} is another version's"), AGAIN);
        }
        Some(_) => found.ok(format!("the connector {path} is in its place")),
    }
    match root.read_text(place.local)? {
        Some(text) if text == local(setup) => {}
        Some(text) if is_local(&text) => found.warn(format!("{} is of another install", place.local), AGAIN),
        Some(_) => found.broken(format!("{} is not relay-mesh's", place.local), format!("move it and {AGAIN}")),
        // A team member who has only the committed files uses the program on PATH.
        None => {
            found.warn(format!("{} does not exist, so the connector looks for relay-mesh on PATH", place.local), AGAIN)
        }
    }
    Ok(())
}

/// Both scopes at once do no harm, because the copies of the connector share the work. But what one of them learns,
/// the other does not.
fn twice(found: &mut Checklist, setup: &Setup) -> Result<(), Error> {
    let user = Root::open(USER.root)?;
    if user.read_text(USER.connector)?.is_some() && Root::open(PROJECT.root)?.read_text(PROJECT.connector)?.is_some() {
        found.warn(
            format!("`{}` is also installed for every project of this user", setup.server_name),
            "run `relay-mesh uninstall opencode` in this project, or with --user for every project",
        );
    }
    Ok(())
}

/// An OpenCode that was started with `--pure` loads no connector.
fn without_plugins(found: &mut Checklist) -> Result<(), Error> {
    let Some(at) = sessions::last_without_plugins()? else { return Ok(()) };
    let minutes = clock::now().saturating_sub(at) / 60_000;
    found.warn(
        format!(
            "an OpenCode that was started without plugins (`--pure`, OPENCODE_PURE) called {minutes} min ago: \
             it has the tools, but its sessions are not told apart and not woken"
        ),
        "start it without `--pure`",
    );
    Ok(())
}

/// The fix if this machine cannot reach itself.
const LOOK_AT_THE_NETWORK: &str = "look at this machine's network: is the loopback interface up (`ip link show lo`)?";

/// Whether no server was reached for another reason than that none listens.
fn is_out_of_reach(what: &str) -> bool {
    what.contains("could not connect")
}

/// The servers that connectors reported, and OpenCode's default port.
fn served(found: &mut Checklist) -> Result<(), Error> {
    let known = servers::known()?;
    for server in &known {
        let port = server.port;
        match http::health(server) {
            Ok(health) if health["healthy"] == true => found.ok(format!("the OpenCode on port {port} answers")),
            Ok(_) => found.warn(format!("the program on port {port} is no longer OpenCode"), "start OpenCode again"),
            Err(Error::NotFound(_)) => servers::forget(port)?,
            Err(Error::Failed(what)) if is_out_of_reach(&what) => found.broken(what, LOOK_AT_THE_NETWORK),
            Err(Error::Failed(what)) => found.broken(
                what,
                "start OpenCode again with OPENCODE_SERVER_PASSWORD in its environment: relay-mesh reads it there",
            ),
            Err(Error::Busy(_)) => {
                found.warn(format!("the OpenCode on port {port} is too busy to answer"), "try again")
            }
            Err(error @ (Error::Denied(_) | Error::Unsupported(_))) => return Err(error),
        }
    }
    if known.iter().all(|server| server.port != DEFAULT_PORT) {
        match http::health(&Server { port: DEFAULT_PORT }) {
            Ok(health) if health["healthy"] == true => {}
            Err(Error::NotFound(_)) => {}
            // A server that wants a password is an OpenCode.
            Err(Error::Failed(what)) if what.contains("refuses the password") => {}
            Err(Error::Failed(what)) if is_out_of_reach(&what) => found.warn(what, LOOK_AT_THE_NETWORK),
            Ok(_) | Err(Error::Failed(_) | Error::Busy(_)) => found.warn(
                format!("port {DEFAULT_PORT} is taken by another program, so `opencode serve` takes a random one"),
                "choose one: `opencode serve --port N`",
            ),
            Err(error @ (Error::Denied(_) | Error::Unsupported(_))) => return Err(error),
        }
    }
    Ok(())
}
