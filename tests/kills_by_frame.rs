//! `kill -9` between each two frames of a turn, with the real clients: of the harness, of the process that drives it, of both,
//! and of that process with the guard. Whatever was on its way is shown once, or again with its mark, and nothing is left.
//!
//! `make test` runs them apart from the others.

use test_support::{Script, Spawning, each_once_or_marked, isolated, presence_of, send_with, wait_for, wait_or_show};

/// The most frames that a turn may have. It ends with the first turn that has fewer than are waited for.
const MOST: usize = 60;

#[derive(Clone, Copy, Debug)]
enum Victims {
    Harness,
    Host,
    Both,
    HostAndGuard,
}

impl Victims {
    const ALL: [Victims; 4] = [Victims::Harness, Victims::Host, Victims::Both, Victims::HostAndGuard];

    /// As the gate takes them.
    fn words(self, scene: &Spawning) -> String {
        let host = || wait_for("a host", || scene.host()).to_string();
        let guard = || wait_for("a guard", || scene.running()).0.to_string();
        match self {
            Victims::Harness => "harness".to_owned(),
            Victims::Host => host(),
            Victims::Both => format!("{} harness", host()),
            Victims::HostAndGuard => format!("{} {}", guard(), host()),
        }
    }
}

/// `every` is how many frames apart the kills are.
fn between_frames(harness: &'static str, every: usize) {
    let scene = Spawning::of(env!("CARGO_BIN_EXE_relay-mesh"), harness, Script::new().say("", "Done."));
    scene.put_gate_before_its_frames();
    scene.spawn("helper", &["Say hello", "--wait"]);
    scene.stage.relay_ok(&["register", "alice"]);
    let gate = |name: &str| scene.stage.folder.join("gate").join(name);
    let mut sent = Vec::new();
    let mut kills = 0;
    for at in (1..MOST).step_by(every) {
        scene.driven("helper");
        let idle = || (presence_of(&scene.stage, "helper").as_deref() == Some("idle")).then_some(());
        wait_or_show("it is idle", idle, || scene.told());
        let victims = Victims::ALL[kills % Victims::ALL.len()];
        let _before = std::fs::remove_file(gate("killed"));
        std::fs::write(gate("armed"), format!("{at} {}", victims.words(&scene))).expect("the folder is writable");
        let id = send_with(&scene.stage, "helper", &format!("task number {at}"), &["--from", "alice"]);
        // Of a turn that was cut off after it was shown no reply comes.
        let over = || {
            scene.ok(&["spawn", "list"]);
            let status = scene.status(&id);
            (status == "acknowledged" || (status == "shown" && gate("killed").exists())).then_some(())
        };
        wait_or_show(&format!("{victims:?} after frame {at}: {id} is shown"), over, || {
            format!("{}\n{}\n{:?}", scene.told(), scene.ok(&["message", &id]), scene.ours())
        });
        sent.push(id);
        if !gate("killed").exists() {
            break;
        }
        kills += 1;
    }
    let _disarmed = std::fs::remove_file(gate("armed"));
    assert!(kills >= 3, "{harness}: a turn of {kills} frames");
    each_once_or_marked(&scene, &sent);
    scene.ok(&["dismiss", "helper"]);
    scene.nothing_is_left();
}

#[test]
#[ignore = "`make test` runs it apart from the others"]
fn codex_between_each_two_frames() {
    isolated(|| between_frames("codex", 1));
}

#[test]
#[ignore = "`make test` runs it apart from the others"]
fn claude_code_between_each_two_frames() {
    isolated(|| between_frames("claude-code", 1));
}

#[test]
#[ignore = "`make test` runs it apart from the others"]
fn opencode_between_each_two_frames() {
    isolated(|| between_frames("opencode", 1));
}
