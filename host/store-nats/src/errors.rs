//! Converts a server's refusals into the store's own errors. The client library has an error type for each request; all
//! become the failed operation, a [`ServerTrouble`] and the server's reason.

use std::error::Error;
use std::io::{self, ErrorKind};

use async_nats::jetstream::consumer::{StreamError, StreamErrorKind};
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, PublishError, PublishErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{
    ConsumerError, ConsumerErrorKind, LastRawMessageErrorKind, PurgeError, PurgeErrorKind, RawMessageError,
};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind};
use store::{Key, ServerTrouble, StoreError, reasons};
use tokio::time::error::Elapsed;

/// How often a repeatable request is sent: a cluster that has lost its leader does not answer until it has elected
/// another.
const TRIES: u32 = 4;

/// Sends a request until there is an answer. Only for requests that may safely be repeated.
pub(crate) async fn again_if_late<T, E: Error + 'static, Asked: Future<Output = Result<T, E>>>(
    mut ask: impl FnMut() -> Asked,
) -> Result<T, E> {
    let mut attempt = 1;
    loop {
        match ask().await {
            Err(error) if attempt < TRIES && trouble_of(&error) == ServerTrouble::TimedOut => attempt += 1,
            outcome => return outcome,
        }
    }
}

/// The requested message; none if the stream has no such message.
pub(crate) fn found(
    what: &Key,
    asked: Result<StreamMessage, RawMessageError>,
) -> Result<Option<StreamMessage>, StoreError> {
    match asked {
        Ok(message) => Ok(Some(message)),
        Err(error) => match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => Ok(None),
            _ => Err(server_error("could not read", what)(error.into())),
        },
    }
}

/// Wraps an error of the client library, or a text from the server.
pub(crate) fn server_error(
    doing: &'static str,
    what: impl ToString,
) -> impl FnOnce(Box<dyn Error + Send + Sync>) -> StoreError {
    let what = what.to_string();
    move |error| StoreError::Server {
        doing,
        what,
        trouble: trouble_of(error.as_ref()),
        source: reasons(error.as_ref()).into(),
    }
}

/// Whether a message was refused because another one was faster.
///
/// The server has two codes for that. With 10071 it names the last sequence that it found. With 10164 it cannot: in a
/// cluster the faster message is still on its way to the other servers. The library gives only the first a kind.
pub(crate) fn is_lost_race(error: &PublishError) -> bool {
    let code = || error.source().and_then(|source| source.downcast_ref::<jetstream::Error>()).map(|e| e.error_code());
    error.kind() == PublishErrorKind::WrongLastSequence || code().is_some_and(is_wrong_last_sequence)
}

/// Whether a request failed because there is no such stream.
pub(crate) fn is_no_stream(error: &(dyn Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(cause) = at {
        if cause.downcast_ref::<jetstream::Error>().is_some_and(|e| e.error_code() == ErrorCode::STREAM_NOT_FOUND) {
            return true;
        }
        at = cause.source();
    }
    false
}

fn is_wrong_last_sequence(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::STREAM_WRONG_LAST_SEQUENCE | ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

/// What is wrong, by the outermost cause whose type tells, else by the text of all causes.
fn trouble_of(error: &(dyn Error + 'static)) -> ServerTrouble {
    let mut at = Some(error);
    while let Some(cause) = at {
        if let Some(trouble) = by_type(cause) {
            return trouble;
        }
        at = cause.source();
    }
    by_words(error).unwrap_or(ServerTrouble::Other)
}

/// The trouble that an error's type tells. None if its kind is general, so that its cause has to tell.
fn by_type(error: &(dyn Error + 'static)) -> Option<ServerTrouble> {
    if let Some(StoreError::Server { trouble, .. }) = error.downcast_ref() {
        return Some(*trouble);
    }
    if let Some(error) = error.downcast_ref::<jetstream::Error>() {
        return by_code(error.error_code());
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return by_io(error);
    }
    if error.is::<Elapsed>() {
        return Some(ServerTrouble::TimedOut);
    }
    if let Some(error) = error.downcast_ref::<ConnectError>() {
        return match error.kind() {
            ConnectErrorKind::Dns => Some(ServerTrouble::OutOfReach),
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => Some(ServerTrouble::Denied),
            ConnectErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            ConnectErrorKind::Tls => Some(ServerTrouble::TlsFailed),
            ConnectErrorKind::ServerParse | ConnectErrorKind::Io | ConnectErrorKind::MaxReconnects => None,
        };
    }
    if let Some(error) = error.downcast_ref::<PublishError>() {
        return match error.kind() {
            PublishErrorKind::StreamNotFound => Some(ServerTrouble::NoLeader),
            PublishErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            PublishErrorKind::BrokenPipe if error.source().is_none() => Some(ServerTrouble::OutOfReach),
            PublishErrorKind::MaxPayloadExceeded => Some(ServerTrouble::TooLong),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<RequestError>() {
        return match error.kind() {
            RequestErrorKind::NoResponders => Some(ServerTrouble::Unsupported),
            RequestErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            RequestErrorKind::InvalidSubject | RequestErrorKind::Other => None,
        };
    }
    if let Some(error) = error.downcast_ref::<async_nats::RequestError>() {
        return match error.kind() {
            async_nats::RequestErrorKind::NoResponders => Some(ServerTrouble::NoLeader),
            async_nats::RequestErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            async_nats::RequestErrorKind::MaxPayloadExceeded => Some(ServerTrouble::TooLong),
            async_nats::RequestErrorKind::InvalidSubject | async_nats::RequestErrorKind::Other => None,
        };
    }
    if let Some(error) = error.downcast_ref::<CreateStreamError>() {
        return match error.kind() {
            CreateStreamErrorKind::JetStreamUnavailable => Some(ServerTrouble::NoLeader),
            CreateStreamErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            CreateStreamErrorKind::JetStream(error) => by_code(error.error_code()),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<RawMessageError>() {
        return match error.kind() {
            LastRawMessageErrorKind::JetStream(error) => by_code(error.error_code()),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<PurgeError>() {
        return match error.kind() {
            PurgeErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            PurgeErrorKind::JetStream(error) => by_code(error.error_code()),
            PurgeErrorKind::Request => None,
        };
    }
    if let Some(error) = error.downcast_ref::<ConsumerError>() {
        return match error.kind() {
            ConsumerErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
            ConsumerErrorKind::JetStream(error) => by_code(error.error_code()),
            _ => None,
        };
    }
    let error = error.downcast_ref::<StreamError>()?;
    (error.kind() == StreamErrorKind::TimedOut).then_some(ServerTrouble::TimedOut)
}

/// The trouble of a server code. None for the general ones, of which only the text tells more, such as 10005 (the
/// placement failed) and 10077 (the stream did not store a message).
fn by_code(code: ErrorCode) -> Option<ServerTrouble> {
    match code {
        ErrorCode::CLUSTER_NOT_AVAILABLE
        | ErrorCode::CLUSTER_NOT_LEADER
        | ErrorCode::STREAM_OFFLINE
        | ErrorCode::CONSUMER_OFFLINE
        // An earlier try of the same message, which the servers have not agreed on yet.
        | ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT
        | ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY => Some(ServerTrouble::NoLeader),
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            Some(ServerTrouble::Unsupported)
        }
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MAXIMUM_STREAMS_LIMIT => Some(ServerTrouble::Full),
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => Some(ServerTrouble::TooFewServers),
        ErrorCode::STREAM_SUBJECT_OVERLAP => Some(ServerTrouble::NotOurs),
        ErrorCode::STREAM_SEALED => Some(ServerTrouble::Unusable),
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => Some(ServerTrouble::TooLong),
        _ => None,
    }
}

/// The trouble of a connection error.
fn by_io(error: &io::Error) -> Option<ServerTrouble> {
    // A TLS handshake that fails ends with whatever kind its last read had.
    if by_words(error) == Some(ServerTrouble::TlsFailed) {
        return Some(ServerTrouble::TlsFailed);
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => Some(ServerTrouble::NothingListens),
        ErrorKind::TimedOut => Some(ServerTrouble::TimedOut),
        ErrorKind::NotConnected
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable => Some(ServerTrouble::OutOfReach),
        ErrorKind::InvalidData => Some(ServerTrouble::TlsFailed),
        ErrorKind::PermissionDenied => Some(ServerTrouble::Denied),
        ErrorKind::QuotaExceeded => Some(ServerTrouble::Full),
        ErrorKind::Unsupported => Some(ServerTrouble::Unsupported),
        _ => None,
    }
}

/// The trouble that an error's text tells. The only place that looks at text, for errors without a type: rustls and the
/// server's `-ERR` lines reach us as strings, a cluster reports a node that is not the leader as text, and the codes
/// 10005 and 10077 stand for several reasons. The first matching row counts.
fn by_words(error: &dyn Error) -> Option<ServerTrouble> {
    const WORDS: &[(&str, ServerTrouble)] = &[
        ("certificate", ServerTrouble::TlsFailed),
        ("tls", ServerTrouble::TlsFailed),
        // rustls, if the server does not speak TLS.
        ("corrupt message", ServerTrouble::TlsFailed),
        ("not enabled", ServerTrouble::Unsupported),
        ("resource does not exist", ServerTrouble::Unsupported),
        ("timed out", ServerTrouble::TimedOut),
        ("deadline has elapsed", ServerTrouble::TimedOut),
        ("no responders", ServerTrouble::NoLeader),
        ("jetstream unavailable", ServerTrouble::NoLeader),
        ("temporarily unavailable", ServerTrouble::NoLeader),
        ("can not handle request", ServerTrouble::NoLeader),
        ("is offline", ServerTrouble::NoLeader),
        ("not leader", ServerTrouble::NoLeader),
        ("no stream found", ServerTrouble::NoLeader),
        ("broken pipe", ServerTrouble::OutOfReach),
        ("dns error", ServerTrouble::OutOfReach),
        ("connection closed", ServerTrouble::OutOfReach),
        ("permissions violation", ServerTrouble::Denied),
        ("authorization", ServerTrouble::Denied),
        ("signing nonce", ServerTrouble::Denied),
        ("maximum messages", ServerTrouble::Full),
        ("maximum number", ServerTrouble::Full),
        ("maximum bytes", ServerTrouble::Full),
        ("insufficient", ServerTrouble::Full),
        ("resource limits", ServerTrouble::Full),
        ("subjects overlap", ServerTrouble::NotOurs),
        ("sealed stream", ServerTrouble::Unusable),
        ("max payload", ServerTrouble::TooLong),
        ("message size exceeds", ServerTrouble::TooLong),
        ("replicas", ServerTrouble::TooFewServers),
    ];
    let text = reasons(error).to_ascii_lowercase();
    WORDS.iter().find(|(words, _)| text.contains(words)).map(|(_, trouble)| *trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as the server sends it.
    fn of_server(code: u64, description: &str) -> jetstream::Error {
        let text = serde_json::json!({ "code": 400, "err_code": code, "description": description });
        serde_json::from_value(text).expect("an error")
    }

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
            let error = server_error("could not read", "RELAY_MESSAGES")(format!("jetstream error: {said}").into());
            assert!(error.is_out_of_reach(), "{said}: {error:?}");
        }
    }

    #[test]
    fn what_a_server_refuses_does_not_pass_by_itself() {
        for said in ["maximum messages exceeded", "stream name already in use", "Permissions Violation for Publish"] {
            let error = server_error("could not read", "RELAY_MESSAGES")(format!("jetstream error: {said}").into());
            assert!(!error.is_out_of_reach(), "{said}: {error:?}");
        }
    }

    #[test]
    fn a_code_of_the_server_says_what_is_wrong_whatever_its_text_is() {
        for (code, description, expected) in [
            (10008, "", ServerTrouble::NoLeader),
            (10163, "", ServerTrouble::NoLeader),
            (10158, "duplicate message id is in process", ServerTrouble::NoLeader),
            (10039, "", ServerTrouble::Unsupported),
            (10047, "", ServerTrouble::Full),
            (10065, "the tls stream", ServerTrouble::NotOurs),
            (10109, "", ServerTrouble::Unusable),
            (10054, "", ServerTrouble::TooLong),
            (10074, "", ServerTrouble::TooFewServers),
            // Codes that stand for several reasons.
            (10077, "maximum bytes exceeded", ServerTrouble::Full),
            (10005, "no suitable peers for placement, insufficient storage", ServerTrouble::Full),
            (10005, "no suitable peers for placement", ServerTrouble::Other),
            (10058, "stream name already in use", ServerTrouble::Other),
        ] {
            let server = of_server(code, description);
            let published = PublishError::with_source(PublishErrorKind::Other, server.clone());
            assert_eq!(trouble_of(&published), expected, "{code} {description}");
            let made = CreateStreamError::new(CreateStreamErrorKind::JetStream(server));
            assert_eq!(trouble_of(&made), expected, "{code} {description}");
        }
    }

    #[test]
    fn a_connection_that_does_not_come_about_says_why() {
        let check = |error: ConnectError, expected: ServerTrouble| assert_eq!(trouble_of(&error), expected, "{error}");
        let io = |kind: ErrorKind, text: &str| {
            ConnectError::with_source(ConnectErrorKind::Io, io::Error::new(kind, text.to_owned()))
        };
        check(ConnectError::new(ConnectErrorKind::AuthorizationViolation), ServerTrouble::Denied);
        check(ConnectError::new(ConnectErrorKind::Dns), ServerTrouble::OutOfReach);
        check(io(ErrorKind::ConnectionRefused, "refused"), ServerTrouble::NothingListens);
        check(io(ErrorKind::UnexpectedEof, "tls handshake eof"), ServerTrouble::TlsFailed);
        check(io(ErrorKind::UnexpectedEof, "eof"), ServerTrouble::OutOfReach);
        check(io(ErrorKind::Other, "Secure Connection - TLS Required"), ServerTrouble::TlsFailed);
        // For an address this means that it is invalid.
        check(io(ErrorKind::InvalidInput, "no address"), ServerTrouble::Other);
    }

    #[test]
    fn a_lost_race_is_one_by_either_code() {
        for (kind, code, lost) in [
            (PublishErrorKind::WrongLastSequence, 10071, true),
            (PublishErrorKind::Other, 10164, true),
            (PublishErrorKind::Other, 10071, true),
            (PublishErrorKind::Other, 10077, false),
            (PublishErrorKind::WrongLastMessageId, 10070, false),
        ] {
            let error = PublishError::with_source(kind, of_server(code, "wrong last sequence"));
            assert_eq!(is_lost_race(&error), lost, "{kind} {code}");
        }
        assert!(!is_lost_race(&PublishError::new(PublishErrorKind::TimedOut)));
    }
}
