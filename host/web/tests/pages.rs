//! The page over HTTP: who gets what, and who does not.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use mesh::ports::machine::Machine;
use mesh::testing::FakeMachine;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;
use view::live::testing::{overview, thread};
use view::live::{Compose, Effect, News};
use view::{SearchHitView, ThreadMessageView, ThreadView};
use web::{Codes, Host, Pages};

/// A mesh of one conversation, which notes what it is asked to do.
#[derive(Default)]
struct Noted {
    effects: Mutex<Vec<Effect>>,
}

#[async_trait]
impl Host for Noted {
    async fn carry_out(&self, effect: Effect) -> News {
        let news = match &effect {
            Effect::Search(words) => {
                let message = thread().messages[0].message.clone();
                let excerpt = message.body.clone();
                let hit = SearchHitView { message, recipients: vec!["bob".to_owned()], excerpt, score: 1 };
                News::Found(words.clone(), vec![hit], 3)
            }
            Effect::Pause(agent) => News::Failed(format!("{agent} runs elsewhere")),
            _ => News::Done("done".to_owned()),
        };
        self.effects.lock().expect("no test panics while it holds this").push(effect);
        news
    }

    async fn message(&self, id: &str) -> Result<Option<ThreadMessageView>, String> {
        Ok(thread().messages.into_iter().find(|one| one.message.id == id))
    }

    async fn conversation(&self, name: &str, _most: usize) -> Result<Option<ThreadView>, String> {
        Ok(["01A", "01B"].contains(&name).then(thread))
    }

    async fn newest(&self) -> Result<Vec<ThreadMessageView>, String> {
        Ok(thread().messages)
    }
}

struct World {
    folder: tempfile::TempDir,
    machine: Arc<FakeMachine>,
    host: Arc<Noted>,
    pages: Pages,
    router: Router,
    stop: CancellationToken,
}

/// The secrets of a browser.
struct Browser {
    cookie: String,
    key: String,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let (machine, host) = (Arc::new(FakeMachine::default()), Arc::new(Noted::default()));
        let stop = CancellationToken::new();
        let clock = Arc::clone(&machine) as Arc<dyn Machine>;
        let pages = Pages::new(folder.path().join("page"), clock, Arc::clone(&host) as Arc<dyn Host>, stop.clone());
        let router = pages.router();
        World { folder, machine, host, pages, router, stop }
    }

    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        let Ok(response) = self.router.clone().call(request).await;
        response
    }

    fn code(&self) -> String {
        Codes::of(self.folder.path().join("page")).issue(self.machine.as_ref()).expect("a code")
    }

    async fn sign_in(&self) -> Browser {
        let body = json!({"code": self.code()});
        let response = self.ask(post("/ui/session", &body)).await;
        let cookie = response.headers()[header::SET_COOKIE].to_str().expect("text").to_owned();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/ui", "Max-Age="] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        assert!(cookie.starts_with("relay-mesh-7423="), "a server at another port has another one: {cookie}");
        let key = said(response).await.1["key"].as_str().expect("a key").to_owned();
        Browser { cookie, key }
    }

    /// The status and the JSON that a browser gets.
    async fn get(&self, browser: &Browser, path: &str) -> (StatusCode, Value) {
        said(self.ask(browser.with(get(path))).await).await
    }

    async fn act(&self, browser: &Browser, action: &Value) -> (StatusCode, Value) {
        said(self.ask(browser.with(post("/ui/data/actions", action))).await).await
    }
}

impl Browser {
    fn with(&self, mut request: Request<Body>) -> Request<Body> {
        let headers = request.headers_mut();
        headers.insert(header::COOKIE, format!("other=1; {}", self.cookie).parse().expect("a header"));
        headers.insert("x-relay-mesh-key", self.key.parse().expect("a header"));
        headers.insert("sec-fetch-site", "same-origin".parse().expect("a header"));
        request
    }
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).header(header::HOST, "127.0.0.1:7423").body(Body::empty()).expect("a request")
}

fn post(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header(header::HOST, "127.0.0.1:7423");
    request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).expect("a request")
}

async fn said(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[tokio::test]
async fn the_page_itself_is_for_everybody_tells_nothing_and_loads_nothing_from_elsewhere() {
    let world = World::new();
    for address in ["/ui", "/ui/", "/ui/threads/01A", "/ui/agents/a%2Fb", "/ui/search?words=x", "/ui/nothing/like/it"] {
        let response = world.ask(get(address)).await;
        assert_eq!(response.status(), StatusCode::OK, "{address}");
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        assert!(header("content-type").starts_with("text/html"));
        assert!(header("content-security-policy").starts_with("default-src 'self'; "), "nothing inline, nothing else");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let mut again = get(address);
        again.headers_mut().insert(header::IF_NONE_MATCH, response.headers()[header::ETAG].clone());
        assert_eq!(world.ask(again).await.status(), StatusCode::NOT_MODIFIED);
    }
    assert_eq!(world.ask(get("/ui/assets/style.css")).await.headers()[header::CONTENT_TYPE], "text/css; charset=utf-8");
    assert_eq!(world.ask(get("/ui/assets/..%2fCargo.toml")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn data_is_for_a_browser_that_has_signed_in_and_for_no_other_page_in_it() {
    let world = World::new();
    let browser = world.sign_in().await;
    let other = world.sign_in().await;
    for path in [
        "/ui/data/events",
        "/ui/data/messages/01A",
        "/ui/data/detail?tab=runs&key=1",
        "/ui/data/search?words=x",
        "/ui/data/lanes",
        "/ui/data/export?thread=01A&form=md",
        "/ui/data/actions",
        "/ui/data/nothing",
    ] {
        let mut keyless = get(path);
        keyless.headers_mut().insert(header::COOKIE, browser.cookie.parse().expect("a header"));
        let mixed = Browser { cookie: browser.cookie.clone(), key: other.key.clone() }.with(get(path));
        for request in [get(path), keyless, mixed] {
            let (status, said) = said(world.ask(request).await).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(said["hint"].as_str().expect("a hint").contains("relay-mesh ui --web"), "{said}");
        }
        for site in ["cross-site", "same-site"] {
            let mut request = browser.with(get(path));
            request.headers_mut().insert("sec-fetch-site", site.parse().expect("a header"));
            assert_eq!(world.ask(request).await.status(), StatusCode::FORBIDDEN, "{path} from {site}");
        }
    }
    // A server at another port that got the cookie from the browser has another Host.
    let mut elsewhere = browser.with(get("/ui/data/lanes"));
    elsewhere.headers_mut().insert(header::HOST, "127.0.0.1:9999".parse().expect("a header"));
    assert_eq!(world.ask(elsewhere).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.get(&browser, "/ui/data/lanes").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_browser_signs_in_by_a_code_and_out_again() {
    let world = World::new();
    let code = json!({"code": world.code()});
    assert_eq!(world.ask(post("/ui/session", &code)).await.status(), StatusCode::OK);
    let (status, said_again) = said(world.ask(post("/ui/session", &code)).await).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(said_again["error"].as_str().expect("an error").contains("shown before"), "{said_again}");
    for (request, expected) in [
        (post("/ui/session", &json!({"code": "x"})), StatusCode::UNAUTHORIZED),
        (post("/ui/session", &json!({"cod": 1})), StatusCode::BAD_REQUEST),
        (post("/ui/session", &json!({"code": "x".repeat(2_000)})), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(world.ask(request).await.status(), expected);
    }
    let browser = world.sign_in().await;
    let mut response = world.ask(browser.with(get("/ui/data/events"))).await;
    let first = response.body_mut().frame().await.expect("a frame").expect("no error").into_data().expect("data");
    assert!(first.starts_with(b"event: state\ndata: {\"now\":"), "{first:?}");
    let mut sign_out = browser.with(get("/ui/session"));
    *sign_out.method_mut() = axum::http::Method::DELETE;
    assert_eq!(world.ask(sign_out).await.status(), StatusCode::NO_CONTENT);
    let rest = response.into_body().collect().await.expect("an end").to_bytes();
    assert!(rest.is_empty(), "its open stream has ended: {rest:?}");
    assert_eq!(world.get(&browser, "/ui/data/lanes").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_stream_brings_news_and_ends_with_the_server() {
    let world = World::new();
    let browser = world.sign_in().await;
    let mut response = world.ask(browser.with(get("/ui/data/events?thread=01A"))).await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    assert_eq!(world.pages.watched().borrow().threads, ["01A"]);
    let _state = response.body_mut().frame().await;
    world.pages.tell(News::Overview(Box::new(overview())));
    let frame = response.body_mut().frame().await.expect("a frame").expect("no error").into_data().expect("data");
    let text = String::from_utf8(frame.to_vec()).expect("text");
    assert!(text.contains("event: agents\ndata: {\"counted\":true,\"groups\":[{\"title\":\"Needs you\""), "{text}");
    world.stop.cancel();
    assert!(response.into_body().collect().await.expect("an end").to_bytes().is_empty());
    assert_eq!(world.pages.watched().borrow().pages, 0);
}

#[tokio::test]
async fn what_a_page_asks_for_is_done_as_the_user() {
    let world = World::new();
    let browser = world.sign_in().await;
    for (action, expected) in [
        (json!({"send": {"to": ["bob"], "body": "hello", "thread": null}}), StatusCode::OK),
        (json!({"answer": {"ask": "1", "words": "allow"}}), StatusCode::OK),
        (json!({"wake": "bob"}), StatusCode::OK),
        (json!({"resume": "bob"}), StatusCode::OK),
        (json!({"pause": "bob"}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"send": {"to": [], "body": "hello"}}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"send": {"to": ["bob"], "body": " \n"}}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"export": "x"}), StatusCode::BAD_REQUEST),
        (json!({"wake": 1}), StatusCode::BAD_REQUEST),
    ] {
        let (status, said) = world.act(&browser, &action).await;
        assert_eq!(status, expected, "{action}: {said}");
        assert_eq!(said["done"].is_string(), expected == StatusCode::OK, "{said}");
    }
    // A form of another page can send no JSON that says so.
    let mut form = browser.with(post("/ui/data/actions", &json!({"wake": "bob"})));
    form.headers_mut().insert(header::CONTENT_TYPE, "text/plain".parse().expect("a header"));
    assert_eq!(world.ask(form).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let done = world.host.effects.lock().expect("no test panics while it holds this");
    let send = Effect::Send {
        compose: Compose { to: vec!["bob".to_owned()], ..Compose::default() },
        body: "hello".to_owned(),
    };
    assert_eq!((done.len(), &done[0]), (5, &send));
}

#[tokio::test]
async fn a_page_looks_things_up() {
    let world = World::new();
    let browser = world.sign_in().await;
    world.pages.tell(News::Overview(Box::new(overview())));
    let (_, found) = world.get(&browser, "/ui/data/search?words=which%20port").await;
    assert_eq!((found["words"].as_str(), found["found"].as_u64()), (Some("which port"), Some(3)));
    assert_eq!(found["hits"][0]["id"], "01A");
    assert_eq!(world.get(&browser, "/ui/data/search?words=%20").await.0, StatusCode::BAD_REQUEST);
    let (_, message) = world.get(&browser, "/ui/data/messages/01B").await;
    assert_eq!((message["thread"].as_str(), message["cut"].as_bool()), (Some("01A"), Some(false)));
    assert_eq!(world.get(&browser, "/ui/data/messages/zzz").await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.get(&browser, "/ui/data/lanes").await.1["messages"].as_array().expect("messages").len(), 3);
    let ask = overview().asks[0].id.clone();
    let (_, detail) = world.get(&browser, &format!("/ui/data/detail?tab=asks&key={ask}")).await;
    assert!(detail["title"].as_str().expect("a title").ends_with("asks"), "{detail}");
    assert_eq!(world.get(&browser, "/ui/data/detail?tab=asks&key=none").await.0, StatusCode::NOT_FOUND);
    for (form, kind) in [("html", "text/html"), ("md", "text/markdown"), ("json", "application/json")] {
        let response = world.ask(browser.with(get(&format!("/ui/data/export?thread=01A&form={form}")))).await;
        assert!(response.headers()[header::CONTENT_TYPE].to_str().expect("text").starts_with(kind));
        assert_eq!(
            response.headers()[header::CONTENT_DISPOSITION],
            "attachment",
            "it is never shown as a page of ours"
        );
    }
    assert_eq!(world.get(&browser, "/ui/data/export?thread=01A&form=exe").await.0, StatusCode::BAD_REQUEST);
    assert_eq!(world.get(&browser, "/ui/data/export?thread=none&form=md").await.0, StatusCode::NOT_FOUND);
}
