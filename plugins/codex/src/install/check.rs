//! Checks that Codex is set up for the mesh, by the rules by which Codex reads its settings.

use std::collections::{BTreeMap, BTreeSet};

use relay_mesh_sdk::checklist::Checklist;
use relay_mesh_sdk::edit::toml::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Install, Scope, Setup, is_hook_line};
use relay_mesh_sdk::words::explain;
use relay_mesh_sdk::{Error, hook_groups};
use serde_json::Value;

use super::entries::{self, is_our_handler, is_ours, is_taken};
use super::{ScopeFiles, marketplace};
use crate::app_server::{AppServer, Trust};
use crate::{Codex, terminals};

const AGAIN: &str = "run `relay-mesh install codex` again";
/// The first minor version of 0 with the queue, the hooks and the app server that we use.
const OLDEST: u64 = 154;
/// The first one whose terminals share an app server by default.
const SHARING: u64 = 160;
/// The first one that was tried with a hook before each request to the model. 0.160 has none.
const ASKING: u64 = 169;
/// Settings that give a terminal its own app server, unless another setting says where the shared one is. Each was
/// tried alone with 0.169.0.
const ALONE: &str =
    "`--no-daemon`, `-c`, `-p`, `--search`, `--strict-config`, `--oss` and `--dangerously-bypass-hook-trust`";
/// How idle threads are woken if no app server is shared.
const SLOWLY: &str = "so an idle one gets mail only from its queue, which it reads every ten seconds";

/// Checks every file that has an effect on us, the version, and the app server.
pub(super) fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
    let place = ScopeFiles::of(setup.scope)?;
    let mut list = Checklist::default();
    let minor = version(&mut list)?;
    let personal = Root::open("config")?;
    let config = read_config(&mut list, &place.root, place.config)?;
    let state = match setup.scope {
        Scope::Project => read_config(&mut list, &personal, "config.toml")?,
        Scope::User => config.clone(),
    };
    let in_place = marketplace::in_place_of_install(setup)?;
    if let Some(plugin) = &in_place {
        plugin.check(&mut list, config.as_ref());
    } else {
        if let Some(config) = &config {
            server(&mut list, config, place.config, setup);
        }
        hooks(&mut list, &place, (state.as_ref(), minor), setup)?;
        words(&mut list, &place)?;
        if let Some(plugin) = marketplace::plugin()? {
            plugin.warn_of_both(&mut list, setup.scope);
        }
    }
    for config in [&config, &state].into_iter().flatten().take(if setup.scope == Scope::User { 1 } else { 2 }) {
        if config.get(&["features", "hooks"]).and_then(|value| value.as_bool()) == Some(false) {
            list.broken("Codex's settings switch all hooks off", "remove `features.hooks` from them");
        }
    }
    if setup.scope == Scope::Project && state.as_ref().is_some_and(|state| is_ours(state, &setup.server_name)) {
        list.warn(
            "relay-mesh is also installed for every project of this user, so hooks run twice here",
            "run `relay-mesh uninstall codex` in this project, or with --user for every project",
        );
    }
    // A version that is too old has neither an app server nor a queue, and is a finding already.
    if minor.is_none_or(|minor| minor >= OLDEST) {
        app_server(&mut list, &personal)?;
    }
    sharing(&mut list, minor, [&config, &state])?;
    Ok(list.finish())
}

/// Warns of a version that is too old; returns the minor number if the major one is 0.
fn version(list: &mut Checklist) -> Result<Option<u64>, Error> {
    let Some(version) = Codex::present()? else { return Ok(None) };
    let mut numbers = version.split(['.', '-']).map(str::parse::<u64>);
    let (Some(Ok(0)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return Ok(None) };
    if minor < OLDEST {
        list.warn(
            format!("Codex {version} is older than 0.{OLDEST}: it may have no hooks, no queue and no app server"),
            "update Codex; until then an agent in it gets mail only when it calls fetch_messages",
        );
    }
    Ok(Some(minor))
}

/// Warns if terminals run their own app servers, which no other program can reach: because of a setting, of the
/// version, or because the user started them so.
fn sharing(list: &mut Checklist, minor: Option<u64>, settings: [&Option<Document>; 2]) -> Result<(), Error> {
    let asked = |settings: &Option<Document>| {
        settings.as_ref()?.get(&["features", "daemon_auto_start"]).and_then(|value| value.as_bool())
    };
    // The project's settings come first and override the others.
    let asked = settings.into_iter().find_map(asked);
    let alone = terminals::running_alone()?;
    if asked == Some(false) {
        list.warn(
            format!("Codex's settings give each terminal an app server of its own, {SLOWLY}"),
            "remove `features.daemon_auto_start = false` from them; terminals then share one, and mail wakes them at once",
        );
    } else if asked.is_none() && minor.is_some_and(|minor| (OLDEST..SHARING).contains(&minor)) {
        list.warn(
            format!("this version of Codex may give each terminal an app server of its own, {SLOWLY}"),
            format!("update Codex to 0.{SHARING} or later, whose terminals share one, so mail wakes them at once"),
        );
    } else if alone > 0 {
        let who = if alone == 1 { "a Codex session runs".to_owned() } else { format!("{alone} Codex sessions run") };
        list.warn(
            format!("{who} an app server of its own, {SLOWLY}"),
            format!(
                "start Codex without {ALONE}, or with `--remote unix://` beside them while `codex app-server daemon \
                 start` keeps one running: it then shares an app server, and mail wakes it at once"
            ),
        );
    }
    Ok(())
}

/// A settings file; none if it does not exist or does not parse, which is then a finding.
fn read_config(list: &mut Checklist, root: &Root, path: &str) -> Result<Option<Document>, Error> {
    let text = root.read_text(path)?;
    match Document::parse(text.as_deref()) {
        Ok(document) => Ok(Some(document)),
        Err(broken) => {
            list.broken(format!("{path}, {broken}"), "correct the file: Codex does not start with it as it is");
            Ok(None)
        }
    }
}

fn server(list: &mut Checklist, config: &Document, path: &str, setup: &Setup) {
    let name = setup.server_name.as_str();
    let at = |key: &str| config.get(&["mcp_servers", name, key]);
    let plain = |value: &relay_mesh_sdk::edit::toml::Value| value.to_string().split_whitespace().collect::<String>();
    let is_current =
        entries::server(setup).iter().all(|(key, wanted)| at(key).is_some_and(|found| plain(&found) == plain(wanted)));
    if is_taken(config, name) {
        list.broken(
            format!("the server named `{name}` in {path} is not relay-mesh's"),
            "rename that server, then run `relay-mesh install codex`",
        );
    } else if !is_ours(config, name) {
        list.broken(format!("{path} has no server named `{name}`"), AGAIN);
    } else if at("enabled").and_then(|value| value.as_bool()) == Some(false) {
        list.broken(format!("{path} switches the server `{name}` off"), "remove `enabled = false` from it");
    } else if !is_current {
        list.warn(format!("the server `{name}` in {path} is of another install"), AGAIN);
    } else {
        list.ok(format!("{path} names the server `{name}`"));
    }
}

fn hooks(
    list: &mut Checklist,
    place: &ScopeFiles,
    (state, minor): (Option<&Document>, Option<u64>),
    setup: &Setup,
) -> Result<(), Error> {
    let path = place.hooks;
    let read = list.read_plain(&place.root, path, "Codex")?;
    let settings = read.as_ref();
    hook_groups::check(list, path, settings, &entries::groups(setup), is_our_handler, AGAIN);
    if let (Some(settings), Some(state)) = (settings, state) {
        let mut untrusted = untrusted(settings, state, path);
        // An older version passes over a hook that it does not know, and never asks about it.
        untrusted.retain(|event| *event != "PreModelRequest" || minor.is_none_or(|minor| minor >= ASKING));
        if !untrusted.is_empty() {
            list.warn(
                format!("Codex does not run our hooks for {}: you have not trusted them yet", untrusted.join(", ")),
                "start Codex in a terminal and trust the hooks of relay-mesh when it says that hooks need review",
            );
        }
    }
    Ok(())
}

/// The events whose hook of ours is not trusted in the user's settings. Codex stores trust by the file's path, the
/// event and the position. Only Codex knows whether a trusted hook has changed since.
fn untrusted<'h>(hooks: &'h Value, state: &Document, path: &str) -> Vec<&'h str> {
    let trusted = state.keys(&["hooks", "state"]);
    let is_trusted = |event: &str, group: usize| {
        let key = format!("/{path}:{}:{group}:0", snake(event));
        trusted.iter().any(|trusted| trusted.ends_with(&key))
    };
    let events = hooks.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let ours = |group: &Value| group["hooks"].get(0).is_some_and(is_our_handler);
    events
        .filter(|(event, groups)| {
            let mut groups = groups.as_array().into_iter().flatten().enumerate();
            groups.any(|(index, group)| ours(group) && !is_trusted(event, index))
        })
        .map(|(event, _)| event.as_str())
        .collect()
}

/// `SessionStart` as `session_start`.
fn snake(event: &str) -> String {
    let mut snake = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn words(list: &mut Checklist, place: &ScopeFiles) -> Result<(), Error> {
    if place.root.read_text(place.skill)?.is_none() {
        list.warn(format!("{} does not exist, so the model knows less about the mesh", place.skill), AGAIN);
    }
    Ok(())
}

/// What only Codex knows about our hooks: that they have changed since the user trusted them, or are switched off.
/// Asks in every folder that a thread of the app server works in.
fn changed_hooks(list: &mut Checklist, server: &mut AppServer) -> Result<(), Error> {
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for id in server.loaded()? {
        match server.thread(&id) {
            Ok(thread) => {
                folders.insert(thread.cwd);
            }
            // The thread may be unloaded between the list and the request.
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let mut stopped: BTreeMap<(String, Trust), BTreeSet<String>> = BTreeMap::new();
    for hook in server.hooks(&Vec::from_iter(folders))? {
        if is_hook_line(&hook.command, entries::HARNESS) && matches!(hook.trust, Trust::Changed | Trust::Off) {
            stopped.entry((hook.file, hook.trust)).or_default().insert(hook.event);
        }
    }
    for ((file, trust), events) in stopped {
        let events = Vec::from_iter(events).join(", ");
        match trust {
            Trust::Changed => list.warn(
                format!(
                    "Codex does not run our hooks for {events} in {file}: they were changed since they were trusted"
                ),
                "start Codex in a terminal and review the hooks of relay-mesh when it says that hooks need review",
            ),
            Trust::Off => list.warn(
                format!("Codex does not run our hooks for {events} in {file}: they are switched off"),
                "switch them on with `/hooks` in Codex",
            ),
            Trust::Runs | Trust::Untrusted => {}
        }
    }
    Ok(())
}

/// Says how idle threads are woken, and warns if the app server has ended.
fn app_server(list: &mut Checklist, personal: &Root) -> Result<(), Error> {
    match AppServer::connect() {
        Ok(mut server) => {
            list.ok("Codex's app server takes turns for idle threads");
            changed_hooks(list, &mut server)?;
        }
        Err(Error::NotFound(_)) => {
            let left = personal.entries("app-server-control")?;
            if left.iter().any(|entry| entry.name.ends_with(".sock")) {
                list.warn(
                    "Codex's app server has left a socket on which it no longer listens",
                    "start Codex in a terminal, which starts it again; until then the queue wakes idle threads",
                );
            } else {
                list.ok("Codex's app server does not run; the queue wakes idle threads");
            }
        }
        Err(error) => list.warn(
            format!("Codex's app server does not answer: {}", explain(&error)),
            "run `codex app-server daemon restart`; until then the queue wakes idle threads",
        ),
    }
    Ok(())
}
