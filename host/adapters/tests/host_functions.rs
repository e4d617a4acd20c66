//! Each host interface three times: granted, requested but not granted, never requested.

mod common;

use common::{Stage, hook};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ALL: [&str; 8] = [
    "state",
    "environment.HOSTILE_SESSION",
    "notices",
    "roots.config",
    "roots.linked",
    "origins.api",
    "endpoints.lines",
    "programs.echo",
];

async fn told(stage: &Stage, deed: &str) -> String {
    match hook(&stage.adapters(), "hostile", &format!("answer:{deed}")).await {
        Ok(reply) => reply.stdout.unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

async fn check(stage: &Stage, deed: &str, expected: &str) {
    let told = told(stage, deed).await;
    assert!(told.contains(expected), "{deed}: {told}");
}

/// The result of an interface with its grant, without it, and for a name that the manifest does not have.
async fn check_set(stage: &Stage, grant: &str, deed: &str, granted: &str, never_asked: Option<&str>) {
    stage.grant(&ALL);
    check(stage, deed, granted).await;
    let others: Vec<&str> = ALL.into_iter().filter(|other| *other != grant).collect();
    stage.grant(&others);
    let withheld = format!(
        "denied: the adapter `hostile` has no grant `{grant}`; give it by `relay-mesh plugin grant hostile {grant}`"
    );
    check(stage, deed, &withheld).await;
    stage.grant(&ALL);
    if let Some(deed) = never_asked {
        check(stage, deed, "its manifest does not ask for it").await;
    }
}

#[tokio::test]
async fn files_are_read_under_granted_roots() {
    let stage = Stage::with(&["hostile"]);
    let root = stage.home().join(".hostile");
    std::fs::create_dir(root.join("sub")).expect("a folder");
    std::fs::write(root.join("sub/notes.txt"), "noted").expect("written");
    std::fs::write(stage.home().join("private"), "private").expect("written");
    std::os::unix::fs::symlink("../private", root.join("link")).expect("a link");
    std::os::unix::fs::symlink("/etc", root.join("etc")).expect("a link");
    test_support::Program::new("mkfifo").arg(root.join("pipe")).succeed();
    check_set(&stage, "roots.config", "file config sub/notes.txt", "noted", Some("file other notes.txt")).await;
    check(&stage, "entries config .", "etc link pipe sub").await;
    check(&stage, "entries config sub", "notes.txt").await;
    check(&stage, "file config absent", "not found").await;
    check(&stage, "file config sub", "is not a file").await;
    check(&stage, "file config pipe", "is not a file").await;
    for path in ["../private", "sub/../../private", "/etc/passwd", "link", "etc/passwd"] {
        check(&stage, &format!("file config {path}"), "denied").await;
    }
    check(&stage, "file linked link", "private").await;
    check(&stage, "file linked etc/passwd", "denied").await;
    let large = std::fs::File::create(root.join("large")).expect("a file");
    large.set_len(5 * 1024 * 1024).expect("grown");
    check(&stage, "file config large", "has 5242880 bytes, and at most 4194304 are read").await;
}

#[tokio::test]
async fn state_is_kept_and_bounded() {
    let stage = Stage::with(&["hostile"]);
    check_set(&stage, "state", "state key one", "true false Some(\"one\") [\"key\"]", None).await;
    check(&stage, "state key two", "true false Some(\"two\")").await;
    check(&stage, "states", "at most 256 states").await;
}

#[tokio::test]
async fn requests_reach_granted_origins_alone() {
    let stage = Stage::with(&["hostile"]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = async {
        loop {
            let (mut peer, _) = listener.accept().await.expect("a peer");
            let mut request = vec![0; 4096];
            let read = peer.read(&mut request).await.expect("a request");
            let first = String::from_utf8_lossy(&request[..read]).lines().next().unwrap_or_default().to_owned();
            let answer = if first.contains("/moved") {
                "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\ncontent-length: 0\r\n\r\n".to_owned()
            } else {
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{first}", first.len())
            };
            peer.write_all(answer.as_bytes()).await.expect("answered");
        }
    };
    let asking = async {
        let deed = format!("http api {port} /status?x=1");
        check_set(&stage, "origins.api", &deed, "200 GET /status?x=1 HTTP/1.1", Some("http other 80 /")).await;
        check(&stage, &format!("http api {port} /moved"), "302 ").await;
        check(&stage, &format!("http api {port} /../up"), "denied").await;
        check(&stage, "http api 80@example.com /", "denied").await;
        check(&stage, "http api 1 /", "not found: nothing listens on 127.0.0.1 port 1").await;
    };
    tokio::select! {
        () = serving => unreachable!("it serves for ever"),
        () = asking => {}
    }
}

#[tokio::test]
async fn programs_run_as_the_manifest_says() {
    let stage = Stage::with(&["hostile"]);
    check_set(&stage, "programs.echo", "program echo word", "0 input word", Some("program other word")).await;
    check(&stage, "program echo $(id);`id`", "0 input $(id);`id`").await;
    check(&stage, "program echo -x", "denied: `-x` does not fit the blank `word`").await;
    check(&stage, "find echo", "/sh\")").await;
    check(&stage, "wait", "waited").await;
}

#[tokio::test]
async fn channels_carry_frames() {
    let stage = Stage::with(&["hostile"]);
    let listener = tokio::net::UnixListener::bind(stage.home().join(".hostile/a.sock")).expect("a socket");
    let serving = async {
        loop {
            let (mut peer, _) = listener.accept().await.expect("a peer");
            let mut line = vec![0; 100];
            let read = peer.read(&mut line).await.expect("a line");
            peer.write_all(&line[..read]).await.expect("answered");
        }
    };
    let asking = async {
        let deed = "channel lines a hello";
        check_set(&stage, "endpoints.lines", deed, "Some(\"hello\")", Some("channel other a hello")).await;
        check(&stage, "channel lines ../a hello", "denied").await;
        check(&stage, "channel lines b hello", "not found: nothing listens on").await;
    };
    tokio::select! {
        () = serving => unreachable!("it serves for ever"),
        () = asking => {}
    }
}

#[tokio::test]
async fn notices_need_a_desktop() {
    let stage = Stage::with(&["hostile"]);
    check_set(&stage, "notices", "notice", "unsupported: there is no desktop session", None).await;
}

#[tokio::test]
async fn nothing_is_ambient() {
    let stage = Stage::with(&["hostile"]);
    check(&stage, "ambient", "0 0 0 false").await;
    check(&stage, "clock", "1700000000000").await;
    assert_eq!(told(&stage, "environment").await, "");
    stage.grant(&ALL);
    assert_eq!(told(&stage, "environment").await, "HOSTILE_SESSION");
}
