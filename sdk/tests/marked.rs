//! What `edit::marked` promises: a block that is put and taken leaves the very bytes.

use relay_mesh_sdk::edit::marked::{put, take};

/// Texts as people keep them, and none.
const TEXTS: &[Option<&str>] = &[
    None,
    Some(""),
    Some("\n"),
    Some("\n\n"),
    Some("# Rules"),
    Some("# Rules\n"),
    Some("# Rules\n\n"),
    Some("# Rules\n\nBe kind.\n\n\n"),
    Some("\u{feff}# Rules\n\n- one\n- two"),
];

#[test]
fn a_block_that_is_put_and_taken_leaves_every_byte() {
    for text in TEXTS {
        for crlf in [false, true] {
            let before = text.map(|text| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() });
            let ours = put(before.as_deref(), "codex", "One.\nTwo.").expect("there is room");
            assert!(ours.contains("Two."), "{ours:?}");
            assert_eq!(put(Some(&ours), "codex", "One.\nTwo.").as_ref(), Ok(&ours), "the second time");
            assert_eq!(take(&ours, "codex"), Ok(before), "with ours it was {ours:?}");
        }
    }
}

#[test]
fn an_older_block_makes_room_where_it_stands() {
    let older = put(Some("# Rules\n"), "codex", "Older.").expect("there is room") + "\nTheirs.\n";
    let newer = put(Some(&older), "codex", "Newer.").expect("there is room");
    assert_eq!(newer, older.replace("Older.", "Newer."));
    assert_eq!(take(&newer, "codex"), Ok(Some("# Rules\n\nTheirs.\n".to_owned())));
}

#[test]
fn blocks_of_two_harnesses_do_not_touch() {
    let one = put(Some("# Rules\n"), "codex", "Ours.").expect("there is room");
    let both = put(Some(&one), "opencode", "Other.").expect("there is room");
    assert_eq!(take(&both, "opencode"), Ok(Some(one.clone())));
    assert_eq!(take(&one, "opencode"), Ok(Some(one)));
}

#[test]
fn a_block_without_an_end_is_said_and_left() {
    let broken = "# Rules\n\n<!-- relay-mesh codex: begin -->\nOurs.\n";
    let said = "line 3, column 1: a block of relay-mesh begins here and has no line `<!-- relay-mesh codex: end -->`; add that line, or remove the block";
    assert_eq!(take(broken, "codex").map_err(|broken| broken.to_string()), Err(said.to_owned()));
    assert_eq!(put(Some(broken), "codex", "Ours.").map_err(|broken| broken.to_string()), Err(said.to_owned()));
}
