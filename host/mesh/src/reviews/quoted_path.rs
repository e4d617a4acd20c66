//! Paths as git writes them in the head of a difference: as they are, or in quotes like those of C.

/// The path that git wrote, without its quotes and escapes. Bytes that are not UTF-8 are replaced.
pub(super) fn unquoted(written: &str) -> String {
    let Some(inner) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return written.to_owned();
    };
    let mut bytes = Vec::new();
    let mut left = inner.bytes().peekable();
    while let Some(byte) = left.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match left.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                while let Some(next @ b'0'..=b'7') = left.peek().copied() {
                    if value >= 32 {
                        break;
                    }
                    value = value * 8 + u32::from(next - b'0');
                    left.next();
                }
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'v') => bytes.push(11),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The two paths after `diff --git `, without their prefixes. Without quotes the place between them is ambiguous only
/// for a file that was renamed, and then other lines name them.
pub(super) fn pair(written: &str) -> Option<(String, String)> {
    let (old, new) = if let Some(rest) = written.strip_prefix('"') {
        let mut escaped = false;
        let end = rest.char_indices().find(|(_, letter)| {
            let ends = *letter == '"' && !escaped;
            escaped = *letter == '\\' && !escaped;
            ends
        })?;
        let (old, new) = written.split_at(end.0 + 2);
        (old, new.strip_prefix(' ')?)
    } else if let Some(at) = written.find(" \"") {
        (&written[..at], &written[at + 1..])
    } else {
        let half = written.len() / 2;
        let is_middle = written.is_char_boundary(half) && written[half..].starts_with(' ');
        let half = if is_middle { half } else { written.find(" b/")? };
        (&written[..half], &written[half + 1..])
    };
    Some((bare(&unquoted(old)), bare(&unquoted(new))))
}

/// A path without the `a/` or `b/` before it.
pub(super) fn bare(path: &str) -> String {
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_git_wrote_it() {
        for (written, expected) in [
            ("a/src/lib.rs", "a/src/lib.rs"),
            (r#""a/\303\274.txt""#, "a/ü.txt"),
            (r#""a/with \"quotes\" and\ttab""#, "a/with \"quotes\" and\ttab"),
            (r#""a/\\""#, "a/\\"),
        ] {
            assert_eq!(unquoted(written), expected, "{written}");
        }
    }

    #[test]
    fn the_head_of_a_difference_names_two_paths() {
        for (written, old, new) in [
            ("a/x b/x", "x", "x"),
            ("a/with space b/with space", "with space", "with space"),
            ("a/old.rs b/newer.rs", "old.rs", "newer.rs"),
            (r#""a/\303\274" "b/\303\274""#, "ü", "ü"),
            (r#""a/q\"" b/plain"#, "q\"", "plain"),
        ] {
            assert_eq!(pair(written), Some((old.to_owned(), new.to_owned())), "{written}");
        }
    }
}
