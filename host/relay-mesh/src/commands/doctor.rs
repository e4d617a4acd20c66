//! `relay-mesh doctor`: checks each part by trying it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mesh::ports::harness::{Finding, Harnesses as _, Severity};
use mesh::ports::machine::Machine as _;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::config::default_dir;
use crate::context::Context;
use crate::errors;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::owner;
use crate::render::{Show, framed, printable};
use crate::screen::Screen;
use crate::server::ServerRecord;
use crate::setup::doctor::checked_logs::{AT_ONCE, Depth};
use crate::setup::doctor::data_folder::Mending;
use crate::setup::doctor::{data_folder, examine, records, server, servers, wake};
use crate::setup::scope_args::ScopeArgs;
use crate::setup::shapes::Proof;

/// Prove that everything works
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh doctor\n  \
    relay-mesh doctor claude-code --project .\n  \
    relay-mesh doctor codex --user\n  \
    relay-mesh doctor --wake alice\n  \
    relay-mesh doctor --store\n  \
    relay-mesh doctor --store --fix\n  \
    relay-mesh doctor --store --all\n  \
    relay-mesh doctor --store nats://10.0.0.7:4222\n\n\
    With `--store` only the store is checked: the configured one, or the one you name. What is missing on a server is \
    created, if the login is allowed to. Of the logs it reads what was not checked before, 64 MB at most, as the \
    daily cleanup does, and `--all` reads everything.\n\n\
    Exits with 1 if something is broken. With `--json` each finding is one line.")]
pub(crate) struct Args {
    /// Only this harness
    harness: Option<String>,
    #[command(flatten)]
    place: ScopeArgs,
    /// With `--store`: set damaged records aside, in `damaged` of the data folder, so that everything works without them
    #[arg(long)]
    fix: bool,
    /// With `--store`: read all logs, also what was checked before
    #[arg(long)]
    all: bool,
    /// Send a test message to the agent of this session (or to an agent, by its name) and print each status it reaches
    #[arg(long, value_name = "SESSION")]
    wake: Option<String>,
    /// How long to wait for that message, in seconds
    #[arg(long, alias = "patience", value_name = "SECONDS", default_value_t = 30, requires = "wake", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl CommandSpec for Args {
    const ALLOWS_BARE_STORE: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if (self.fix || self.all) && !context.speaks_of_store {
            let flag = if self.fix { "--fix" } else { "--all" };
            return Err(CommandError::from(Failure {
                what: format!("`{flag}` is about the store"),
                hint: Some(format!("write `relay-mesh doctor --store {flag}`")),
                exit: Exit::Usage,
                source: None,
            }));
        }
        let context = &context.at(self.place.folder(&context.workdir)?);
        let mut worst = Severity::Ok;
        let mut tell = |proof: Proof| {
            worst = worst.max(proof.severity);
            context.printer.show(&proof)
        };
        let open = context.open()?;
        // A name that nobody knows is told before anything is checked.
        let names = match &self.harness {
            Some(name) => match open.adapters.describe(name).map_err(|error| errors::adapters::failed(name, error))? {
                Some((manifest, _)) => vec![manifest.name],
                None => return Err(errors::adapters::unknown(name, open.adapters.as_ref())),
            },
            None => open.adapters.names(),
        };
        if let Some(session) = &self.wake {
            return wake(context, &open, session, Duration::from_secs(self.timeout)).await;
        }
        let dir = &context.settings.dir.value;
        let unused = default_dir::unused(&context.environment, &context.settings.dir);
        for finding in data_folder::place(&context.settings.dir, &unused) {
            tell(Proof::new("data folder", None, finding))?;
        }
        for finding in data_folder::prove(dir, &nonce(&open)) {
            tell(Proof::new("data folder", None, finding))?;
        }
        tell(Proof::new("data folder", None, data_folder::room(dir)))?;
        if let Some(servers) = &open.servers {
            let seen = servers.examine(&nonce(&open)).await;
            for finding in servers::findings(&seen, open.machine.own_clock()) {
                tell(Proof::new("servers", None, finding))?;
            }
            open.mesh.notice_stores().await;
            for (place, known) in open.mesh.known_stores().await? {
                if let Some(finding) = servers::replaced(&place, &known, open.machine.now()) {
                    tell(Proof::new("servers", None, finding))?;
                }
            }
            if self.fix {
                open.mesh.accept_stores().await?;
            }
        }
        if context.speaks_of_store {
            let mending = if self.fix { Mending::SetAside } else { Mending::Look };
            let depth = if self.all { Depth::All } else { Depth::New(AT_ONCE) };
            for finding in data_folder::damage(dir, mending, depth) {
                tell(Proof::new("data folder", None, finding))?;
            }
            for finding in records::check(&open.mesh, dir, mending).await {
                tell(Proof::new("records", None, finding))?;
            }
            return Ok(outcome(worst));
        }
        if let Some(finding) = data_folder::owners(dir, owner::us()) {
            tell(Proof::new("data folder", None, finding))?;
        }
        for finding in compile_cache(open.adapters.caches()) {
            tell(Proof::new("cache", None, finding))?;
        }
        let address = context.settings.listen.value.to_string();
        tell(Proof::new("server", None, of_server(&open, dir, &address).await?))?;
        for name in names {
            for proof in examine::harness(context, &open, &name, &self.place).await? {
                tell(proof)?;
            }
        }
        if self.harness.is_none() {
            for unused in open.adapters.states().await.1 {
                tell(Proof::new("adapter", None, examine::passed_over(&unused, open.adapters.installed())))?;
            }
        }
        Ok(outcome(worst))
    }
}

/// What is to be said if compiled adapters cannot be kept where they should be.
fn compile_cache(caches: Vec<(PathBuf, Option<String>)>) -> Vec<Finding> {
    let aside = caches.iter().find(|(_, fault)| fault.is_none()).map(|(folder, _)| folder.display().to_string());
    let faults = caches.into_iter().map_while(|(_, fault)| fault);
    let tell = |why: String| match &aside {
        Some(folder) => Finding {
            severity: Severity::Warning,
            what: format!("compiled adapters are kept in {folder}, because the cache cannot be used: {why}"),
            fix: Some("make it a folder of yours that can be written, or set XDG_CACHE_HOME to one".to_owned()),
        },
        None => Finding {
            severity: Severity::Broken,
            what: format!("every hook compiles its adapter anew, because the cache cannot be used: {why}"),
            fix: Some("make it a folder of yours that can be written, or set XDG_CACHE_HOME to one".to_owned()),
        },
    };
    faults.map(tell).collect()
}

/// What is to be said of this data folder's server: of the one that its own record names, wherever that listens, or of
/// what is found at the address of the settings.
async fn of_server(open: &Open, dir: &Path, set: &str) -> Result<Finding, CommandError> {
    let record = ServerRecord::find(dir, open.machine.as_ref())?;
    let address = record.as_ref().map_or(set, |record| record.listen.as_str());
    let heard = server::ask_for_proof(address, dir, open.machine.as_ref()).await?;
    Ok(match record {
        Some(_) => server::of_record(address, set, &heard),
        None => server::finding(set, &heard),
    })
}

/// Sends a test message that needs no action, and follows its status.
async fn wake(context: &Context, open: &Open, session: &str, timeout: Duration) -> Result<Exit, CommandError> {
    let agent = wake::agent_of(open, session).await?;
    if !wake::has_session(open, &agent).await? {
        let proof = Proof::new("wake", None, wake::without_session(&agent));
        context.printer.show(&proof)?;
        return Ok(outcome(proof.severity));
    }
    let caller = context.principal(open, None).await?;
    let sent = open.mesh.send(&caller, &[agent.to_string()], wake::message(&nonce(open))).await?;
    let mut follower = wake::Follower::default();
    let mut looks = tokio::time::interval(wake::EVERY);
    let deadline = tokio::time::Instant::now() + timeout;
    loop {
        looks.tick().await;
        let status = open.mesh.message_status(&caller, sent.id).await?;
        let recipient = wake::only_recipient(status)?;
        for line in follower.news(&recipient) {
            context.printer.say(&line);
        }
        let over = wake::wait(&recipient) == wake::Wait::Over || tokio::time::Instant::now() >= deadline;
        if over {
            let proof = Proof::new("wake", None, wake::verdict(&recipient, timeout));
            context.printer.show(&proof)?;
            if let Some(left) = wake::left_unread(&sent.id.to_string(), &recipient) {
                context.printer.say(&left);
            }
            return Ok(outcome(proof.severity));
        }
    }
}

/// Random text, so that a check mistakes no other data for its own.
fn nonce(open: &Open) -> String {
    hex::encode(&open.mesh.machine().random()[..6])
}

fn outcome(worst: Severity) -> Exit {
    match worst {
        Severity::Ok | Severity::Warning => Exit::Success,
        Severity::Broken => Exit::Failure,
    }
}

impl Proof {
    /// What was checked, and of which harness.
    fn about(&self) -> String {
        match &self.harness {
            Some(harness) => format!("{harness}: {}", self.subject),
            None => self.subject.to_owned(),
        }
    }
}

impl Show for Proof {
    fn text_on(&self, screen: &Screen) -> String {
        // What a stranger wrote is broken already.
        if self.is_foreign {
            return self.text();
        }
        let what = format!("{}: {}", self.about(), printable(&self.what));
        let line = screen.labelled(&format!("{:<8} ", self.severity_name()), &what);
        match &self.fix {
            Some(fix) => format!("{line}\n{}", screen.labelled("         fix: ", &printable(fix))),
            None => line,
        }
    }

    fn text(&self) -> String {
        let (word, about) = (self.severity_name(), self.about());
        if self.is_foreign {
            // Its author could write lines that look like further findings of ours.
            let fix = self.fix.iter().map(|fix| framed(&format!("fix: {fix}"))).collect::<String>();
            return format!("{word:<8} {about}:{}{fix}", framed(&self.what));
        }
        let line = format!("{word:<8} {about}: {}", printable(&self.what));
        match &self.fix {
            Some(fix) => format!("{line}\n         fix: {}", printable(fix)),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Finding;

    use super::*;

    #[test]
    fn a_finding_says_what_it_is_about_and_what_to_do() {
        let what = "the Stop hook did not answer".to_owned();
        let finding = Finding { severity: Severity::Broken, what, fix: Some("install it again".to_owned()) };
        let proof = Proof::new("hook", Some("claude-code"), finding);
        assert_eq!(
            proof.text(),
            "broken   claude-code: hook: the Stop hook did not answer\n         fix: install it again"
        );
    }

    #[test]
    fn a_finding_on_a_terminal_is_broken_between_words() {
        let what = "no server of this data folder runs at 127.0.0.1:7423".to_owned();
        let fix = Some("start it by `relay-mesh up`, and see what `relay-mesh status` says then".to_owned());
        let proof = Proof::new("server", None, Finding { severity: Severity::Broken, what, fix });
        let on = |columns| proof.text_on(&Screen { columns, is_coloured: false, redraws: true });
        assert_eq!(
            on(40),
            "broken   server: no server of this data\n         folder runs at 127.0.0.1:7423\n         fix: start it by `relay-mesh\n              up`, and see what\n              `relay-mesh status` says\n              then"
        );
        let is_one_word = |line: &str| line.split_whitespace().count() == 1;
        assert!(on(20).lines().all(|line| line.len() <= 20 || is_one_word(line)), "{}", on(20));
        assert_eq!(on(usize::MAX), proof.text(), "in a pipe nothing is broken");
    }

    #[test]
    fn a_finding_of_a_foreign_adapter_forges_no_line() {
        let what = format!("fine\nok       data folder: it is whole{}ok       server: well", " ".repeat(100));
        let finding = Finding { severity: Severity::Broken, what, fix: Some("run this\nok".to_owned()) };
        let text = Proof::new("settings", Some("toad"), finding).of_foreign().text();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("broken   toad: settings:"));
        assert!(lines.all(|line| line.starts_with("  | ") && line.len() <= 80), "{text}");
        assert!(text.ends_with("  | fix: run this\n  | ok"), "{text}");
    }

    #[test]
    fn only_what_is_broken_ends_the_doctor_with_a_failure() {
        for (severity, code) in [(Severity::Ok, 0), (Severity::Warning, 0), (Severity::Broken, 1)] {
            assert_eq!(outcome(severity).code(), code);
        }
    }
}
