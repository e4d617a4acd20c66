//! What answers under `/ui/`.
//!
//! The page itself is the same for everybody and tells nothing. Everything else asks for the secrets of a browser that has
//! signed in, and turns away what another page has a browser send.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use mesh::messages::LONGEST_BODY;
use serde::Deserialize;
use serde_json::json;
use view::live::{Compose, Effect, News, PageDetail, PageHit, PageMessage};
use view::{ThreadView, export};

use crate::Pages;
use crate::assets::asset;
use crate::frames::data;
use crate::refusal::Refusal;
use crate::sessions::{BadCode, SESSION_LASTS};
use crate::stream::stream;

/// The header with the key of a browser.
const KEY: HeaderName = HeaderName::from_static("x-relay-mesh-key");
/// The longest action: JSON writes a byte of text in at most six.
const LONGEST: usize = 6 * LONGEST_BODY + 64 * 1024;
/// How long a body may take.
const BODY_TAKES: Duration = Duration::from_secs(30);
/// So much of a text is in an overview, in bytes.
const SHOWN: usize = 2 * 1024;
/// The longest conversation that is exported, in messages.
const EXPORTED: usize = 10_000;

pub(crate) fn router(pages: Pages) -> Router {
    let of_browsers = Router::new()
        .route("/ui/data/events", get(events))
        .route("/ui/data/messages/{id}", get(message))
        .route("/ui/data/detail", get(detail))
        .route("/ui/data/search", get(search))
        .route("/ui/data/lanes", get(lanes))
        .route("/ui/data/export", get(exported))
        .route("/ui/data/actions", post(act))
        .route("/ui/data/{*elsewhere}", any(nothing_here))
        .layer(from_fn_with_state(pages.clone(), signed_in));
    let secret = Router::new()
        .route("/ui/session", post(sign_in).delete(sign_out))
        .merge(of_browsers)
        .layer(from_fn(of_this_page));
    Router::new()
        .route("/ui", get(page))
        .route("/ui/", get(page))
        .route("/ui/{*address}", get(page))
        .route("/ui/assets/{name}", get(file))
        .merge(secret)
        .layer(from_fn(closed))
        .with_state(pages)
}

/// Headers that let the page load nothing from elsewhere, be in no other page, and be kept nowhere.
async fn closed(request: Request, next: Next) -> Response {
    const POLICY: &str =
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What has a tag is asked for each time and sent when it has changed; nothing else is kept.
    let keeps = if headers.contains_key(header::ETAG) { "no-cache" } else { "no-store" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keeps));
    response
}

/// Turns away what another page has the browser send: browsers say where a request comes from.
async fn of_this_page(request: Request, next: Next) -> Result<Response, Refusal> {
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    match site {
        None | Some(b"same-origin" | b"none") => Ok(next.run(request).await),
        Some(_) => Err(Refusal::of(StatusCode::FORBIDDEN, "another page asked for this")),
    }
}

/// Lets a browser through that has signed in.
async fn signed_in(State(pages): State<Pages>, request: Request, next: Next) -> Result<Response, Refusal> {
    match secrets(request.headers()) {
        Some((cookie, key)) if pages.sessions.knows(&cookie, &key) => Ok(next.run(request).await),
        Some(_) | None => Err(Refusal::signed_out("this browser is not signed in")),
    }
}

/// The secrets that a request has. A server at another port of this machine has a cookie of its own.
fn secrets(headers: &HeaderMap) -> Option<(String, String)> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let cookie = pairs.find(|(of, _)| *of == name)?.1.to_owned();
    Some((cookie, headers.get(KEY)?.to_str().ok()?.to_owned()))
}

fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
    format!("relay-mesh-{port}")
}

async fn page(headers: HeaderMap) -> Response {
    asset("index.html", &headers).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
}

async fn nothing_here() -> Refusal {
    Refusal::of(StatusCode::NOT_FOUND, "nothing is here")
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    asset(&name, &headers).ok_or_else(|| Refusal::of(StatusCode::NOT_FOUND, "the page has no such file"))
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

async fn sign_in(State(pages): State<Pages>, request: Request) -> Result<Response, Refusal> {
    let headers = request.headers().clone();
    let Code { code } = read(request, 1024).await?;
    let signed_in = pages.sessions.sign_in(&code).map_err(|error| Refusal::failed("signing in", &error))?;
    let signed_in = signed_in.map_err(|why| match why {
        BadCode::Unknown => Refusal::signed_out("this code is none, or older than two minutes"),
        BadCode::Used => Refusal::signed_out(
            "this code was shown before; the browser that did so is signed out, in case that it was not yours",
        ),
    })?;
    let cookie = format!(
        "{}={}; HttpOnly; SameSite=Strict; Path=/ui; Max-Age={}",
        cookie_name(&headers),
        signed_in.cookie,
        SESSION_LASTS / 1_000
    );
    let mut response = answer(&json!({"key": signed_in.key}));
    let cookie =
        HeaderValue::from_str(&cookie).map_err(|_| Refusal::of(StatusCode::BAD_REQUEST, "the host is none"))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

async fn sign_out(State(pages): State<Pages>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    if let Some((cookie, key)) = secrets(&headers)
        && pages.sessions.knows(&cookie, &key)
    {
        pages.sessions.sign_out(&cookie).map_err(|error| Refusal::failed("signing out", &error))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Shown {
    thread: Option<String>,
}

async fn events(
    State(pages): State<Pages>,
    Query(shown): Query<Shown>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let last = headers.get("last-event-id").and_then(|id| Some(id.to_str().ok()?.to_owned()));
    let page = pages.hub.open(shown.thread.filter(|name| !name.is_empty()), last);
    let page = page.ok_or_else(|| Refusal::of(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open"))?;
    let secrets = secrets(&headers).ok_or_else(|| Refusal::signed_out("this browser is not signed in"))?;
    let body = Body::from_stream(stream(pages, page, secrets));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

async fn message(State(pages): State<Pages>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let found = pages.host.message(&id).await.map_err(Refusal::unreadable)?;
    let one = found.ok_or_else(|| Refusal::of(StatusCode::NOT_FOUND, "no message has this id"))?;
    Ok(answer(&PageMessage::of(&one.message, &one.recipients, usize::MAX)))
}

async fn conversation(pages: &Pages, name: &str) -> Result<ThreadView, Refusal> {
    let found = pages.host.conversation(name, EXPORTED).await.map_err(Refusal::unreadable)?;
    found.ok_or_else(|| Refusal::of(StatusCode::NOT_FOUND, "no conversation has this name, and no message this id"))
}

#[derive(Deserialize)]
struct Item {
    tab: String,
    key: String,
}

async fn detail(State(pages): State<Pages>, Query(item): Query<Item>) -> Result<Response, Refusal> {
    let detail = pages.hub.detail(&item.tab, &item.key);
    let detail = detail.ok_or_else(|| Refusal::of(StatusCode::NOT_FOUND, "it is not in the list any more"))?;
    Ok(answer(&PageDetail::from(&detail)))
}

#[derive(Deserialize)]
struct Words {
    words: String,
}

async fn search(State(pages): State<Pages>, Query(Words { words }): Query<Words>) -> Result<Response, Refusal> {
    if words.trim().is_empty() {
        return Err(Refusal::of(StatusCode::BAD_REQUEST, "there is no word to look for"));
    }
    match pages.host.carry_out(Effect::Search(words)).await {
        News::Found(words, hits, found) => {
            let hits: Vec<PageHit<'_>> = hits.iter().map(PageHit::from).collect();
            Ok(answer(&json!({"words": words, "found": found, "hits": hits})))
        }
        News::Failed(why) => Err(Refusal::unreadable(why)),
        other => Err(Refusal::unreadable(format!("a search came to something else: {other:?}"))),
    }
}

async fn lanes(State(pages): State<Pages>) -> Result<Response, Refusal> {
    let newest = pages.host.newest().await.map_err(Refusal::unreadable)?;
    let messages: Vec<PageMessage<'_>> =
        newest.iter().map(|one| PageMessage::of(&one.message, &one.recipients, SHOWN)).collect();
    Ok(answer(&json!({"messages": messages})))
}

#[derive(Deserialize)]
struct Exported {
    thread: String,
    form: String,
}

async fn exported(State(pages): State<Pages>, Query(asked): Query<Exported>) -> Result<Response, Refusal> {
    let thread = conversation(&pages, &asked.thread).await?;
    let (kind, text) = match asked.form.as_str() {
        "html" => ("text/html; charset=utf-8", export::html(&thread)),
        "md" => ("text/markdown; charset=utf-8", export::markdown(&thread)),
        "json" => ("application/json", serde_json::to_string(&thread).unwrap_or_default()),
        _ => return Err(Refusal::of(StatusCode::BAD_REQUEST, "the forms are html, md and json")),
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, text).into_response())
}

/// What a page may have done.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Action {
    Send { to: Vec<String>, body: String, thread: Option<String>, reply_to: Option<String> },
    Answer { ask: String, words: String },
    Wake(String),
    Pause(String),
    Resume(String),
}

async fn act(State(pages): State<Pages>, request: Request) -> Result<Response, Refusal> {
    let effect = match read(request, LONGEST).await? {
        Action::Send { to, body, .. } if to.is_empty() || body.trim().is_empty() => {
            return Err(Refusal::of(StatusCode::UNPROCESSABLE_ENTITY, "a message needs a recipient and a text"));
        }
        Action::Send { to, body, thread, reply_to } => Effect::Send { compose: Compose { to, thread, reply_to }, body },
        Action::Answer { ask, words } => Effect::Answer { ask, words },
        Action::Wake(agent) => Effect::Wake(agent),
        Action::Pause(agent) => Effect::Pause(agent),
        Action::Resume(agent) => Effect::Resume(agent),
    };
    // A browser that goes away leaves nothing half done.
    let host = Arc::clone(&pages.host);
    let done = tokio::spawn(async move { host.carry_out(effect).await }).await;
    match done {
        Ok(News::Done(sentence)) => Ok(answer(&json!({"done": sentence}))),
        Ok(News::Failed(why)) => Err(Refusal::of(StatusCode::UNPROCESSABLE_ENTITY, &why)),
        Ok(other) => Err(Refusal::unreadable(format!("an action came to something else: {other:?}"))),
        Err(error) => Err(Refusal::unreadable(format!("the action ended badly: {error}"))),
    }
}

/// The JSON of a request. One that is sent as anything else could come from a form of another page.
async fn read<Asked: for<'a> Deserialize<'a>>(request: Request, longest: usize) -> Result<Asked, Refusal> {
    let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("application/json"))
    });
    if !is_json {
        return Err(Refusal::of(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON, and said to be"));
    }
    let body = axum::body::to_bytes(request.into_body(), longest);
    let body = match tokio::time::timeout(BODY_TAKES, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Err(Refusal::of(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or broke off")),
        Err(_) => return Err(Refusal::of(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    };
    serde_json::from_slice(&body)
        .map_err(|error| Refusal::of(StatusCode::BAD_REQUEST, &format!("the body says something else: {error}")))
}

fn answer(value: &impl serde::Serialize) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], data(value)).into_response()
}
