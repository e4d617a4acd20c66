//! A transport that tells the mesh what left: mail counts as fetched once the answer that carries it
//! has been sent, and is given back when it has not.

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta, ProtocolVersion,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;

use crate::connection::{Link, Shipment};
use crate::keeper::{Fate, Keeper};

/// Any transport, with a watch on what goes out.
pub(crate) struct Confirming<T> {
    inner: T,
    link: Link,
    keeper: Keeper,
    /// Whether the client has said which era it speaks. Until then notifications and answers are
    /// passed over, for rmcp would end the connection on them.
    opened: bool,
}

impl<T> Confirming<T> {
    /// Watches a transport on behalf of a connection.
    pub(crate) fn new(inner: T, link: Link, keeper: Keeper) -> Confirming<T> {
        Confirming { inner, link, keeper, opened: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Confirming<T> {
    type Error = T::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let shipment = answered(&item).and_then(|id| self.link.ledger.ship(id));
        let (item, mail) = match shipment {
            None => (item, Mail::None),
            Some(Shipment { carried, reply: None }) => (item, Mail::Here(carried)),
            Some(Shipment { carried, reply: Some(reply) }) => match reply.carry(carried) {
                Ok(()) => (item, Mail::InReply(reply)),
                Err(carried) => {
                    self.keeper.settle_soon(carried, Fate::Lost);
                    (unheard(&item), Mail::None)
                }
            },
        };
        let keeper = self.keeper.clone();
        let sending = self.inner.send(item);
        async move {
            let outcome = sending.await;
            match (mail, &outcome) {
                (Mail::None, _) | (Mail::InReply(_), Ok(())) => {}
                (Mail::Here(carried), Ok(())) => keeper.settle(carried, Fate::Sent).await,
                (Mail::Here(carried), Err(_)) => keeper.settle(carried, Fate::Lost).await,
                (Mail::InReply(reply), Err(_)) => {
                    if let Some(carried) = reply.withdraw() {
                        keeper.settle(carried, Fate::Lost).await;
                    }
                }
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(mut message) = self.inner.receive().await else {
                self.link.closing.cancel();
                return None;
            };
            match &mut message {
                ClientJsonRpcMessage::Request(request) => {
                    self.opened |= opens(&request.request);
                    request.request.extensions_mut().insert(self.link.clone());
                    if matches!(request.request, ClientRequest::CallToolRequest(_)) {
                        self.link.ledger.began(request.id.clone());
                    }
                }
                ClientJsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.link.ledger.cancelled(id);
                    }
                    notification.notification.extensions_mut().insert(self.link.clone());
                }
                ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
            }
            if self.opened || matches!(message, ClientJsonRpcMessage::Request(_)) {
                return Some(message);
            }
            tracing::debug!("a message before the first request is passed over");
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.link.closing.cancel();
        self.link.ledger.close();
        self.inner.close().await
    }
}

/// Where the mail of an answer is while it is being sent.
enum Mail {
    /// It has none.
    None,
    /// With us: the answer is out when the transport says so.
    Here(crate::keeper::Carried),
    /// With an HTTP response, which knows better than this transport when it is out.
    InReply(crate::http::reply::Reply),
}

/// Whether a request settles which era a client speaks: it shakes hands, or it is of the era that has
/// no handshake. Looking for that era, or asking whether we live, settles nothing.
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

/// The call that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    }
}

/// The answer to a call whose connection has gone: without the mail, which was given back.
fn unheard(message: &ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let error = ErrorData::internal_error("the connection that asked is gone, and its messages were kept", None);
    ServerJsonRpcMessage::error(error, answered(message).cloned())
}
