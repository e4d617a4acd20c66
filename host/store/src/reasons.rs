//! The causes of an error, as text for users.

use std::error::Error;

/// The causes of an error, outermost first, without those that only repeat an earlier one.
pub fn causes(error: &dyn Error) -> Vec<String> {
    let mut said = error.to_string();
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !said.contains(&words) {
            said.push_str(&words);
            causes.push(words);
        }
        next = cause.source();
    }
    causes
}

/// An error and its causes as one clause, each cause once.
pub fn reasons(error: &dyn Error) -> String {
    std::iter::once(error.to_string()).chain(causes(error)).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerTrouble, StoreError};

    #[test]
    fn a_cause_is_said_once() {
        let server =
            |reason: &str| StoreError::server("could not append to", "inbox", ServerTrouble::Other, reason.to_owned());
        assert_eq!(reasons(&server("the disk is full")), "could not append to inbox: the disk is full");
        assert_eq!(reasons(&server("append to inbox")), "could not append to inbox");
        assert_eq!(causes(&server("the disk is full")), ["the disk is full"]);
    }
}
