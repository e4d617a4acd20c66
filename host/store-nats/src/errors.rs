//! What a server refuses, as the store's own errors. What the client library tells in types of its own
//! for each request comes down to one thing here: what was being done, and the server's reason.

use std::error::Error;
use std::io::{self, ErrorKind};

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageError, RawMessageErrorKind};

use store::{Key, StoreError, reasons};

/// How often something is asked that may be asked again: a cluster that has lost its leader answers
/// nobody until it has another.
const TRIES: u32 = 4;

/// Asks until there is an answer, where asking twice does no harm.
pub(crate) async fn again_if_late<T, E: Error + 'static, Asked: Future<Output = Result<T, E>>>(
    mut ask: impl FnMut() -> Asked,
) -> Result<T, E> {
    let mut attempt = 1;
    loop {
        match ask().await {
            Err(error) if attempt < TRIES && kind_of(&error) == ErrorKind::TimedOut => attempt += 1,
            outcome => return outcome,
        }
    }
}

/// The message that was asked for, where there is one.
pub(crate) fn found(
    what: &Key,
    asked: Result<StreamMessage, RawMessageError>,
) -> Result<Option<StreamMessage>, StoreError> {
    match asked {
        Ok(message) => Ok(Some(message)),
        Err(error) => match error.kind() {
            RawMessageErrorKind::NoMessageFound => Ok(None),
            _ => Err(trouble("could not read", what)(error.into())),
        },
    }
}

/// Wraps whatever went wrong while the server was asked.
pub(crate) fn trouble(
    doing: &'static str,
    what: impl ToString,
) -> impl FnOnce(Box<dyn Error + Send + Sync>) -> StoreError {
    let what = what.to_string();
    move |error| StoreError::Server {
        doing,
        what,
        source: io::Error::new(kind_of(error.as_ref()), reasons(error.as_ref())),
    }
}

/// What sort of trouble it is, as far as callers tell sorts apart.
fn kind_of(error: &(dyn Error + 'static)) -> ErrorKind {
    let mut at = Some(error);
    while let Some(error) = at {
        let text = error.to_string().to_ascii_lowercase();
        let has = |part: &str| text.contains(part);
        // A certificate that is not trusted, or one side that speaks TLS and the other that does not.
        if has("certificate") || has("tls") || has("corrupt message") {
            return ErrorKind::InvalidData;
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return match io.kind() {
                // That is what we say of streams ourselves; of an address it means that it is none.
                ErrorKind::InvalidInput => ErrorKind::Other,
                kind => kind,
            };
        }
        if has("not enabled") || has("resource does not exist") {
            return ErrorKind::Unsupported;
        }
        if has("timed out") || has("deadline has elapsed") {
            return ErrorKind::TimedOut;
        }
        // A cluster that has lost its majority or is electing a leader, or a leaf node that has lost its hub, has
        // nobody who answers for a stream, or who says so.
        if has("no responders")
            || has("jetstream unavailable")
            || has("temporarily unavailable")
            || has("can not handle request")
            || has("is offline")
            || has("not leader")
            || has("no stream found")
            || has("broken pipe")
            || has("dns error")
            || has("connection closed")
        {
            return ErrorKind::NotConnected;
        }
        if has("permissions violation") || has("authorization") || has("signing nonce") {
            return ErrorKind::PermissionDenied;
        }
        if has("maximum messages")
            || has("maximum number")
            || has("maximum bytes")
            || has("insufficient")
            || has("resource limits")
        {
            return ErrorKind::QuotaExceeded;
        }
        if has("subjects overlap") {
            return ErrorKind::AddrInUse;
        }
        if has("sealed stream") {
            return ErrorKind::InvalidInput;
        }
        if has("max payload") || has("message size exceeds") {
            return ErrorKind::FileTooLarge;
        }
        at = error.source();
    }
    ErrorKind::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_while_nobody_leads_may_pass() {
        for said in [
            "JetStream system temporarily unavailable (10008)",
            "JetStream cluster can not handle request (10009)",
            "stream is offline (10118)",
            "expected last sequence per subject temporarily unavailable",
            "raft: not leader",
            "no responders",
            "request timed out",
        ] {
            let error = trouble("could not read", "RELAY_MESSAGES")(format!("jetstream error: {said}").into());
            assert!(error.is_out_of_reach(), "{said}: {error:?}");
        }
    }

    #[test]
    fn what_a_server_refuses_does_not_pass_by_itself() {
        for said in ["maximum messages exceeded", "stream name already in use", "Permissions Violation for Publish"] {
            let error = trouble("could not read", "RELAY_MESSAGES")(format!("jetstream error: {said}").into());
            assert!(!error.is_out_of_reach(), "{said}: {error:?}");
        }
    }
}
