//! Programs that tests run. The only file here that starts one: every child gets an environment of
//! its own, so that nothing of the person who runs the tests leaks into what is tested.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::waiting::wait_for;

/// A program about to be run, with an empty environment but for a path to find others by.
pub struct Program {
    command: Command,
    input: Option<String>,
}

/// How a program ended and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Program {
    /// A program by name or path.
    pub fn new(name: impl AsRef<OsStr>) -> Program {
        #[expect(clippy::disallowed_methods, reason = "this is the one file of the tests that starts programs")]
        let mut command = Command::new(name);
        command.env_clear().env("PATH", search_path()).env("LANG", "C.UTF-8");
        Program { command, input: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Program {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Program {
        self.command.args(arguments);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Program {
        self.command.env(name, value);
        self
    }

    /// Sets variables.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Program {
        self.command.envs(variables);
        self
    }

    /// Hands on the whole environment of the test. Only for tools of the build, and for running the
    /// test itself once more; never for what is tested.
    #[must_use]
    pub fn environment_of_this_process(mut self) -> Program {
        self.command.envs(std::env::vars_os());
        self
    }

    /// Runs in this folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Program {
        self.command.current_dir(folder);
        self
    }

    /// Gives it this text on standard input, then ends the input.
    #[must_use]
    pub fn input(mut self, text: impl Into<String>) -> Program {
        self.input = Some(text.into());
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// Where it cannot be started: a tool that is missing fails the test that needs it.
    pub fn run(mut self) -> Outcome {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.start_child();
        if let (Some(text), Some(mut pipe)) = (self.input.take(), child.stdin.take()) {
            // A program may end without having read its input; that is its business.
            let _ = pipe.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().expect("a child that was started can be waited for");
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it and expects it to succeed; gives its standard output.
    ///
    /// # Panics
    /// Where its exit code is another than zero.
    pub fn succeed(self) -> String {
        let shown = format!("{:?}", self.command);
        let outcome = self.run();
        assert_eq!(outcome.code, Some(0), "{shown}\n{}\n{}", outcome.stdout, outcome.stderr);
        outcome.stdout
    }

    /// Runs it to its end where people see it: its output goes where ours goes. Gives its exit code; none
    /// where a signal ended it.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn run_in_sight(mut self) -> Option<i32> {
        self.command.stdin(Stdio::null());
        self.start_child().wait().expect("a child that was started can be waited for").code()
    }

    /// Starts it beside the test, with pipes to its input and from its output. What it says on
    /// standard error goes to `log`.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn start(mut self, log: &Path) -> Running {
        let log = std::fs::File::create(log).expect("a log file can be made");
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        Running { child: self.start_child() }
    }

    fn start_child(&mut self) -> Child {
        let shown = format!("{:?}", self.command.get_program());
        self.command.spawn().unwrap_or_else(|error| panic!("{shown} could not be started: {error}"))
    }
}

/// A program that runs beside the test and is ended with it.
pub struct Running {
    /// The process, with its pipes until somebody takes them.
    pub child: Child,
}

impl Running {
    /// Ends it at once, without a chance to tidy up: what a crash looks like.
    pub fn kill(&mut self) {
        // It may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and waits until it has. Gives its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        Program::new("kill").arg(self.child.id().to_string()).run();
        self.ended()
    }

    /// Waits until it has ended by itself. Gives its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        wait_for("a program has ended", || self.child.try_wait().expect("a child can be asked")).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where programs are searched for: the test's own path.
#[expect(clippy::disallowed_methods, reason = "the path is what programs are found by, and nothing else is handed on")]
pub fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())
}
