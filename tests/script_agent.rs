//! A harness that relay-mesh does not know: the adapter in examples/script-agent is built as a third party builds it,
//! passes the conformance kit, and is installed by `plugin install`, which says what it asks for.

use std::path::{Path, PathBuf};

use test_support::{Stage, isolated};

#[test]
fn an_adapter_that_only_runs_tasks_passes_the_kit() {
    isolated(|| {
        let stage = stage();
        let fixtures = example().join("fixtures").display().to_string();
        let report = stage.relay_ok(&["plugin", "test", &component(&stage), "--fixtures", &fixtures, "--all"]);
        assert!(report.contains("\npassed: "), "{report}");
        for held in ["tasks: prepare", "tasks: no output", "tasks: run answer, cut off", "tasks: run limited"] {
            assert!(report.contains(&format!("held: {held}")), "{held}: {report}");
        }
    });
}

#[test]
fn what_a_run_gets_is_asked_for_in_plain_words() {
    isolated(|| {
        let stage = stage();
        let component = component(&stage);
        let refused = stage.run(&["plugin", "install", "--allow-unsigned", &component, "--yes"]);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        let words = "word the command line by which a task is run: `script-agent --json`, with any of `--read-only`, \
                     `--model={name}`; that program gets your variables SCRIPT_AGENT_KEY";
        assert!(told.contains(words), "{told}");
        stage.relay_ok(&[
            "plugin",
            "install",
            "--allow-unsigned",
            &component,
            "--yes",
            "--grant",
            "runs.task,programs.version",
        ]);
        let inspected = stage.relay_ok(&["plugin", "inspect", "script-agent"]);
        assert!(inspected.contains("runs.task") && inspected.contains("SCRIPT_AGENT_KEY"), "{inspected}");
        assert!(inspected.contains("relay:adapter/runner"), "what it exports: {inspected}");
    });
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn component(stage: &Stage) -> String {
    stage.component(&example(), "relay_mesh_script_agent.wasm").display().to_string()
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/script-agent")
}
