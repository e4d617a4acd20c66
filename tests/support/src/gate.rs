//! Stops a harness between what a hook gave it and what it does next, so that a test can kill it there.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::stage::Stage;
use crate::waiting::wait_for;

/// A program in the place of relay-mesh. It runs relay-mesh, but a hook whose gate is closed does not end after its
/// answer was written out, and the harness waits for its end.
pub struct HookGate {
    folder: PathBuf,
}

impl HookGate {
    /// Puts the program beside the stage's.
    pub fn new(stage: &Stage) -> HookGate {
        let folder = stage.folder.join("gate");
        std::fs::create_dir_all(&folder).expect("the stage is writable");
        let program = folder.join("relay-mesh");
        let text = format!(
            "#!/bin/sh\n\
             [ \"$1\" = hook ] || exec '{binary}' \"$@\"\n\
             '{binary}' \"$@\"\n\
             code=$?\n\
             rm '{folder}'/closed-\"$3\" 2>/dev/null || exit $code\n\
             touch '{folder}'/reached-\"$3\"\n\
             exec tail -f /dev/null\n",
            binary = stage.binary().display(),
            folder = folder.display(),
        );
        std::fs::write(&program, text).expect("the stage is writable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
        HookGate { folder }
    }

    /// The program that stands in relay-mesh's place.
    pub fn program(&self) -> String {
        self.folder.join("relay-mesh").display().to_string()
    }

    /// Closes the gate of the next hook of this event: of one that begins after this.
    pub fn close(&self, event: &str) {
        wait_for_hooks_to_end(&self.program());
        std::fs::write(self.folder.join(format!("closed-{event}")), "").expect("the stage is writable");
    }

    /// Waits until the hook of this event has answered and the harness waits at its gate.
    pub fn wait_until_reached(&self, event: &str) {
        let reached = self.folder.join(format!("reached-{event}"));
        wait_for(&format!("the hook {event} has answered"), || std::fs::remove_file(&reached).ok());
    }
}

/// Waits until no hook of a program runs, of which the end of the path is given. A hook that ends a turn says so before it
/// looks for mail.
pub fn wait_for_hooks_to_end(program: &str) {
    let runs_a_hook = |process: std::fs::DirEntry| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&format!("{program}\0hook\0"))
    };
    wait_for("no hook runs", || {
        let any = std::fs::read_dir("/proc").expect("a list").flatten().any(runs_a_hook);
        (!any).then_some(())
    });
}
