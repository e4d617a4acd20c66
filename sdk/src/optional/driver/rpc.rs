//! JSON-RPC between calls that may each run on a fresh instance: which answer belongs to which request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Outbox;

/// The code of an answer to a method that is not known.
const NO_SUCH_METHOD: i64 = -32_601;
/// The most requests that wait for their answers. The oldest are forgotten beyond that.
const MOST_PENDING: usize = 256;

/// The requests that were sent and not answered yet, each with what it was for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "P: Serialize + serde::de::DeserializeOwned")]
pub struct Requests<P> {
    next: u64,
    pending: BTreeMap<u64, P>,
}

impl<P> Default for Requests<P> {
    fn default() -> Requests<P> {
        Requests { next: 1, pending: BTreeMap::new() }
    }
}

/// What a frame is.
#[derive(Debug)]
pub enum Frame<P> {
    /// The answer to one of our requests.
    Response {
        /// What the request was for.
        purpose: P,
        /// What it gave, or why it failed.
        result: Result<Value, RpcError>,
    },
    /// The harness wants an answer.
    Request {
        /// The id that the answer repeats.
        id: Value,
        /// What it wants.
        method: String,
        /// With what.
        params: Value,
    },
    /// The harness says something.
    Notification {
        /// What.
        method: String,
        /// About what.
        params: Value,
    },
    /// Nothing that is known: no JSON, or the answer to no request of ours.
    Nothing,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC's code.
    pub code: i64,
    /// The harness's words.
    pub message: String,
    /// More about it.
    pub data: Value,
}

impl<P> Requests<P> {
    /// Sends a request. `purpose` comes back with its answer.
    pub fn ask(&mut self, out: &mut Outbox, method: &str, params: Value, purpose: P) {
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, purpose);
        while self.pending.len() > MOST_PENDING {
            self.pending.pop_first();
        }
        out.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// What a frame is. The answer to a request is taken once.
    pub fn read(&mut self, frame: &str) -> Frame<P> {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(frame) else { return Frame::Nothing };
        let method = fields.get("method").and_then(Value::as_str).map(str::to_owned);
        let params = fields.remove("params").unwrap_or(Value::Null);
        match (method, fields.remove("id").filter(|id| !id.is_null())) {
            (Some(method), Some(id)) => Frame::Request { id, method, params },
            (Some(method), None) => Frame::Notification { method, params },
            (None, Some(id)) => {
                let Some(purpose) = id.as_u64().and_then(|id| self.pending.remove(&id)) else { return Frame::Nothing };
                let result = match fields.remove("error") {
                    Some(error) => Err(RpcError {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error["data"].clone(),
                    }),
                    None => Ok(fields.remove("result").unwrap_or(Value::Null)),
                };
                Frame::Response { purpose, result }
            }
            (None, None) => Frame::Nothing,
        }
    }

    /// What is asked and not answered yet.
    pub fn pending(&self) -> impl Iterator<Item = &P> {
        self.pending.values()
    }
}

/// Says something that gets no answer.
pub fn notify(out: &mut Outbox, method: &str, params: &Value) {
    out.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

/// Answers a request of the harness.
pub fn answer(out: &mut Outbox, id: &Value, result: &Value) {
    out.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

/// Answers a request that this adapter does not know, so that the harness does not wait for ever.
pub fn refuse(out: &mut Outbox, id: &Value, method: &str) {
    let message = format!("relay-mesh does not answer `{method}`");
    out.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": NO_SUCH_METHOD, "message": message}}));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optional::driver::Memory as _;

    fn check(frame: &str, expected: &str) {
        let (mut requests, mut out) = (Requests::default(), Outbox::default());
        requests.ask(&mut out, "a", json!({}), "for a".to_owned());
        // As the next instance has it.
        let mut requests = Requests::<String>::remembered(Some(&requests.kept().expect("kept"))).expect("its own");
        let told = format!("{:?}", requests.read(frame));
        assert!(told.contains(expected), "{frame}: {told}");
    }

    #[test]
    fn a_frame_is_an_answer_a_request_or_a_notification() {
        check(r#"{"id":1,"result":{"x":1}}"#, r#"Response { purpose: "for a", result: Ok(Object {"x": Number(1)}) }"#);
        check(r#"{"id":1,"error":{"code":-32001,"message":"m"}}"#, "code: -32001, message: \"m\"");
        check(r#"{"id":1}"#, "result: Ok(Null)");
        check(r#"{"id":2,"result":{}}"#, "Nothing");
        check(r#"{"id":"x","result":{}}"#, "Nothing");
        check(r#"{"id":"x","method":"m","params":{}}"#, r#"Request { id: String("x"), method: "m""#);
        check(r#"{"method":"m"}"#, r#"Notification { method: "m", params: Null }"#);
        check(r#"{"id":null,"method":"m"}"#, "Notification");
        check("{", "Nothing");
        check("[]", "Nothing");
        check("", "Nothing");
    }

    #[test]
    fn an_answer_is_taken_once_and_what_waits_is_bounded() {
        let (mut requests, mut out) = (Requests::default(), Outbox::default());
        for _ in 0..1000 {
            requests.ask(&mut out, "a", json!({}), "a purpose of some length".to_owned());
        }
        assert!(requests.kept().expect("kept").len() < 16 * 1024);
        let last = r#"{"id":1000,"result":null}"#;
        assert!(matches!(requests.read(last), Frame::Response { .. }));
        assert!(matches!(requests.read(last), Frame::Nothing));
    }
}
