//! docs/troubleshooting.md: every line works as it stands, for somebody whose message has not arrived.

use test_support::{Program, Stage, isolated, page, page_blocks, send};

const PAGE: &str = "docs/troubleshooting.md";

/// The lines for a shell.
fn lines() -> Vec<String> {
    let blocks = page_blocks(PAGE).into_iter().filter(|block| block.kind == "sh");
    blocks.flat_map(|block| block.lines).collect()
}

#[test]
fn every_line_works_for_somebody_whose_message_has_not_arrived() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.relay_ok(&["register", "alice"]);
        stage.relay_ok(&["pause", "alice"]);
        let id = send(&stage, "alice", "Which port does the server use?");
        let lines = lines();
        assert!(lines.len() > 15, "{lines:?}");
        for line in lines {
            let shell = Program::new("sh").args(["-ec", &line]).envs(stage.environment());
            let outcome = shell.env("ID", &id).within(&stage.project).run();
            // Nothing wakes an agent of the command line, and `--wake` has to say so.
            let expected = i32::from(line.contains("--wake"));
            assert_eq!(outcome.code, Some(expected), "{line}: {outcome:?}");
        }
        let exported = std::fs::read_to_string(stage.project.join("mesh.jsonl")).expect("an export");
        assert!(exported.contains("Which port does the server use?"), "{exported}");
        let doctor = std::fs::read_to_string(stage.project.join("doctor.jsonl")).expect("what doctor found");
        assert!(doctor.lines().count() > 5, "{doctor}");
    });
}

/// The page's table has each status that the program can say.
#[test]
fn its_table_has_each_status() {
    let page = page(PAGE);
    let help = Stage::new(env!("CARGO_BIN_EXE_relay-mesh")).relay_ok(&["message", "--help"]);
    let (_, statuses) = help.split_once("lowest first: ").expect("the statuses");
    let statuses: Vec<&str> = statuses.trim().trim_end_matches('.').split(", ").collect();
    assert_eq!(statuses.len(), 6, "{statuses:?}");
    for status in statuses {
        assert!(page.contains(&format!("`{status}`")), "the page has {status}");
    }
}
