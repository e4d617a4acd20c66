//! How times, numbers and names are said and ordered for people.

use std::cmp::Ordering;

use mesh::ports::machine::Instant;

/// Time since `at`, as in `2 h ago`.
pub fn ago(at: Instant, now: Instant) -> String {
    let seconds = now.since(at) / 1000;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A duration in one unit, as in `2 h`, a short one to a tenth of a second.
pub fn span(milliseconds: u64) -> String {
    if milliseconds < 10_000 && !milliseconds.is_multiple_of(1_000) {
        let tenths = milliseconds.div_ceil(100);
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    match milliseconds.div_ceil(1_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// `1 message`, `2 messages`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The order in which people count: `worker-2` before `worker-10`.
pub fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let digits = |text: &str| text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (of_left, of_right) = (digits(left), digits(right));
        let order = if of_left > 0 && of_right > 0 {
            let (number, other_number) =
                (left[..of_left].trim_start_matches('0'), right[..of_right].trim_start_matches('0'));
            (left, right) = (&left[of_left..], &right[of_right..]);
            number.len().cmp(&other_number.len()).then_with(|| number.cmp(other_number))
        } else {
            let (mut letters, mut other_letters) = (left.chars(), right.chars());
            let order = match (letters.next(), other_letters.next()) {
                (None, None) => return one.cmp(other),
                (letter, other_letter) => letter.cmp(&other_letter),
            };
            (left, right) = (letters.as_str(), other_letters.as_str());
            order
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_one_unit() {
        for (milliseconds, expected) in [
            (48, "0.1 s"),
            (2_026, "2.1 s"),
            (2_000, "2 s"),
            (30_400, "31 s"),
            (119_000, "119 s"),
            (120_000, "2 min"),
            (3_600_000, "60 min"),
            (7_200_000, "2 h"),
            (604_800_000, "7 days"),
        ] {
            assert_eq!(span(milliseconds), expected);
        }
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        for (seconds, expected) in
            [(0, "just now"), (59, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")]
        {
            assert_eq!(ago(Instant(0), Instant(seconds * 1000)), expected);
        }
        assert_eq!(ago(Instant(9000), Instant(0)), "just now", "a clock that went backwards");
    }

    #[test]
    fn names_are_in_the_order_in_which_people_count() {
        let mut names = [
            "worker-10",
            "worker-2",
            "worker",
            "worker-02",
            "alice",
            "worker-2b",
            "b10",
            "b9",
            "z999999999999999999999",
        ];
        names.sort_by(|one, other| natural_order(one, other));
        assert_eq!(
            names,
            [
                "alice",
                "b9",
                "b10",
                "worker",
                "worker-02",
                "worker-2",
                "worker-2b",
                "worker-10",
                "z999999999999999999999"
            ]
        );
    }
}
