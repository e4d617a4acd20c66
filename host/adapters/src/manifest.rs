//! The manifest of an adapter, `adapter.toml`: its names, and the grants that it requests.
//!
//! ```toml
//! name = "claude-code"                 # a-z, 0-9 and -; what users type
//! title = "Claude Code"                # for display
//! version = "0.1.0"                    # the adapter's own
//! wit = "0.1"                          # the interface that it is written for
//! aliases = ["claude"]                 # other names that users may type
//! publishers = ["ed25519:…"]           # a further key that may sign later versions, named by a version of the old one
//!
//! [matches]                         # what makes a caller match this harness
//! clients = ["claude-code"]            # clientInfo.name of MCP; "*" means any client
//! environment = ["CLAUDECODE"]         # variables of the caller's process, named after the harness
//!                                      # what belongs to another adapter, or to none, is a grant (`matching`)
//! shells = ["TOAD_AGENT=1"]            # variables of what its agents run in their shells, with a value or any
//!
//! [grants]                             # what it requests; it can use nothing else
//! environment = ["CLAUDE_CODE_SESSION_ID"]
//! notices = true                       # notifications on the user's desktop
//! arguments = true                     # what callers pass to our tools, the texts of messages included
//!
//! [grants.roots.config]                # folders that it may read
//! path = "${CLAUDE_CONFIG_DIR:-~/.claude}"
//! access = "edit"                      # read | edit: its install plans may change files here
//! links = "home"                       # inside (default) | home: how far symbolic links may lead
//!
//! [grants.origins]                     # HTTP on loopback; {blanks} take a port or a path segment
//! opencode = "http://127.0.0.1:{port}"
//!
//! [grants.logins.opencode]             # of an origin: the variables of the server's process that hold its HTTP Basic
//! password = "OPENCODE_SERVER_PASSWORD" # login; the host reads them and adds the header, the adapter sees neither
//! user = "OPENCODE_SERVER_USERNAME"
//! default-user = "opencode"
//!
//! [grants.endpoints]                   # sockets that carry text frames
//! app-server = { unix = "${CODEX_HOME:-~/.codex}/app.sock", framing = "websocket" }
//! rpc = { tcp = "127.0.0.1:{port}", framing = "lines" }
//!
//! [grants.programs]                    # command lines; one {blank} per argument at most
//! claude-version = ["claude", "--version"]
//!
//! [grants.answers.context]             # what its answers to hooks may hold, by kind (`answers`)
//! fields = ["hookSpecificOutput.additionalContext"]
//! words = ["hookSpecificOutput.hookEventName=SessionStart|PostToolUse"]
//! notice = "systemMessage"             # where the harness shows its user who wrote, which the host fills in
//!
//! [limits]                             # may be lowered, and raised up to the host's own ceiling
//! guest-ms = 200                       # processor time of one call
//! memory-mb = 64
//!
//! [rehearsal]                          # a call of a hook that `doctor` plays, in a data folder of its own
//! hook = "SessionStart"
//! payload = '{"session_id":"rehearsal","hook_event_name":"SessionStart","source":"startup"}'
//!
//! [project]                            # where a project's settings have an effect, beside their own folder
//! reaches = "subfolders"               # subfolders | repository: all its worktrees, from the top of the main one
//!
//! [sessions]                           # what the client's processes show of its sessions
//! terminal = "codex"                   # the program in whose terminals they are on screen
//! record = { begins = "rollout-", ends = ".jsonl", id-length = 36 } # a file that it keeps open for each loaded one
//!
//! [runs.task]                          # a grant too: how the harness is started for one task (`Run`)
//! program = "claude"
//! words = ["-p", "--output-format", "stream-json"]
//! environment = ["ANTHROPIC_API_KEY"]  # passed on to it, and never shown to the adapter
//!
//! [runs.task.options]                  # what the adapter may add
//! model = ["--model={name}"]
//! settings = ["--settings", "{file:settings.json}"]
//!
//! [runs.task.sets]                     # what the adapter may set
//! CLAUDE_CODE_MAX_RETRIES = "{number}"
//!
//! [drives.stream]                      # a grant too: how an agent is started that is driven (`Drive`)
//! run = "task"                         # it has that run's program and variables
//! words = ["-p", "--input-format", "stream-json"]
//! framing = "lines"
//!
//! [serves]                             # a grant too: the server that its sessions need (`Serve`)
//! run = "task"
//! words = ["serve", "--port={port}"]
//! port = 4096
//! ```
//!
//! Unknown keys are errors, so that the author notices a misspelt grant before a user's adapter is denied something.
//! The manifest is beside the component, or inside it as the custom section [`SECTION`].

mod drive;
mod plain;
mod raw;
#[cfg(test)]
mod reference;
mod run;
mod serve;

use std::collections::BTreeMap;
use std::fmt;

use mesh::ports::harness::ClientTraces;
use serde::Deserialize;
use toml::Spanned;

use crate::answers::AnswerRules;
use crate::matching::ForeignMatches;
use crate::signature::PublisherKey;
use crate::template::{Address, Argument, Origin};
pub use drive::Drive;
pub use raw::is_name;
use raw::{RawManifest, line_of, within};
pub use run::{Run, USERS_COMMAND};
pub use serve::Serve;

/// The custom section in which a component carries its manifest.
pub const SECTION: &str = "relay:adapter/manifest";
/// The interface version that this program supports.
pub const WIT: &str = "0.1";
/// The full version, as components name it.
pub const FULL_WIT: &str = "0.1.0";

/// An adapter's manifest, parsed.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name that users type.
    pub name: String,
    /// The name for display.
    pub title: String,
    /// The adapter's own version.
    pub version: String,
    /// Other names that users may type.
    pub aliases: Vec<String>,
    /// The keys that may sign later versions beside the pinned ones, if this version is signed by a pinned one.
    pub publishers: Vec<PublisherKey>,
    /// What makes a caller match this harness.
    pub matches: Matches,
    /// The grants that it requests.
    pub requests: Requests,
    /// Limits of one call.
    pub limits: Limits,
    /// A hook call by which `doctor` tests that hooks are answered.
    pub rehearsal: Option<Rehearsal>,
    /// Where a project's settings have an effect.
    pub reaches: Reaches,
    /// What its client's processes show of its sessions.
    pub traces: ClientTraces,
}

/// Where the settings in a project's folder have an effect, beside that folder itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reaches {
    /// Nowhere else.
    #[default]
    Folder,
    /// In the folders below it, within one working copy: the harness looks from where it runs upwards.
    Subfolders,
    /// If the folder is the top of the main worktree: in the whole repository, with all its worktrees.
    Repository,
}

/// A call of one of the harness's hooks, as the harness would make it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rehearsal {
    /// The event, in the harness's own spelling.
    pub hook: String,
    /// What the harness would write to the hook's standard input.
    pub payload: String,
}

/// What makes a caller match this harness, before anything is loaded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matches {
    /// Client names, as clients report them; `*` means any.
    #[serde(default)]
    pub clients: Vec<String>,
    /// Variables of the caller's process.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables that only what its agents run in their shells has: `NAME`, or `NAME=VALUE`.
    #[serde(default)]
    pub shells: Vec<String>,
}

/// The grants that an adapter requests, parsed.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Variables of the harness's process.
    pub environment: Vec<String>,
    /// Whether it requests notifications on the desktop.
    pub notices: bool,
    /// Folders, by name.
    pub roots: BTreeMap<String, Root>,
    /// HTTP origins, by name.
    pub origins: BTreeMap<String, Origin>,
    /// How the host logs in to an origin, by the origin's name.
    pub logins: BTreeMap<String, Login>,
    /// Sockets, by name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Command lines, by name: the program and its arguments.
    pub programs: BTreeMap<String, CommandLine>,
    /// How the harness is started for one task, by name.
    pub runs: BTreeMap<String, Run>,
    /// How the harness is started whose agent is driven, by name.
    pub drives: BTreeMap<String, Drive>,
    /// The server that its sessions need, and that nobody else starts.
    pub serves: Option<Serve>,
    /// Whether it requests the arguments of calls of relay-mesh's own tools, which hold the texts of messages.
    pub arguments: bool,
    /// What its answers to hooks may hold.
    pub answers: AnswerRules,
    /// What `[matches]` names that is not its own.
    pub foreign: ForeignMatches,
}

/// A folder that an adapter may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its path, with variables to be filled in.
    pub path: String,
    /// Whether install plans may change files in it.
    pub access: Access,
    /// How far symbolic links in it may lead.
    pub links: Links,
}

/// What an adapter may do under a root, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Reading only.
    #[default]
    Read,
    /// Reading, and changes by plans that the user has seen. The guest itself never writes.
    Edit,
}

/// How far symbolic links under a root may lead, the nearest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// They must end under the root. Right for a project, whose links a stranger may have made.
    #[default]
    Inside,
    /// They may end anywhere in the user's home: users who keep their settings in a repository of dotfiles link them
    /// into place.
    Home,
}

/// Where a server's own process has the login of HTTP Basic that it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Login {
    /// The variable with the password. If the process has none, no login is sent.
    pub password: String,
    /// The variable with the user name.
    pub user: String,
    /// The user name if that variable is not set.
    pub default_user: String,
}

/// A socket that carries text frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: Address,
    /// How frames are delimited.
    pub framing: Framing,
}

/// How frames are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// One frame per line.
    Lines,
    /// WebSocket text messages.
    Websocket,
}

/// A command line that an adapter may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program: a name to look up in `PATH`, or an absolute path.
    pub program: String,
    pub arguments: Vec<Argument>,
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", Quoted(&argument.to_string())))
    }
}

/// A word of a command line. It is quoted if it has to be, because the user must see where an argument ends:
/// `sh -c 'rm x'` is not `sh -c rm x`.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,+@%{}".contains(character);
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            f.write_str(self.0)
        } else {
            write!(f, "'{}'", self.0.replace('\'', "'\\''"))
        }
    }
}

/// Limits of one call of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Processor time inside the guest, in milliseconds.
    pub guest_ms: u64,
    /// Memory of all its linear memories together, in megabytes.
    pub memory_mb: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { guest_ms: 200, memory_mb: 64 }
    }
}

/// The highest limits that a manifest may set: it is third-party code, and runs on every tool call.
pub const CEILING: Limits = Limits { guest_ms: 5_000, memory_mb: 512 };

/// Why text is not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ManifestError {
    /// The line that is wrong, from one.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
    /// What to do, if known.
    pub hint: Option<String>,
}

impl Manifest {
    /// Parses and checks a manifest.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let mut written: RawManifest = toml::from_str(text).map_err(|error| ManifestError {
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            what: error.message().lines().next().unwrap_or_default().to_owned(),
            hint: Some("docs/manifest.md has every key".to_owned()),
        })?;
        let wrong = |span: std::ops::Range<usize>, what: String, hint: Option<&str>| ManifestError {
            line: line_of(text, span.start),
            what,
            hint: hint.map(str::to_owned),
        };
        for name in std::iter::once(&written.name).chain(&written.aliases) {
            if !is_name(name.get_ref()) {
                return Err(wrong(
                    name.span(),
                    format!("`{}` is not a name for an adapter", name.get_ref()),
                    Some("names are made of a-z, 0-9 and -, and begin with a letter"),
                ));
            }
        }
        if written.wit.get_ref() != WIT {
            return Err(wrong(
                written.wit.span(),
                format!("it is written for interface {}, and this relay-mesh supports {WIT}", written.wit.get_ref()),
                Some("build it against the sdk of this version, or update relay-mesh"),
            ));
        }
        let limits = Limits {
            guest_ms: within(written.limits.guest_ms, Limits::default().guest_ms, CEILING.guest_ms)
                .map_err(|(span, what)| wrong(span, format!("guest-ms {what}"), None))?,
            memory_mb: within(written.limits.memory_mb, Limits::default().memory_mb, CEILING.memory_mb)
                .map_err(|(span, what)| wrong(span, format!("memory-mb {what}"), None))?,
        };
        let answers = std::mem::take(&mut written.grants.answers).parse();
        let answers = answers.map_err(|(span, error)| wrong(span, error.to_string(), None))?;
        let untemplated = |(span, error): raw::Wrong| wrong(span, error.to_string(), error.hint());
        let mut requests = written.grants.parse().map_err(untemplated)?;
        for (name, run) in written.runs {
            requests.runs.insert(name.clone(), run.parse(&name).map_err(untemplated)?);
        }
        for (name, drive) in written.drives {
            requests.drives.insert(name, drive.parse(&requests.runs).map_err(untemplated)?);
        }
        requests.serves = written.serves.map(|serve| serve.parse(&requests.runs)).transpose().map_err(untemplated)?;
        requests.answers = answers;
        if let Some((line, what)) = plain::objection(text) {
            return Err(ManifestError { line, what, hint: Some("write it in plain words".to_owned()) });
        }
        requests.foreign = ForeignMatches::of(written.name.get_ref(), &written.matches);
        let count = requests.words().len();
        if count > plain::MOST_REQUESTS {
            let what = format!("it requests {count} things, and at most {} can be shown", plain::MOST_REQUESTS);
            return Err(ManifestError { line: 1, what, hint: Some("request less".to_owned()) });
        }
        Ok(Manifest {
            name: written.name.into_inner(),
            title: written.title,
            version: written.version,
            aliases: written.aliases.into_iter().map(Spanned::into_inner).collect(),
            publishers: written.publishers,
            matches: written.matches,
            requests,
            limits,
            rehearsal: written.rehearsal,
            reaches: written.project.reaches,
            traces: ClientTraces { record: written.sessions.record, terminal: written.sessions.terminal },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"x\"\ntitle = \"X\"\nversion = \"1\"\nwit = \"0.1\"\n";

    fn check(rest: &str, expected: &str) {
        let outcome = match Manifest::parse(&format!("{HEAD}{rest}")) {
            Ok(manifest) => format!("{manifest:?}"),
            Err(error) => format!("{error}; {}", error.hint.as_deref().unwrap_or_default()),
        };
        assert!(outcome.contains(expected), "{rest}: {outcome}");
    }

    #[test]
    fn a_manifest_is_strict_and_says_where_it_is_wrong() {
        check("", "guest_ms: 200");
        check("[limits]\nguest-ms = 50\n", "guest_ms: 50");
        check("[limits]\nguest-ms = 50000\n", "line 6: guest-ms is 50000, and may be 1 to 5000");
        check("[grant]\n", "line 5: unknown field `grant`");
        check("[grants.roots.config]\npath = \"relative\"\n", "line 6: `relative` is not an absolute path");
        check("[grants.roots.config]\npath = \"~/.x\"\naccess = \"write\"\n", "line 7: unknown variant `write`");
        check("[grants.origins]\na = \"https://127.0.0.1\"\n", "line 6: `https://127.0.0.1` is not a loopback origin");
        check("[grants.origins]\na = \"http://example.com:80\"\n", "is not a loopback origin");
        check("[grants.endpoints]\na = { framing = \"lines\" }\n", "line 6: the endpoint `a` needs either");
        check("[grants.programs]\na = []\n", "line 6: the program `a` has no fixed program");
        check("[grants.programs]\na = [\"x\", \"{a}{b}\"]\n", "more than one blank");
        check("[rehearsal]\nhook = \"Stop\"\n", "line 5: missing field `payload`");
        check("[serves]\nrun = \"a\"\nwords = [\"s\"]\nport = 1\n", "line 6: the manifest has no `runs.a`");
        let run = "[runs.a]\nprogram = \"x\"\n[serves]\nrun = \"a\"\nport = 1\nwords = ";
        check(&format!("{run}[\"s\"]\n"), "line 10: the server's words take no port");
        check(&format!("{run}[\"{{port}}\"]\n"), "line 10: the server's words take no port");
        check(&format!("{run}[\"s\", \"{{port}}\"]\n"), "port: 1");
        let drive = "[drives.d]\nrun = \"a\"\nframing = \"lines\"\n";
        check(drive, "line 6: the manifest has no `runs.a`");
        let run = "[runs.a]\nprogram = \"x\"\nenvironment = [\"K\"]\n[runs.a.options]\nm = [\"-m\"]\n";
        check(&format!("{run}{drive}"), "framing: Lines");
        check(&format!("{run}{}", drive.replace("lines", "frames")), "line 12: unknown variant `frames`");
        check(
            &format!("{run}{drive}[drives.d.options]\nx = [\"{{a}}{{b}}\"]\n"),
            "line 14: `{a}{b}` has more than one",
        );
        check(&format!("{run}{drive}[drives.d.sets]\nPATH = \"x\"\n"), "line 14: ");
        check("aliases = [\"Bad Name\"]\n", "line 5: `Bad Name` is not a name for an adapter");
    }

    #[test]
    fn what_users_are_shown_is_plain_short_and_on_one_line() {
        for (text, expected) in [
            ("[grants.programs]\na = [\"sh\", \"-c\", \"x\\n\\nIt asks for nothing.\"]\n", "`grants.programs.a` holds"),
            ("[grants.programs]\na = [\"sh\", \"\\u202e\"]\n", "line 6: `grants.programs.a` holds the character"),
            ("[matches]\nclients = [\"a\\rb\"]\n", "line 6: `matches.clients` holds"),
            ("[grants.roots.\"a\\nb\"]\npath = \"~/.x\"\n", "holds the character \\u{a}"),
            ("[grants.roots.a]\npath = \"~/.x\\u200b\"\n", "line 6: `grants.roots.a.path` holds"),
        ] {
            check(text, expected);
        }
        let long = format!("[matches]\nclients = [\"{}\"]\n", "x".repeat(101));
        check(&long, "has 101 characters, and at most 100 can be shown");
        let many: Vec<String> = (0..65).map(|number| format!("\"X_{number}\"")).collect();
        check(&format!("[grants]\nenvironment = [{}]\n", many.join(", ")), "it requests 66 things");
        let title = HEAD.replace("\"X\"", "\"X\\nrelay-mesh has checked it.\"");
        let error = Manifest::parse(&title).expect_err("two lines").to_string();
        assert!(error.contains("line 2: `title` holds the character"), "{error}");
    }

    #[test]
    fn a_newer_interface_is_told_in_one_sentence() {
        let error =
            Manifest::parse("name = \"x\"\ntitle = \"X\"\nversion = \"1\"\nwit = \"0.9\"\n").expect_err("too new");
        assert_eq!(error.to_string(), "line 4: it is written for interface 0.9, and this relay-mesh supports 0.1");
    }
}
