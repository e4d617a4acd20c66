//! Starts programs for tests, and is the only file here that does: every child gets its own environment, so that
//! nothing of the developer's environment leaks into the test.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::waiting::wait_for;

/// Starts a program below a shell.
const BY_HAND: &str = "exec 3<&0; setpriv --pdeathsig KILL \"$@\" <&3 3<&- & trap \"kill -TERM $!\" TERM; exec 3<&- <&-; \
                       wait $!; code=$?; while kill -0 $! 2>/dev/null; do wait $!; code=$?; done; exit $code";

/// A program about to be run. Its environment has only PATH.
pub struct Program {
    command: Command,
    input: Option<String>,
}

/// A program's exit code and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
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

    /// The same below a shell that leads a session, as a user starts it by hand in a terminal: for a server that takes the
    /// program which started it for its client, and what that does for its agent's. It ends with the shell, and the shell
    /// passes SIGTERM on.
    #[must_use]
    pub fn by_hand(self) -> Program {
        let shell = ["sh", "-c", BY_HAND, "by-hand"];
        let mut by_hand =
            Program::new("setsid").args(shell).arg(self.command.get_program()).args(self.command.get_args());
        by_hand.input = self.input;
        let variables = self.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        by_hand.command.envs(variables);
        if let Some(folder) = self.command.get_current_dir() {
            by_hand.command.current_dir(folder);
        }
        by_hand
    }

    /// Inherits the test's whole environment. Only for build tools and for running the test itself again, never for the
    /// program under test.
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

    /// Writes this text to its standard input, then closes it.
    #[must_use]
    pub fn input(mut self, text: impl Into<String>) -> Program {
        self.input = Some(text.into());
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started: a missing tool fails the test that needs it.
    pub fn run(mut self) -> Outcome {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.start_child();
        if let (Some(text), Some(mut pipe)) = (self.input.take(), child.stdin.take()) {
            // A program may end without reading its input.
            let _ = pipe.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().expect("a child that was started can be waited for");
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it, expects success and returns its standard output.
    ///
    /// # Panics
    /// If its exit code is not zero.
    pub fn succeed(self) -> String {
        let shown = format!("{:?}", self.command);
        let outcome = self.run();
        assert_eq!(outcome.code, Some(0), "{shown}\n{}\n{}", outcome.stdout, outcome.stderr);
        outcome.stdout
    }

    /// Runs it to its end with our standard output and error. Returns its exit code; none if a signal ended it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run_in_sight(mut self) -> Option<i32> {
        self.command.stdin(Stdio::null());
        self.start_child().wait().expect("a child that was started can be waited for").code()
    }

    /// Starts it in the background with pipes to its input and from its output. Standard error goes to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
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

/// A background program that ends with the test.
pub struct Running {
    /// The process, with its pipes until a caller takes them.
    pub child: Child,
}

impl Running {
    /// Kills it without a chance to clean up, like a crash.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM, waits for the end and returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        Program::new("kill").arg(self.child.id().to_string()).run();
        self.ended()
    }

    /// Waits until it ends by itself and returns its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        wait_for("a program has ended", || self.child.try_wait().expect("a child can be asked")).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The test's own PATH.
#[expect(clippy::disallowed_methods, reason = "the path is what programs are found by, and nothing else is handed on")]
pub fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())
}

/// What make says by a variable of what a run is for.
#[expect(clippy::disallowed_methods, reason = "make says by variables what a run is for")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
