//! The scene of the tests of the views.

use test_support::Stage;

/// Five agents who have talked, of whom one waits for its user.
pub(crate) fn five() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    talk(&stage);
    stage
}

/// They have talked on this machine.
pub(crate) fn talk(stage: &Stage) {
    for agent in ["alice", "bob", "carol", "dave", "erin"] {
        stage.relay_ok(&["register", agent, "--role", "writes the parser"]);
    }
    stage.relay_ok(&["send", "carol", "The staging database has moved", "--from", "bob", "--thread", "database"]);
    stage.relay_ok(&["send", "bob", "Where is it now?", "--from", "carol", "--thread", "database"]);
    stage.relay_ok(&["send", "dave,erin", "the build is red", "--from", "carol", "--thread", "build"]);
    stage.relay_ok(&["ask", "Which port shall the server use?", "--from", "alice"]);
}
