//! A transport that reports what was sent: mail counts as read once its answer was sent, and
//! is released if sending failed.

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, GetExtensions, GetMeta, ProtocolVersion,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;

use crate::connection::{Connection, OutgoingMail};
use crate::http::reply::Reply;
use crate::lease_tracker::{Fate, LeaseTracker, PendingLease};
use crate::tool_error::ToolError;

/// Any transport, watched for what is sent.
pub(crate) struct WatchedTransport<T> {
    inner: T,
    connection: Connection,
    leases: LeaseTracker,
    /// Whether the client has said which era of the protocol it uses. Until then notifications and
    /// responses are ignored: rmcp would end the connection on them.
    opened: bool,
}

impl<T> WatchedTransport<T> {
    pub(crate) fn new(inner: T, connection: Connection, leases: LeaseTracker) -> WatchedTransport<T> {
        WatchedTransport { inner, connection, leases, opened: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for WatchedTransport<T> {
    type Error = T::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let mail = answered(&item).and_then(|id| self.connection.ledger.take_mail(id));
        let (item, mail) = match mail {
            None => (item, MailInAnswer::None),
            Some(OutgoingMail { lease, reply: None }) => (item, MailInAnswer::WithUs(lease)),
            Some(OutgoingMail { lease, reply: Some(reply) }) => match reply.attach(lease) {
                Ok(()) => (item, MailInAnswer::WithReply(reply)),
                Err(lease) => {
                    self.leases.settle_soon(lease, Fate::Lost);
                    (without_mail(&item), MailInAnswer::None)
                }
            },
        };
        let leases = self.leases.clone();
        let sending = self.inner.send(item);
        async move {
            let outcome = sending.await;
            match (mail, &outcome) {
                (MailInAnswer::None, _) | (MailInAnswer::WithReply(_), Ok(())) => {}
                (MailInAnswer::WithUs(lease), Ok(())) => leases.settle(lease, Fate::Sent).await,
                (MailInAnswer::WithUs(lease), Err(_)) => leases.settle(lease, Fate::Lost).await,
                (MailInAnswer::WithReply(reply), Err(_)) => {
                    if let Some(lease) = reply.detach() {
                        leases.settle(lease, Fate::Lost).await;
                    }
                }
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(mut message) = self.inner.receive().await else {
                self.connection.closing.cancel();
                return None;
            };
            match &mut message {
                ClientJsonRpcMessage::Request(request) => {
                    refuse_handshake(&mut request.request);
                    self.opened |= opens(&request.request);
                    request.request.extensions_mut().insert(self.connection.clone());
                    if let ClientRequest::CallToolRequest(call) = &mut request.request {
                        self.connection.ledger.began(request.id.clone());
                        let turn = self.connection.line_up(&call.params.name);
                        call.extensions.insert(turn);
                    }
                }
                ClientJsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.connection.ledger.cancelled(id);
                    }
                    notification.notification.extensions_mut().insert(self.connection.clone());
                }
                ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
            }
            if self.opened || matches!(message, ClientJsonRpcMessage::Request(_)) {
                return Some(message);
            }
            tracing::debug!("a message before the first request is ignored");
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.connection.closing.cancel();
        self.connection.ledger.close();
        self.inner.close().await
    }
}

/// Who settles the mail of an answer that is being sent.
enum MailInAnswer {
    /// The answer has none.
    None,
    /// This transport: the answer is sent when the inner transport says so.
    WithUs(PendingLease),
    /// The HTTP response, which knows more exactly than this transport when it was flushed.
    WithReply(Reply),
}

/// A handshake in the era that has none is a method that does not exist. rmcp would take it for an older client's.
fn refuse_handshake(request: &mut ClientRequest) {
    let has_none = |era: ProtocolVersion| !era.has_initialize();
    if matches!(request, ClientRequest::InitializeRequest(_))
        && request.get_meta().protocol_version().is_some_and(has_none)
    {
        let meta = request.get_meta().clone();
        let mut custom = CustomRequest::new("initialize", None);
        custom.extensions.insert(meta);
        *request = ClientRequest::CustomRequest(custom);
    }
}

/// Whether a request tells which era a client uses: it is the handshake, or a request of the era
/// without one. Discovery and pings tell nothing.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|era| ProtocolVersion::KNOWN_VERSIONS.contains(&era))
        }
    }
}

fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    }
}

/// The answer to a call whose connection is gone: what was in it was given back. It is a tool's answer, so that a client
/// that goes on with the stream shows it to its model.
pub(crate) fn without_mail(message: &ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let Some(id) = answered(message) else { return message.clone() };
    let gone = "the connection broke off under this answer, and what was in it was given back";
    let told = ToolError::new(gone, "Call again.").into_result();
    ServerJsonRpcMessage::response(ServerResult::CallToolResult(told), id.clone())
}
