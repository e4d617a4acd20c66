//! Whole numbers as people type them, with errors that say what may be typed.

use std::str::FromStr;

/// A number that is not zero.
pub(crate) fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.trim().parse::<T>().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| "it must be a whole number, at least 1".to_owned())
}

/// A number from 1 to `most`.
pub(crate) fn one_to(text: &str, most: u32) -> Result<u32, String> {
    let number = at_least_one::<u32>(text).ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("it must be a whole number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_fit_is_an_error_without_the_largest_of_its_type() {
        assert_eq!(at_least_one::<u64>("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["0", "-1", "some", "", "18446744073709551616"] {
            let error = at_least_one::<u64>(wrong).expect_err("no such number");
            assert_eq!(error, "it must be a whole number, at least 1", "{wrong}");
        }
        assert_eq!(one_to("10", 10), Ok(10));
        assert_eq!(one_to("11", 10).expect_err("too many"), "it must be a whole number from 1 to 10");
    }
}
