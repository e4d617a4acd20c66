//! A terminal that a test types into and reads from: tmux on its own socket.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::programs::Program;
use crate::waiting::wait_or_show;

/// A program in a terminal. Dropping it ends the program.
pub struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Starts a program in a terminal of 160 columns and 48 lines, with exactly this environment.
    pub fn start(folder: &Path, within: &Path, environment: &[(String, String)], program: &[String]) -> Terminal {
        // One stage may have several terminals.
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let terminal = Terminal { socket: folder.join(format!("tmux-{number}.sock")) };
        let mut line = vec!["env".to_owned(), "-i".to_owned()];
        line.extend(environment.iter().map(|(name, value)| format!("{name}={value}")));
        line.extend(program.iter().cloned());
        terminal
            .tmux()
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "48", "-c"])
            .arg(within)
            .args(line)
            .succeed();
        terminal
    }

    /// Makes it as narrow as many terminals are: 80 columns and 24 lines.
    pub fn narrow(&self) {
        self.tmux().args(["resize-window", "-x", "80", "-y", "24"]).succeed();
    }

    /// Makes it so wide and so high.
    pub fn resize(&self, columns: usize, lines: usize) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        self.tmux().args(["resize-window", "-x", &columns, "-y", &lines]).succeed();
    }

    /// What tmux knows of it, by tmux's name for that, as in `#{alternate_on}`.
    pub fn told(&self, format: &str) -> String {
        self.tmux().args(["display-message", "-p", format]).succeed().trim().to_owned()
    }

    /// The screen's current text.
    pub fn screen(&self) -> String {
        self.tmux().args(["capture-pane", "-p"]).run().stdout
    }

    /// The same with its colours, as escape sequences.
    pub fn painted(&self) -> String {
        self.tmux().args(["capture-pane", "-p", "-e"]).run().stdout
    }

    /// Waits until the screen shows a text.
    ///
    /// # Panics
    /// If it does not in time, or the program ended before it did.
    pub fn wait_for(&self, text: &str) {
        let look = || {
            let shown = self.screen().contains(text);
            assert!(shown || !self.is_over(), "the program ended before its screen showed {text:?}");
            shown.then_some(())
        };
        wait_or_show(&format!("the screen shows {text:?}"), look, || self.screen());
    }

    /// Waits until the screen no longer shows a text.
    pub fn wait_until_gone(&self, text: &str) {
        let look = || (!self.screen().contains(text)).then_some(());
        wait_or_show(&format!("the screen shows {text:?} no more"), look, || self.screen());
    }

    /// Types a text, waits until the screen shows it, and presses Enter.
    pub fn type_line(&self, text: &str) {
        self.write(text);
        self.wait_for(text);
        self.press("Enter");
    }

    /// Types a text.
    pub fn write(&self, text: &str) {
        self.tmux().args(["send-keys", "-l", text]).succeed();
    }

    /// Presses a key, by tmux's name for it.
    pub fn press(&self, key: &str) {
        self.tmux().args(["send-keys", key]).succeed();
    }

    /// Whether its program has ended.
    pub fn is_over(&self) -> bool {
        self.tmux().arg("has-session").run().code != Some(0)
    }

    /// The process id of its program.
    pub fn program(&self) -> String {
        self.tmux().args(["list-panes", "-F", "#{pane_pid}"]).succeed().trim().to_owned()
    }

    /// Closes it, as a user closes a window, and waits until its program has ended.
    pub fn close(&self) {
        let first = self.program();
        self.tmux().arg("kill-server").succeed();
        let process = Path::new("/proc").join(&first).join("exe");
        // The `exe` link of an unreaped process cannot be read.
        let ended = || std::fs::read_link(&process).is_err().then_some(());
        wait_or_show("what ran in the terminal has ended", ended, || format!("{first} has not"));
    }

    /// Kills its program (kill -9) with the processes of its own that run the same executable, and waits for their end.
    /// What the program has started besides goes on.
    pub fn kill(&self) {
        let first = self.program();
        let exe = |process: &str| std::fs::read_link(Path::new("/proc").join(process).join("exe")).ok();
        let program = exe(&first);
        let mut own = vec![first];
        let mut at = 0;
        while let Some(parent) = own.get(at).cloned() {
            let tasks =
                std::fs::read_dir(Path::new("/proc").join(&parent).join("task")).into_iter().flatten().flatten();
            let below = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
            let below: Vec<String> =
                below.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
            own.extend(below.into_iter().filter(|process| exe(process) == program));
            at += 1;
        }
        // One of them may end with another.
        Program::new("kill").arg("-KILL").args(&own).run();
        let ended = || own.iter().all(|process| exe(process).is_none()).then_some(());
        wait_or_show("what ran in the terminal has ended", ended, || format!("{own:?} have not"));
        self.tmux().arg("kill-server").run();
    }

    fn tmux(&self) -> Program {
        Program::new("tmux").env("TERM", "xterm-256color").arg("-S").arg(&self.socket)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The tmux server has only this terminal.
        self.tmux().arg("kill-server").run();
    }
}
