//! Reading a run's files back into a result, within bounds.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use mesh::ports::runner::RunEvent;

/// Standard output in a result, in bytes of its beginning and as many of its end. The file has all of it.
const OUTPUT: u64 = 4 * 1024 * 1024;
/// Events in a result: so many of the first and as many of the last.
const EVENTS: usize = 10_000;

/// A file as text, without its middle if it is too long; then with a note.
pub(super) fn text(path: &Path, notes: &mut Vec<String>) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        if length <= 2 * OUTPUT {
            file.read_to_end(&mut bytes)?;
            return Ok((bytes, 0));
        }
        file.by_ref().take(OUTPUT).read_to_end(&mut bytes)?;
        let left_out = length - 2 * OUTPUT;
        bytes.extend_from_slice(format!("\n[{left_out} bytes left out]\n").as_bytes());
        file.seek(SeekFrom::Start(length - OUTPUT))?;
        file.take(OUTPUT).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>((bytes, left_out))
    };
    match read() {
        Ok((bytes, 0)) => lossy(bytes),
        Ok((bytes, left_out)) => {
            notes.push(format!("{left_out} bytes of its output are left out here; {} has them", path.display()));
            lossy(bytes)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            notes.push(format!("its output could not be read: {error}"));
            String::new()
        }
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What a run has reported, as its file says. Of a long one only the beginning and the end are parsed.
pub(super) fn events(path: &Path, notes: &mut Vec<String>) -> Vec<RunEvent> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let (mut first, mut last) = (Vec::new(), VecDeque::new());
    let mut left_out = 0_usize;
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        if first.len() < EVENTS {
            first.push(line);
            continue;
        }
        last.push_back(line);
        if last.len() > EVENTS {
            last.pop_front();
            left_out += 1;
        }
    }
    if left_out > 0 {
        notes.push(format!("{left_out} events are left out here; {} has them", path.display()));
    }
    // The last line of a killed process may be half of one.
    first.into_iter().chain(last).filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_events_the_beginning_and_the_end_are_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let said = |number: usize| RunEvent::Said { text: number.to_string() };
        let written = |count: usize| {
            let lines: String =
                (0..count).map(|number| format!("{}\n", serde_json::to_string(&said(number)).expect("JSON"))).collect();
            std::fs::write(&path, format!("{lines}{{\"event\":\"sa")).expect("written");
        };
        for (count, left_out) in [(0, 0), (7, 0), (2 * EVENTS - 1, 0), (2 * EVENTS + 4, 5)] {
            written(count);
            let mut notes = Vec::new();
            let events = events(&path, &mut notes);
            assert_eq!(events.len(), count - left_out, "{count}: half an event is none");
            assert_eq!(notes.len(), usize::from(left_out > 0), "{notes:?}");
            if count > 0 {
                assert_eq!((&events[0], events.last()), (&said(0), Some(&said(count - 1))));
            }
        }
    }
}
