//! The relay-mesh binary: parses the command line, composes the crates and prints.

mod answering;
mod arguments;
mod atomic_write;
mod cli;
mod clock;
mod command;
#[cfg(test)]
mod command_names;
mod commands;
mod commit_guard;
mod compose;
mod config;
mod context;
mod data_format;
mod driven;
mod duration;
mod environment;
mod errors;
mod event_hooks;
mod events;
mod exit;
mod exporting;
mod file_mark;
mod git_checkout;
mod git_remote;
mod hook_pairs;
mod install_channel;
mod line_reader;
mod logging;
mod machine;
mod own_path;
mod owner;
mod pace;
mod patterns;
mod pipelines;
mod process_info;
mod recording;
mod render;
mod retention;
mod reviews;
mod runs;
mod screen;
mod server;
mod setup;
mod shapes;
mod signals;
mod tool_threads;
mod unix;
mod wake;
mod watching;
mod whole_numbers;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use tokio::runtime::Builder;

use crate::cli::{Cli, Command};
use crate::command::Threads;
use crate::commands::hook;
use crate::config::{ProjectFolder, Settings};
use crate::context::{Context, Seat};
use crate::environment::Environment;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::render::Printer;
use crate::server::background;

/// musl's allocator has one lock for all threads and returns memory at once (docs/adr/0012).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let hidden = processes::guard::if_asked(&arguments).or_else(|| adapters::compiling::if_asked(&arguments));
    if let Some(exit) = hidden {
        return exit;
    }
    let environment = Environment::of_this_process();
    if arguments.len() == 1 && watching::has_a_terminal() && watching::can_draw(&environment) {
        // The bare command in a terminal is for a person, who wants to see what happens; elsewhere it prints the help.
        arguments.push("ui".into());
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return arguments::usage(error, &arguments),
    };
    let is_hook = matches!(cli.command, Command::Hook(_));
    let tells_starter = matches!(&cli.command, Command::Serve(args) if args.background);
    if let Command::Hook(args) = &cli.command {
        hook::never_break_the_harness(args);
    }
    logging::start(&environment, cli.common.talk());
    let printer = Printer::new(cli.common.format(), cli.common.talk(), cli.common.color, &environment);
    let printer = printer.in_folder(cli.common.dir.as_deref());
    let exit = match perform(cli, environment, printer.clone()) {
        Ok(exit) => exit,
        Err(error) if error.is_reader_gone() => Exit::Success,
        Err(error) if is_hook => {
            printer.error_line(&error);
            Exit::Success
        }
        Err(error) => {
            if tells_starter {
                background::tell_starter(&error);
            }
            printer.error(&error);
            error.exit()
        }
    };
    exit.into()
}

fn perform(cli: Cli, environment: Environment, printer: Printer) -> Result<Exit, CommandError> {
    let workdir = std::env::current_dir().map_err(|source| Failure {
        what: "the folder in which this was run cannot be told".to_owned(),
        hint: Some("change into a folder that exists".to_owned()),
        exit: Exit::Failure,
        source: Some(Box::new(source)),
    })?;
    // A client of Agent Plugins starts our server in the plugin's own folder, and says so. Its user works elsewhere.
    let is_of_plugin = environment.get("PLUGIN_ROOT").is_some_and(|root| workdir == Path::new(root));
    let workdir = if is_of_plugin { process_info::folder_of_caller().unwrap_or(workdir) } else { workdir };
    let settings = Settings::load(cli.command.settings(&cli.common)?, &environment, &workdir)?;
    for warning in &settings.warnings {
        printer.warn(warning);
    }
    let project_folder = match cli.command.uses_folder() {
        true => ProjectFolder::of(&settings, &environment)?,
        false => None,
    };
    if let Some(folder) = project_folder {
        folder.make()?;
    }
    let speaks_of_store = cli.common.store.is_some();
    let cleans_up = cli.command.may_start_cleanup();
    let resumes_agents = cli.command.resumes_agents();
    let seat = Seat::ThisProcess;
    let context = Context { settings, environment, printer, workdir, speaks_of_store, seat };
    let mut builder = match cli.command.threads() {
        Threads::One => Builder::new_current_thread(),
        Threads::Many => Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().map_err(|source| Failure {
        what: "this process could not start its work".to_owned(),
        hint: Some("the system is out of threads or of file handles: see `ulimit -a`".to_owned()),
        exit: Exit::Failure,
        source: Some(Box::new(source)),
    })?;
    let outcome = runtime.block_on(async {
        compose::upgrade(&context).await?;
        let outcome = cli.command.run(&context).await;
        if resumes_agents {
            driven::host::go_on(&context).await;
        }
        outcome
    });
    if cleans_up && owner::foreign(&context.settings.dir.value, owner::us()).is_none() {
        retention::daily::start_if_due(&context.settings);
    }
    // A thread may be blocked on standard input forever.
    runtime.shutdown_background();
    outcome
}
