//! The HTTP server of the scripted model.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::SystemTime;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, Request, Response, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::dialect::Dialect;
use super::heard::Heard;
use super::script::{ModelAnswer, Script};
use crate::waiting::{now, wait_for, wait_or_show};

/// A scripted model. Its server stops when it is dropped.
pub struct Model {
    /// The port it listens on.
    pub port: u16,
    /// Closed, it reads no request.
    pub ears: Arc<Ears>,
    play: Arc<Mutex<Play>>,
    _runtime: Runtime,
}

/// Whether a model reads what it is sent. A script can close them too.
#[derive(Default)]
pub struct Ears {
    are_closed: AtomicBool,
    unheard: AtomicUsize,
}

impl Ears {
    /// From now on connections are taken and no request is read or answered.
    pub fn close(&self) {
        self.are_closed.store(true, Ordering::SeqCst);
    }

    /// From now on requests are read.
    pub fn open(&self) {
        self.are_closed.store(false, Ordering::SeqCst);
    }

    /// Waits until a request has come that is not read.
    pub fn wait_for_unheard(&self) {
        wait_for("a request has come that is not read", || (self.unheard.load(Ordering::SeqCst) > 0).then_some(()));
    }
}

/// State shared by the server's requests. A std mutex: nothing is awaited while it is held.
struct Play {
    /// The script. A request marks the line it uses.
    script: Script,
    /// Every request so far, side calls included.
    heard: Vec<Heard>,
    /// What it does instead of the script. A test sets it.
    behaviour: Option<Behaviour>,
}

/// What a model does with every request of an agent, instead of following its script.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// It answers the same each time.
    Answers(ModelAnswer),
    /// It refuses with this HTTP status.
    Refuses(u16),
    /// It begins to stream these words, and the connection breaks off there.
    BreaksOff(String),
}

impl Model {
    /// Starts one on a free port of loopback.
    pub fn start(script: Script) -> Model {
        Model::with_ears(script, Arc::default())
    }

    /// The same with ears that others close.
    pub fn with_ears(script: Script, ears: Arc<Ears>) -> Model {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let play = Arc::new(Mutex::new(Play { script, heard: Vec::new(), behaviour: None }));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("loopback has a port");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let router = axum::Router::new().fallback(reply).with_state((Arc::clone(&play), Arc::clone(&ears)));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Model { port, ears, play, _runtime: runtime }
    }

    /// From now on it behaves like this; with none, it follows its script.
    pub fn behaves(&self, behaviour: Option<Behaviour>) {
        lock(&self.play).behaviour = behaviour;
    }

    /// The agent's requests so far in order, without side calls.
    pub fn heard(&self) -> Vec<Heard> {
        lock(&self.play).heard.iter().filter(|heard| heard.is_main()).cloned().collect()
    }

    /// Takes the agent's requests so far, which a long run cannot keep.
    pub fn take_heard(&self) -> Vec<Heard> {
        let heard = std::mem::take(&mut lock(&self.play).heard);
        heard.into_iter().filter(Heard::is_main).collect()
    }

    /// Waits for a request with this text in its new part and returns it.
    pub fn wait_for_news(&self, text: &str) -> Heard {
        let look = || self.heard().into_iter().find(|heard| heard.news().contains(text));
        wait_or_show(&format!("the model is told {text:?}; it was told:"), look, || self.told())
    }

    /// Waits until every line of the script was used.
    pub fn wait_until_spoken(&self) {
        let unspoken = || lock(&self.play).script.unspoken();
        let look = || unspoken().is_empty().then_some(());
        wait_or_show("every cue has come", look, || format!("missing: {:?}; told:\n{}", unspoken(), self.told()))
    }

    /// The number of requests in which a text was new.
    pub fn times_told(&self, text: &str) -> usize {
        self.heard().iter().filter(|heard| heard.news().contains(text)).count()
    }

    /// Checks that a message is in the conversation once. The number of requests in which it is new can be higher:
    /// what a user types meanwhile cuts a request off, and the next one has both.
    ///
    /// # Panics
    /// If the message is in no request, or several times in one.
    #[track_caller]
    pub fn has_message_once(&self, id: &str) {
        let [plain, escaped] = [format!("id=\"{id}\""), format!("id=\\\"{id}\\\"")];
        let times = |text: String| text.matches(&plain).count() + text.matches(&escaped).count();
        let told: Vec<usize> = self.heard().iter().map(|heard| times(heard.everything())).collect();
        assert_eq!(told.iter().max(), Some(&1), "shown once: {told:?}");
    }

    /// Checks that the mesh's protocol is once in each request of a conversation, after the registration too, whose
    /// answer could repeat it.
    ///
    /// # Panics
    /// If it is not.
    pub fn reads_the_protocol_once(&self, prompt: &str) {
        let asked: Vec<String> = self.heard().iter().map(Heard::everything).collect();
        let asked: Vec<&String> = asked.iter().filter(|text| text.contains(prompt)).collect();
        assert!(asked.len() > 1, "{asked:?}");
        for text in asked {
            assert_eq!(text.matches("Text inside an envelope was written by another agent").count(), 1, "{text}");
        }
    }

    /// Whether its last answer was text, which ends a turn.
    pub fn has_last_word(&self) -> bool {
        self.heard().last().is_some_and(|heard| matches!(heard.answer, ModelAnswer::Say(_)))
    }

    /// All new texts so far, for a panic message.
    fn told(&self) -> String {
        self.heard().iter().map(Heard::news).collect::<Vec<_>>().join("\n────\n")
    }
}

async fn reply(State((play, ears)): State<(Arc<Mutex<Play>>, Arc<Ears>)>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return json_answer(&json!({"data": []}));
    }
    if ears.are_closed.load(Ordering::SeqCst) {
        ears.unheard.fetch_add(1, Ordering::SeqCst);
        return std::future::pending().await;
    }
    let Ok(bytes) = body.collect().await else { return json_answer(&json!({})) };
    let body: Value = serde_json::from_slice(&bytes.to_bytes()).unwrap_or(Value::Null);
    if is_token_count(&parts.uri) {
        return json_answer(&json!({"input_tokens": 1, "totalTokens": 1}));
    }
    let at = now();
    let dialect = Dialect::of(parts.uri.path());
    let behaviour = lock(&play).behaviour.clone().filter(|_| dialect.is_main(&body));
    let (answer, number) = note(&play, at, dialect, body.clone());
    if let Some(Behaviour::Refuses(status)) = behaviour {
        let text = json!({"type": "error", "error": {"type": "api_error", "code": status, "message": "scripted"}});
        let mut response = json_answer(&text);
        *response.status_mut() = axum::http::StatusCode::from_u16(status).expect("a status");
        return response;
    }
    let (kind, text) = dialect.reply(&body, &answer, number);
    if let Some(Behaviour::BreaksOff(words)) = behaviour {
        return with_body(kind, Body::new(Broken(Some(Bytes::from(opening(&text, &words))))));
    }
    match answer {
        ModelAnswer::Say(_) | ModelAnswer::Call { .. } => respond(kind, text),
        ModelAnswer::Talk(words) => respond_for_ever(kind, opening(&text, &words)),
    }
}

/// A stream's events up to `words`, without the closing ones.
fn opening(events: &str, words: &str) -> String {
    let end = events.split_inclusive("\n\n").scan(0, |end, event| {
        *end += event.len();
        Some((*end, event))
    });
    let said = end.into_iter().find(|(_, event)| event.contains(words)).map(|(end, _)| end);
    events[..said.expect("the words are among the events")].to_owned()
}

fn note(play: &Mutex<Play>, at: SystemTime, dialect: Dialect, body: Value) -> (ModelAnswer, usize) {
    let mut play = lock(play);
    let (answer, scripted) = match play.behaviour.clone().filter(|_| dialect.is_main(&body)) {
        Some(Behaviour::Answers(answer)) => (answer, true),
        Some(Behaviour::BreaksOff(words)) => (ModelAnswer::Say(words), true),
        Some(Behaviour::Refuses(_)) => (ModelAnswer::Say(String::new()), true),
        None => play.script.answer(dialect, &body),
    };
    play.heard.push(Heard { at, dialect, body, answer: answer.clone(), scripted });
    (answer, play.heard.len())
}

fn is_token_count(uri: &Uri) -> bool {
    uri.path().ends_with("/count_tokens") || uri.path().ends_with(":countTokens")
}

fn json_answer(value: &Value) -> Response<Body> {
    respond("application/json", value.to_string())
}

fn respond(kind: &'static str, body: String) -> Response<Body> {
    with_body(kind, Body::from(body))
}

/// A response that begins with `begins` and does not end before its client disconnects.
fn respond_for_ever(kind: &'static str, begins: String) -> Response<Body> {
    with_body(kind, Body::new(Endless(Some(Bytes::from(begins)))))
}

/// A body that begins and does not end. It is dropped when its client disconnects.
struct Endless(Option<Bytes>);

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut().0.take() {
            Some(begins) => Poll::Ready(Some(Ok(Frame::data(begins)))),
            // No waker is registered: nothing more will come.
            None => Poll::Pending,
        }
    }
}

/// A body that begins, and then the connection breaks off.
struct Broken(Option<Bytes>);

impl hyper::body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(match self.get_mut().0.take() {
            Some(begins) => Ok(Frame::data(begins)),
            None => Err(std::io::ErrorKind::ConnectionReset.into()),
        }))
    }
}

fn with_body(kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// Ignores poisoning: a test that panicked elsewhere must still show the requests.
fn lock(play: &Mutex<Play>) -> MutexGuard<'_, Play> {
    play.lock().unwrap_or_else(PoisonError::into_inner)
}
