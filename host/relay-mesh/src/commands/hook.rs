//! `relay-mesh hook`: what a harness's hooks call. The harness waits for it, so it is quick, and any failure
//! ends with exit code 0 and one line on standard error.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::Duration;

use mesh::ports::harness::HookCall;

use crate::command::CommandSpec;
use crate::commands::input;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::hook_pairs::{self, HookSource};
use crate::server::background;
use crate::{process_info, recording, render};

/// The longest payload, in bytes. Claude Code puts whole tool results into one.
const LONGEST_PAYLOAD: usize = 8 * 1024 * 1024;
/// After this the harness goes on without us, unless its adapter's install set a longer `--timeout`.
const DEADLINE: Duration = Duration::from_secs(5);

/// Arguments of the process that waits for the adapter to be compiled, and else compiles it, when a hook runs out of
/// time.
static GOES_ON: OnceLock<Vec<OsString>> = OnceLock::new();

/// Answer a harness's hook: what a harness calls
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The payload comes as JSON on standard input. A harness calls this by itself, once it is set up:\n  \
    relay-mesh install claude-code\n\n\
    By hand:\n  \
    echo '{\"session_id\":\"s\",\"cwd\":\"/tmp\",\"hook_event_name\":\"SessionStart\",\"source\":\"startup\"}' | \
    relay-mesh hook claude-code SessionStart"
)]
pub(crate) struct Args {
    /// Which harness calls
    harness: String,
    /// Which of its hooks, in its own spelling
    event: String,
    /// Seconds that the harness may wait, for a hook whose answer no later hook can give
    #[arg(long, alias = "patience", value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(1..=60))]
    timeout: Option<u8>,
    /// Said by the hooks of a plugin that the harness itself has installed
    #[arg(long, hide = true)]
    plugin: bool,
    /// Ignored: a harness may add arguments of its own
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    more: Vec<String>,
}

/// From now on this process exits with 0 whatever happens, even on a panic or an endless wait. A thread watches
/// the clock, because any call may hang, not only an asynchronous one.
#[expect(clippy::exit, reason = "nothing else ends a process whose main thread hangs or panics")]
pub(crate) fn never_break_the_harness(args: &Args) {
    let timeout = args.timeout.map_or(DEADLINE, |seconds| Duration::from_secs(seconds.into()));
    std::panic::set_hook(Box::new(|panic| {
        render::last_words(&format!("relay-mesh: a defect: {}", panic.to_string().replace('\n', " ")));
        processes::end_groups();
        std::process::exit(0);
    }));
    let watch = std::thread::Builder::new().name("deadline".to_owned()).stack_size(64 * 1024);
    let started = watch.spawn(move || {
        let soon = timeout.min(DEADLINE);
        std::thread::sleep(soon);
        // Now, and not only at the end: a harness that waits less than it said kills this process before that.
        let goes_on = go_on();
        std::thread::sleep(timeout.saturating_sub(soon));
        let seconds = timeout.as_secs();
        let words = format!("relay-mesh: the hook took longer than {seconds} s and was given up{goes_on}");
        render::last_words(&words);
        // Nobody comes back to end what adapters started.
        processes::end_groups();
        std::process::exit(0);
    });
    if let Err(error) = started {
        render::last_words(&format!("relay-mesh: the hook runs without a deadline: {error}"));
    }
}

/// If the adapter is being compiled, starts the process of `GOES_ON`, apart from the harness, and returns words for the
/// message. That process sees to it that it is compiled, whatever becomes of the one that compiles it now.
fn go_on() -> &'static str {
    let Some(arguments) = GOES_ON.get().filter(|_| adapters::compiling::is_waited_for()) else { return "" };
    match background::leave(arguments) {
        Ok(()) => "; its adapter is being compiled, which happens once and goes on in the background",
        Err(_) => "",
    }
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;
    // Its harness waits for it.
    const RESUMES_AGENTS: bool = false;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let data = context.settings.dir.value.clone().into_os_string();
        let verify = ["--dir".into(), data, "plugin".into(), "verify".into(), self.harness.clone().into()];
        GOES_ON.get_or_init(|| verify.to_vec());
        let payload = String::from_utf8_lossy(&input::bytes(LONGEST_PAYLOAD)?).into_owned();
        let call = HookCall {
            name: self.event,
            payload,
            environment: context.environment.pairs(),
            process: process_info::caller().map(|process| {
                let namespace = process.space.map_or(0, |space| space.namespace);
                format!("{}.{}.{namespace}", process.pid, process.start)
            }),
        };
        let source = if self.plugin { HookSource::Plugin } else { HookSource::Install };
        if hook_pairs::stands_aside(&context.settings.dir.value, source, &self.harness, &call) {
            return Ok(Exit::Success);
        }
        let open = context.open_for_hook()?;
        let manifest = || open.adapters.describe(&self.harness).ok().flatten().map(|(manifest, _)| manifest);
        let (data, home) = (&context.settings.dir.value, context.environment.home());
        recording::note(data, &self.harness, &call, home.as_deref(), manifest);
        let outcome = open.mesh.hook(&self.harness, &call).await?;
        let exit = u8::try_from(outcome.reply.exit_code).unwrap_or_else(|_| {
            tracing::warn!(code = outcome.reply.exit_code, "the adapter asked for an exit code that does not exist");
            0
        });
        if let Some(text) = &outcome.reply.stderr {
            context.printer.on_standard_error(text);
        }
        if let Some(text) = &outcome.reply.stdout
            && let Err(error) = context.printer.bytes(text.as_bytes())
        {
            if let Some(lease) = outcome.lease {
                open.mesh.release(lease).await?;
            }
            return Err(error);
        }
        // The harness has its answer; a receipt that cannot be written must not make the hook fail.
        if let Err(error) = open.mesh.confirm_hook(outcome, &call.name).await {
            tracing::warn!(%error, "mail was shown and its receipt was not written; it will be shown again");
        }
        Ok(Exit::Hook(exit))
    }
}
