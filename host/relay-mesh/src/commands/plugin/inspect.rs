//! `relay-mesh plugin inspect`: everything that is known of an adapter, installed or in a file.

use adapters::{CacheCondition, Consent, Examination, PublisherKey, Signed, Source as Kept};
use serde::Serialize;

use super::install::{grant_lines, installed_adapters, installed_error};
use super::list::condition;
use super::package;
use super::source::{Network, Source};
use super::trust;
use crate::compose::Open;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::runs::permission;
use crate::setup::shapes::GrantLine;
use crate::shapes::rfc3339;

/// Show everything that is known of an adapter, installed or not
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin inspect claude-code\n  \
    relay-mesh plugin inspect ./gemini-cli.wasm --json\n  \
    relay-mesh plugin inspect oci://ghcr.io/acme/toad\n\n\
    Nothing of it is compiled or run: `relay-mesh plugin verify` and `relay-mesh plugin test` do that.")]
pub(super) struct Args {
    /// Its name, or where it is, as for `install`
    adapter: String,
    #[command(flatten)]
    network: Network,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let text = args.adapter.as_str();
    let is_path = text.contains(['/', '.']);
    let (examined, consent, signed) = if is_path {
        let source = Source::parse(text)?;
        if source.is_remote() {
            permission::only_the_user(context, &open, "fetch an adapter").await?;
        }
        let package = source.get(context, &args.network).await?;
        let examined = open.adapters.examine(&package).map_err(|error| package::unusable(&package.from, error))?;
        (examined, Consent::default(), package.signed())
    } else {
        match open.adapters.look_over(text).map_err(|error| errors::adapters::failed(text, error))? {
            Some(examined) => {
                let name = examined.manifest.name.as_str();
                let record = installed_adapters(&open)?.record(name).map_err(installed_error)?;
                let installed = record.as_ref().and_then(|record| record.installed.as_ref());
                let installed = installed.filter(|installed| installed.digest == examined.digest);
                let signed = match installed.map(|installed| installed.publishers.clone()).unwrap_or_default() {
                    keys if keys.is_empty() => Signed::No,
                    keys => Signed::By(keys),
                };
                let consent = record.map(|record| record.consent(&examined.digest)).unwrap_or_default();
                (examined, consent, signed)
            }
            None => return Err(errors::adapters::unknown(text, open.adapters.as_ref())),
        }
    };
    context.printer.show(&portrait(&open, &examined, &consent, &signed, is_path).await?)?;
    Ok(Exit::Success)
}

/// Whether it is signed. What is part of this program is signed with it.
fn signed_words(examined: &Examination, signed: &Signed) -> String {
    match (&examined.source, signed) {
        (Kept::BuiltIn, _) => "with this program".to_owned(),
        (_, Signed::By(keys)) => format!("by {}", trust::listed(keys)),
        (_, Signed::No) => "no".to_owned(),
        (_, Signed::Broken) => "broken: it was changed after it was signed, or signed without its key".to_owned(),
        (_, Signed::ManifestBeside) => "not with the manifest that is beside it".to_owned(),
    }
}

async fn portrait(
    open: &Open,
    examined: &Examination,
    consent: &Consent,
    signed: &Signed,
    is_path: bool,
) -> Result<Portrait, CommandError> {
    let manifest = &examined.manifest;
    let name = manifest.name.as_str();
    let (states, _) = open.adapters.states().await;
    let state = states.into_iter().find(|state| state.name == name && state.digest == examined.digest);
    // A file that is not installed has no history, even if an installed adapter has its name.
    let state = state.filter(|_| !is_path);
    let record = installed_adapters(open)?.record(name).map_err(installed_error)?.filter(|_| !is_path);
    let installed = record.as_ref().and_then(|record| record.installed.as_ref());
    let grants = match &examined.source {
        Kept::BuiltIn => state.iter().flat_map(|state| &state.grants).map(GrantLine::of).collect(),
        Kept::Installed(_) | Kept::Plugin(_) => grant_lines(name, &manifest.requests, consent),
    };
    Ok(Portrait {
        name: name.to_owned(),
        title: manifest.title.clone(),
        version: manifest.version.clone(),
        aliases: manifest.aliases.clone(),
        source: match &examined.source {
            Kept::BuiltIn => "built-in".to_owned(),
            Kept::Installed(_) => "installed".to_owned(),
            Kept::Plugin(path) => path.display().to_string(),
        },
        installed: installed.map(|installed| InstalledLine {
            state: super::enable::word(installed.standing),
            at: rfc3339(installed.at),
            from: installed.from.clone(),
        }),
        digest: examined.digest.to_string(),
        signed: signed_words(examined, signed),
        publishers: signed.keys().to_vec(),
        size: examined.size,
        interfaces: examined.interfaces.iter().cloned().collect(),
        imports: examined.imports.clone(),
        exports: examined.exports.clone(),
        clients: manifest.matches.clients.clone(),
        environment: manifest.matches.environment.clone(),
        shells: manifest.matches.shells.clone(),
        guest_ms: manifest.limits.guest_ms,
        memory_mb: manifest.limits.memory_mb,
        grants,
        replaces_built_in: consent.replaces_built_in,
        machine_code: match &examined.machine_code {
            CacheCondition::Sound => "in the cache".to_owned(),
            CacheCondition::Absent | CacheCondition::Removed => "not compiled yet".to_owned(),
            CacheCondition::Unusable(why) => format!("not compiled, and the cache cannot be used: {why}"),
        },
        state: state.as_ref().map(|state| condition(&state.condition)),
        faults: state.as_ref().map_or(0, |state| state.counters.faults),
        last_fault: state.as_ref().and_then(|state| state.counters.last_fault.clone()).map(|fault| fault.what),
        paused_until: state.and_then(|state| state.counters.paused_until).map(rfc3339),
    })
}

/// An adapter, as `inspect` prints it.
#[derive(Debug, Serialize)]
struct Portrait {
    /// The name to type.
    name: String,
    /// The name to display.
    title: String,
    /// The adapter's own version.
    version: String,
    /// Other names to type.
    aliases: Vec<String>,
    /// `built-in`, `installed`, or the path of its file.
    source: String,
    /// When and from where it was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<InstalledLine>,
    /// Digest of component and manifest.
    digest: String,
    /// Whether it is signed, in words.
    signed: String,
    /// The keys that signed it.
    publishers: Vec<PublisherKey>,
    /// Size of the component in bytes.
    size: u64,
    /// The versions of the WIT interface that it names.
    interfaces: Vec<String>,
    imports: Vec<String>,
    exports: Vec<String>,
    /// The MCP clients that it matches.
    clients: Vec<String>,
    /// The environment variables of processes that it matches.
    environment: Vec<String>,
    /// The environment variables that its agents' shells have, some with their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shells: Vec<String>,
    /// Processor time that one call may take, in milliseconds.
    guest_ms: u64,
    /// Memory that one call may take, in megabytes.
    memory_mb: u64,
    /// Its requests, and whether each is granted.
    grants: Vec<GrantLine>,
    /// Whether it may stand in for a built-in adapter.
    replaces_built_in: bool,
    /// Whether its machine code is kept.
    machine_code: String,
    /// Its condition in words, if an adapter of this name and digest is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Number of failures, in all processes of this machine.
    faults: u64,
    /// The last failure, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fault: Option<String>,
    /// Until when its calls are refused, because it failed too often in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<String>,
}

/// When and from where an adapter was installed.
#[derive(Debug, Serialize)]
struct InstalledLine {
    /// `enabled` or `disabled`.
    state: &'static str,
    at: String,
    /// The file that it was installed from.
    from: String,
}

impl Show for Portrait {
    fn text(&self) -> String {
        let mut lines = vec![printable_line(&format!("{} {}: {}", self.name, self.version, self.title))];
        let mut line = |head: &str, text: String| lines.push(printable_line(&format!("{head:<12}{text}")));
        match &self.installed {
            Some(installed) => {
                line("source", format!("installed from {} at {}", installed.from, installed.at));
                line("use", installed.state.to_owned());
            }
            None => line("source", self.source.clone()),
        }
        if !self.aliases.is_empty() {
            line("aliases", self.aliases.join(", "));
        }
        line("digest", self.digest.clone());
        line("signed", self.signed.clone());
        line("size", package::size(self.size));
        line("interface", self.interfaces.join(", "));
        line("code", self.machine_code.clone());
        line(
            "faults",
            match &self.last_fault {
                Some(fault) => format!("{}; the last: {fault}", self.faults),
                None => self.faults.to_string(),
            },
        );
        if let Some(until) = &self.paused_until {
            line("paused", format!("until {until}"));
        }
        if !self.clients.is_empty() {
            line("clients", self.clients.join(", "));
        }
        if !self.environment.is_empty() {
            line("variables", self.environment.join(", "));
        }
        if !self.shells.is_empty() {
            line("shells", self.shells.join(", "));
        }
        line("limits", format!("{} ms of a processor and {} MB of memory in one call", self.guest_ms, self.memory_mb));
        for (head, names) in [("imports", &self.imports), ("exports", &self.exports)] {
            for (index, name) in names.iter().enumerate() {
                line(if index == 0 { head } else { "" }, name.clone());
            }
        }
        let width = self.grants.iter().map(|grant| grant.name.chars().count()).max().unwrap_or_default();
        for (index, grant) in self.grants.iter().enumerate() {
            let given = if grant.given { "given " } else { "denied" };
            line(if index == 0 { "grants" } else { "" }, format!("{given}  {:<width$}  {}", grant.name, grant.allows));
        }
        if self.replaces_built_in {
            line("", format!("given   {}", adapters::grants::REPLACES_BUILT_IN));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_known_stands_on_lines_of_its_own() {
        let grant = |name: &str, given| GrantLine { name: name.to_owned(), allows: "do something".to_owned(), given };
        let portrait = Portrait {
            name: "toy".to_owned(),
            title: "A toy".to_owned(),
            version: "1.0.0".to_owned(),
            aliases: Vec::new(),
            source: "installed".to_owned(),
            installed: Some(InstalledLine { state: "enabled", at: "today".to_owned(), from: "/toy.wasm".to_owned() }),
            digest: "0123".to_owned(),
            signed: "no".to_owned(),
            publishers: Vec::new(),
            size: 212_345,
            interfaces: vec!["0.1.0".to_owned()],
            imports: vec!["relay:adapter/log@0.1.0".to_owned(), "wasi:\u{1b}[2J".to_owned()],
            exports: vec!["relay:adapter/hooks@0.1.0".to_owned()],
            clients: Vec::new(),
            environment: Vec::new(),
            shells: vec!["TOY_AGENT=1".to_owned()],
            guest_ms: 200,
            memory_mb: 64,
            grants: vec![grant("roots.config", true), grant("notices", false)],
            replaces_built_in: false,
            machine_code: "in the cache".to_owned(),
            state: None,
            faults: 1,
            last_fault: Some("it trapped".to_owned()),
            paused_until: None,
        };
        assert_eq!(
            portrait.text(),
            "toy 1.0.0: A toy\n\
             source      installed from /toy.wasm at today\n\
             use         enabled\n\
             digest      0123\n\
             signed      no\n\
             size        212 KB\n\
             interface   0.1.0\n\
             code        in the cache\n\
             faults      1; the last: it trapped\n\
             shells      TOY_AGENT=1\n\
             limits      200 ms of a processor and 64 MB of memory in one call\n\
             imports     relay:adapter/log@0.1.0\n            wasi:\\u{1b}[2J\n\
             exports     relay:adapter/hooks@0.1.0\n\
             grants      given   roots.config  do something\n            denied  notices       do something"
        );
    }
}
