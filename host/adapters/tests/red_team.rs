//! Attempts of hostile components: each names the grant that it tries to bypass, gains nothing, and if it is refused,
//! the refusal names that grant. `host_functions.rs` has what each interface returns to a well-behaved guest; `hostile.rs` has
//! faults that hurt only the guest itself.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use adapters::manifest::Manifest;
use common::{Stage, component, hook};
use mesh::ports::harness::{Action, Edit, Harness as _, HarnessError, HookCall, Plan, Scope};
use store::{Durability, Key, Store as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a guest must never see, wherever it is stored.
const SECRET: &str = "the-secret";

/// Every grant that the hostile adapter requests.
const ALL: [&str; 10] = [
    "state",
    "environment.HOSTILE_SESSION",
    "notices",
    "roots.config",
    "roots.linked",
    "roots.settings",
    "origins.api",
    "endpoints.lines",
    "programs.echo",
    "programs.environment",
];

/// A stage with all grants, so that nothing is denied for lack of one.
fn stage() -> Stage {
    let stage = Stage::with(&["hostile"]);
    stage.grant(&ALL);
    fs::write(stage.home().join("private"), SECRET).expect("written");
    fs::create_dir_all(stage.home().join(".settings")).expect("a folder");
    fs::create_dir_all(stage.folder.path().join("outside")).expect("a folder");
    fs::write(stage.folder.path().join("outside/file"), SECRET).expect("written");
    stage
}

/// A word without separators: percent-encoded.
fn encoded(word: &str) -> String {
    word.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

async fn told(stage: &Stage, deed: &str) -> String {
    match hook(&stage.adapters(), "hostile", &format!("answer:{deed}")).await {
        Ok(reply) => reply.stdout.unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

/// Tries to bypass a grant: nothing is gained, and the refusal names it.
async fn check_denied(stage: &Stage, grant: &str, deed: &str) {
    let told = told(stage, deed).await;
    assert!(!told.contains(SECRET), "{deed}: {told}");
    assert!(told.starts_with("denied: ") && told.contains(grant), "{grant}, {deed}: {told}");
}

/// The same if there is nothing to refuse, because the requested thing does not exist.
async fn check_nothing(stage: &Stage, deed: &str, expected: &str) {
    let told = told(stage, deed).await;
    assert!(!told.contains(SECRET) && told.contains(expected), "{deed}: {told}");
}

#[tokio::test]
async fn roots_config_is_not_left_by_a_path() {
    let stage = stage();
    fs::create_dir(stage.home().join(".hostile/sub")).expect("a folder");
    for path in [
        "..",
        "../private",
        "./../private",
        "sub/../../private",
        "sub/../../../outside/file",
        "/etc/passwd",
        "//etc/passwd",
        "..\\private",
        "../private\0",
        "sub\0/../../private",
        "sub/./../..",
    ] {
        check_denied(&stage, "roots.config", &format!("read config {}", encoded(path))).await;
    }
    let absolute = stage.home().join("private").display().to_string();
    check_denied(&stage, "roots.config", &format!("read config {}", encoded(&absolute))).await;
    // Names that mean something to shells and users, and are plain names here.
    for path in ["~/private", "$HOME/private", "%2e%2e/private", "...", ".. /private", "private"] {
        check_nothing(&stage, &format!("read config {}", encoded(path)), "not found").await;
    }
    let long = format!("{}private", "x/../".repeat(20_000));
    check_denied(&stage, "roots.config", &format!("read config {}", encoded(&long))).await;
    check_nothing(&stage, &format!("read config {}", encoded(&"x".repeat(100_000))), "could not").await;
}

#[tokio::test]
async fn roots_config_is_not_left_by_a_link() {
    let stage = stage();
    let root = stage.home().join(".hostile");
    for (link, target) in
        [("file", "../private"), ("folder", ".."), ("far", "/etc"), ("twice", "folder"), ("deep", "folder/../outside")]
    {
        symlink(target, root.join(link)).expect("a link");
    }
    symlink("round", root.join("round")).expect("a link");
    for path in ["file", "folder", "folder/private", "far/passwd", "twice/private", "deep/file", "folder/.hostile/file"]
    {
        check_denied(&stage, "roots.config", &format!("read config {path}")).await;
    }
    check_nothing(&stage, "read config round", "could not").await;
    // `links = "home"` lets links lead into the home, and no further.
    symlink("../../outside/file", root.join("outside")).expect("a link");
    for path in ["far/passwd", "outside", "deep/file"] {
        check_denied(&stage, "roots.linked", &format!("read linked {path}")).await;
    }
}

/// Swaps a folder and a link out of the root until it is told to stop.
fn swap_until(stop: &AtomicBool, root: &Path, outside: &Path) {
    let (place, folder, link) = (root.join("swapped"), root.join("folder"), root.join("link"));
    while !stop.load(Ordering::Relaxed) {
        // The test's plan creates folders there, so a swap may fail: whatever is missing then is created again.
        if !folder.exists() {
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("file"), "harmless").expect("written");
        }
        if link.symlink_metadata().is_err() {
            symlink(outside, &link).expect("a link");
        }
        for other in [&folder, &link] {
            let swapped = fs::rename(other, &place).and_then(|()| {
                std::thread::yield_now();
                fs::rename(&place, other)
            });
            if swapped.is_err() && place.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
                fs::remove_file(&place).expect("the link is gone");
            } else if swapped.is_err() && place.exists() {
                // It cannot be emptied while a plan writes to it: the next round tries again.
                let _until_then = fs::remove_dir_all(&place);
            }
        }
    }
}

#[tokio::test]
async fn a_link_that_comes_between_look_and_use_leads_nowhere() {
    let stage = stage();
    let (root, settings) = (stage.home().join(".hostile"), stage.home().join(".settings"));
    let outside = stage.folder.path().join("outside");
    let adapters = stage.adapters();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = [root, settings].map(|root| {
        let (stop, outside) = (Arc::clone(&stop), outside.clone());
        std::thread::spawn(move || swap_until(&stop, &root, &outside))
    });
    let (mut seen, mut written) = (BTreeSet::new(), 0);
    for number in 0..300 {
        let told = match hook(&adapters, "hostile", "answer:read config swapped/file").await {
            Ok(reply) => reply.stdout.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        seen.insert(told);
        // A plan resolves paths in the same way, and would write.
        let edit = edit("settings", &format!("swapped/new-{number}"), None, Some("forged"));
        let plan = Plan { edits: vec![edit], next_steps: Vec::new() };
        written += u32::from(adapters.apply("hostile", Action::Install, Scope::User, &plan).is_ok());
    }
    stop.store(true, Ordering::Relaxed);
    for swapping in swapping {
        swapping.join().expect("it swapped to the end");
    }
    assert!(!seen.iter().any(|told| told.contains(SECRET)), "{seen:?}");
    assert!(seen.contains("harmless") && seen.len() > 1, "both were met, the folder and the link: {seen:?}");
    let outside: Vec<_> =
        fs::read_dir(outside).expect("it is there").map(|entry| entry.expect("a name").path()).collect();
    assert_eq!(outside.len(), 1, "nothing was written there: {outside:?}, and {written} files elsewhere");
}

fn edit(root: &str, path: &str, before: Option<&str>, after: Option<&str>) -> Edit {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Edit { root: root.to_owned(), path: path.to_owned(), before: text(before), after: text(after), executable: false }
}

#[tokio::test]
async fn edits_stay_under_roots_that_may_be_edited() {
    let stage = stage();
    symlink("../../outside", stage.home().join(".settings/out")).expect("a link");
    symlink("../../outside/file", stage.home().join(".settings/linked")).expect("a link");
    let adapters = stage.adapters();
    let long = "x".repeat(5_000);
    for (grant, root, path, before) in [
        ("roots.settings", "settings", "../private", Some(SECRET)),
        ("roots.settings", "settings", "../new", None),
        ("roots.settings", "settings", "/tmp/relay-red-team", None),
        ("roots.settings", "settings", "out/new", None),
        ("roots.settings", "settings", "out/file", Some(SECRET)),
        ("roots.settings", "settings", "linked", Some(SECRET)),
        ("roots.settings", "settings", "sub\0/x", None),
        ("roots.settings", "settings", "", None),
        ("roots.settings", "settings", ".", None),
        ("", "settings", long.as_str(), None),
        ("roots.config", "config", "new", None),
        ("roots.other", "other", "new", None),
        ("roots.project", "project", "new", None),
    ] {
        for after in [Some("forged"), None] {
            // The first edit is allowed: if any edit of a plan is refused, none is made.
            let edits = vec![edit("settings", "good", None, Some("good")), edit(root, path, before, after)];
            let plan = Plan { edits, next_steps: Vec::new() };
            let error = adapters.apply("hostile", Action::Install, Scope::User, &plan).expect_err("it is refused");
            let told = error.to_string();
            let (_, name) = grant.split_once('.').unwrap_or_default();
            assert!(told.contains(grant) || told.contains(&format!("root `{name}`")), "{root} {path:?}: {told}");
            assert!(!stage.home().join(".settings/good").exists(), "{root} {path:?}");
        }
    }
    assert_eq!(fs::read_to_string(stage.home().join("private")).expect("there"), SECRET);
    assert_eq!(fs::read_to_string(stage.folder.path().join("outside/file")).expect("there"), SECRET);
    assert_eq!(fs::read_dir(stage.folder.path().join("outside")).expect("there").count(), 1);
    assert!(!stage.home().join("new").exists() && !stage.home().join(".hostile/new").exists());
}

/// A server that answers each request with `answer` and keeps the requests, byte for byte.
async fn serve(listener: TcpListener, answer: String, came: Arc<Mutex<Vec<String>>>) {
    loop {
        let (mut peer, _) = listener.accept().await.expect("a peer");
        let mut request = vec![0; 65_536];
        let read = peer.read(&mut request).await.expect("a request");
        came.lock().expect("nobody panics").push(String::from_utf8_lossy(&request[..read]).into_owned());
        peer.write_all(answer.as_bytes()).await.expect("answered");
    }
}

/// Two servers on this machine: the granted one redirects to the other.
async fn with_servers<T>(attempt: impl AsyncFnOnce(u16, u16) -> T) -> (T, Vec<String>, Vec<String>) {
    let granted = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let (granted_port, other_port) = (port(&granted), port(&other));
    let moved = format!("HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:{other_port}/\r\ncontent-length: 0\r\n\r\n");
    let secret = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{SECRET}", SECRET.len());
    let (one, two) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
    let outcome = tokio::select! {
        () = serve(granted, moved, Arc::clone(&one)) => unreachable!("it serves for ever"),
        () = serve(other, secret, Arc::clone(&two)) => unreachable!("it serves for ever"),
        outcome = attempt(granted_port, other_port) => outcome,
    };
    let taken = |came: &Mutex<Vec<String>>| came.lock().expect("nobody panics").clone();
    (outcome, taken(&one), taken(&two))
}

#[tokio::test]
async fn origins_api_is_not_left_by_a_redirect_or_a_request() {
    let stage = stage();
    let ((), granted, other) = with_servers(async |port, other| {
        check_nothing(&stage, &format!("request api {port} GET / % %"), "307 ").await;
        let absolute = encoded(&format!("http://127.0.0.1:{other}/"));
        for path in
            [absolute.as_str(), "", "x", "%40evil.example/", "..", "/a/../../b", "/%252e%252e/b", "/.%2e/b", "*"]
        {
            check_denied(&stage, "origins.api", &format!("request api {port} GET {path} % %")).await;
        }
        for method in ["CONNECT", "GET%20/%20HTTP/1.1%0d%0aX:y%0d%0a%0d%0aGET", "", "G%00T"] {
            check_denied(&stage, "origins.api", &format!("request api {port} {method} / % %")).await;
        }
        for value in [format!("{other}@evil.example"), format!("{port}/"), "0".to_owned(), "65536".to_owned()] {
            check_denied(&stage, "origins.api", &format!("request api {} GET / % %", encoded(&value))).await;
        }
        for value in ["0x50", "-1", " 80", "8 0", "", "80#", "80?", "80\r\n", "%00", "٨٠", "1e3", "80.0"] {
            check_denied(&stage, "origins.api", &format!("request api {} GET / % %", encoded(value))).await;
        }
        check_denied(&stage, "origins.other", &format!("request other {other} GET / % %")).await;
    })
    .await;
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert!(other.is_empty(), "nothing came to the other server: {other:?}");
}

#[tokio::test]
async fn origins_api_takes_no_smuggled_header_and_no_second_request() {
    let stage = stage();
    let ((), granted, _) = with_servers(async |port, _| {
        for (name, value) in [
            ("host", "evil.example"),
            ("Host", "evil.example"),
            ("content-length", "0"),
            ("Transfer-Encoding", "chunked"),
            ("connection", "keep-alive"),
            ("upgrade", "websocket"),
            ("te", "trailers"),
            ("trailer", "x-smuggled"),
            ("proxy-connection", "keep-alive"),
        ] {
            let header = format!("{} {}", encoded(name), encoded(value));
            check_denied(&stage, "origins.api", &format!("request api {port} GET / {header}")).await;
        }
        for (name, value) in [
            ("x", "y\r\nx-smuggled: 1"),
            ("x", "y\nx-smuggled: 1"),
            ("x", "y\r\n\r\nGET /x-smuggled HTTP/1.1\r\n\r\n"),
            ("x", "y\0x-smuggled"),
            ("x: 1\r\nx-smuggled", "y"),
            ("x x-smuggled", "y"),
            ("x-smuggled:", "y"),
            ("x-smuggled\0", "y"),
        ] {
            let header = format!("{} {}", encoded(name), encoded(value));
            check_nothing(&stage, &format!("request api {port} GET / {header}"), "header").await;
        }
        for path in ["/a b", "/a\r\nx-smuggled: 1", "/a HTTP/1.1\r\nx-smuggled: 1\r\n\r\n", "/\0x-smuggled", "/é"] {
            let told = told(&stage, &format!("request api {port} GET {} % %", encoded(path))).await;
            assert!(!told.contains(SECRET), "{path:?}: {told}");
        }
    })
    .await;
    for request in granted {
        let lines: Vec<&str> = request.lines().filter(|line| !line.is_empty()).collect();
        assert!(
            !lines[1..].iter().any(|line| line.contains("smuggled")),
            "one request, and its own headers: {request:?}"
        );
        assert_eq!(request.matches("HTTP/1.1\r\n").count(), 1, "{request:?}");
        assert!(lines.iter().any(|line| line.starts_with("host: 127.0.0.1:")), "{request:?}");
    }
}

#[test]
fn origins_and_endpoints_are_on_loopback_however_they_are_written() {
    for authority in [
        "0.0.0.0:80",
        "[::]:80",
        "[::ffff:8.8.8.8]:80",
        "[::ffff:127.0.0.1]:80",
        "[0:0:0:0:0:0:0:1]:80",
        "[::1%25eth0]:80",
        "2130706433:80",
        "134744072:80",
        "0x7f000001:80",
        "0177.0.0.1:80",
        "127.1:80",
        "127.0.0.1.evil.example:80",
        "localhost.evil.example:80",
        "user@127.0.0.1:80",
        "127.0.0.1:80@evil.example",
        "127.0.0.1:80@evil.example:80",
        "{host}:80",
        "{host}",
        "127.0.0.{last}:80",
        "evil.example:80",
        "8.8.8.8:80",
        " 127.0.0.1:80",
        "127.0.0.1\n.evil.example:80",
        "LOCALHOST\u{2024}evil.example:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "",
    ] {
        let head = "name = \"x\"\ntitle = \"X\"\nversion = \"1\"\nwit = \"0.1\"\n";
        for (grant, asked) in [
            ("origins.api", format!("[grants.origins]\napi = {:?}\n", format!("http://{authority}"))),
            ("endpoints.api", format!("[grants.endpoints]\napi = {{ tcp = {authority:?}, framing = \"lines\" }}\n")),
        ] {
            let error = Manifest::parse(&format!("{head}{asked}")).err();
            let told = error.unwrap_or_else(|| panic!("{grant} was parsed from {authority:?}")).to_string();
            assert!(told.contains("line 6"), "{grant} {authority:?}: {told}");
        }
    }
}

#[tokio::test]
async fn endpoints_lines_is_the_only_socket() {
    let stage = stage();
    let outside = tokio::net::UnixListener::bind(stage.folder.path().join("outside/a.sock")).expect("a socket");
    for value in ["../../outside/a", "/tmp/a", "a/b", "..", ".", "", "~", "a\0b", "$HOME", "${HOME}", "a\n"] {
        check_denied(&stage, "endpoints.lines", &format!("open lines {}", encoded(value))).await;
    }
    check_denied(&stage, "endpoints.lines", &format!("open lines {}", "x".repeat(300))).await;
    check_denied(&stage, "endpoints.other", "open other a").await;
    check_nothing(&stage, "network", "false false false").await;
    tokio::select! {
        biased;
        _ = outside.accept() => panic!("somebody came to a socket that was not granted"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn no_socket_of_ours_of_the_systems_or_of_another_harness_is_an_endpoint() {
    let stage = stage();
    let mut listeners = Vec::new();
    for (link, folder, expected) in [
        ("ours", ".relay-mesh", "where relay-mesh keeps mail and keys"),
        ("theirs", ".codex", "it holds the settings of `codex`; an endpoint for these is named `codex`"),
    ] {
        fs::create_dir_all(stage.home().join(folder)).expect("a folder");
        let socket = stage.home().join(folder).join("socket");
        listeners.push(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
        symlink(socket, stage.home().join(".hostile").join(link).with_extension("sock")).expect("a link");
        let adapters = stage.adapters_with(|settings| {
            settings.surroundings.private =
                vec![settings.surroundings.home.clone().unwrap_or_default().join(".relay-mesh")];
        });
        let told = hook(&adapters, "hostile", &format!("answer:open lines {link}")).await;
        let told = told.expect_err("it is refused").to_string();
        assert!(told.starts_with("denied: ") && told.contains("endpoints.lines") && told.contains(expected), "{told}");
    }
    symlink("/dev/null", stage.home().join(".hostile/system.sock")).expect("a link");
    check_denied(&stage, "endpoints.lines", "open lines system").await;
    for listener in listeners {
        listener.set_nonblocking(true).expect("a socket");
        assert!(listener.accept().is_err(), "nobody came");
    }
}

#[tokio::test]
async fn programs_echo_takes_values_as_they_are() {
    let stage = stage();
    for value in ["-x", "--help", "-", "-c id", "\0", "a\0-x"] {
        check_denied(&stage, "programs.echo", &format!("run echo {}", encoded(value))).await;
    }
    check_denied(&stage, "programs.echo", &format!("run echo {}", "x".repeat(5_000))).await;
    check_denied(&stage, "programs.echo", "run echo a b").await;
    check_denied(&stage, "programs.echo", "run echo").await;
    check_denied(&stage, "programs.other", "run other a").await;
    let touched = stage.home().join("touched");
    let touch = format!("touch {}", touched.display());
    for value in [
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("; {touch}"),
        format!("\n{touch}\n"),
        format!("'; {touch} #"),
        format!("\"; {touch} #"),
        format!("| {touch}"),
        format!("&& {touch}"),
        "{word}".to_owned(),
        "%s%n".to_owned(),
        "é🥊\u{202e}".to_owned(),
    ] {
        // The script's own `echo $0` splits words again; only the words matter.
        let told = told(&stage, &format!("run echo {}", encoded(&value))).await;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&told), words(&format!("0 {value}")), "{value:?}");
    }
    assert!(!touched.exists(), "no shell read a value");
}

#[tokio::test]
async fn environment_holds_what_was_granted_and_nothing_else() {
    let stage = stage();
    for name in ["SECRET", "HOME", "PATH", "HOSTILE_SESSION"] {
        check_nothing(&stage, &format!("variable {name}"), "None").await;
    }
    check_nothing(&stage, "ambient", "0 0 0 false").await;
    assert_eq!(told(&stage, "environment").await, "HOSTILE_SESSION", "of the harness's own, the one that was granted");
    // A program gets the variables that programs need, and none of ours.
    let given = told(&stage, "run environment").await;
    assert!(given.starts_with("0 ") && given.contains("PATH=") && !given.contains("SECRET"), "{given}");
    let less: Vec<&str> = ALL.into_iter().filter(|grant| *grant != "environment.HOSTILE_SESSION").collect();
    stage.grant(&less);
    assert_eq!(told(&stage, "environment").await, "", "environment.HOSTILE_SESSION was not given");
}

#[tokio::test]
async fn state_of_another_adapter_is_out_of_reach() {
    let stage = stage();
    let key = "adapters".parse::<Key>().expect("a key").child("polite").child("state").child("secret");
    let kept = format!("{{\"text\":\"{SECRET}\"}}");
    stage.store.swap(&key, None, Some(kept.as_bytes()), Durability::Process).await.expect("kept");
    for name in [
        "secret",
        "../../polite/state/secret",
        "../polite/state/secret",
        "adapters/polite/state/secret",
        "/adapters/polite/state/secret",
        "polite/state/secret",
        "..\\..\\polite\\state\\secret",
        "%2e%2e/%2e%2e/polite/state/secret",
        "..",
        ".",
        "/",
        "\0",
    ] {
        check_nothing(&stage, &format!("steal {}", encoded(name)), "None true").await;
    }
    check_nothing(&stage, "steal %", "a key has 1 to 128 bytes").await;
    check_nothing(&stage, &format!("steal {}", "x".repeat(129)), "a key has 1 to 128 bytes").await;
    let now = stage.store.get(&key).await.expect("read").expect("it is still there");
    assert_eq!(now.bytes.as_ref() as &[u8], kept.as_bytes());
    let less: Vec<&str> = ALL.into_iter().filter(|grant| *grant != "state").collect();
    stage.grant(&less);
    check_denied(&stage, "state", "steal secret").await;
}

#[tokio::test]
async fn roots_of_another_adapter_are_out_of_reach() {
    let stage = stage();
    for root in ["project", "polite.config", "polite/config", "../polite", "roots.config", "", "CONFIG", "config\0"] {
        let grant = format!("roots.{}", root.escape_default());
        let told = told(&stage, &format!("read {} private", encoded(root))).await;
        assert!(told.starts_with("denied: ") && told.contains(&grant), "{root:?}: {told}");
    }
}

#[tokio::test]
async fn memory_and_time_have_an_end_also_before_a_call_begins() {
    let stage = Stage::with(&["hostile", "polite"]);
    let adapters = stage.adapters();
    let call = |length: usize| HookCall {
        name: "read:".to_owned(),
        payload: "x".repeat(length),
        environment: Vec::new(),
        process: None,
    };
    let hostile = adapters.adapter("hostile").await.expect("loaded").expect("known");
    for (length, expected) in [
        (70_001, "it ran for more than 100 ms"),
        (70_002, "failed in `hook read`"),
        (70_003, "it needed more than 32 MB of memory"),
    ] {
        // The host writes the payload through the guest's allocator.
        let error = hostile.hook(&call(length), &mut common::TestHookHost::default()).await.expect_err("an end");
        assert!(matches!(&error, HarnessError::Failed(told) if told.contains(expected)), "{length}: {error}");
        hook(&adapters, "polite", "Stop").await.expect("the neighbour answers");
    }
    let stage = Stage::with(&["polite"]);
    stage.put("eager", &component("eager"));
    let adapters = stage.adapters();
    let error = adapters.adapter("eager").await.err().expect("it never begins");
    assert!(error.to_string().contains("failed in `describe`: it ran for more than 200 ms"), "{error}");
    hook(&adapters, "polite", "Stop").await.expect("the neighbour answers");
}

#[tokio::test]
async fn what_is_handed_over_is_bounded_and_text() {
    let stage = stage();
    for deed in ["giant", "not-text"] {
        let error = hook(&stage.adapters(), "hostile", &format!("answer:{deed}")).await.expect_err(deed);
        let told = error.to_string();
        assert!(told.contains("the adapter `hostile` failed in `hook answer`"), "{deed}: {told}");
        assert!(told.len() < 400 && !told.contains('\n'), "{deed}: {told}");
    }
}

/// The messages of all logged lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Message<'l>(&'l Mutex<Vec<String>>);
        impl tracing::field::Visit for Message<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0.lock().expect("nobody panics").push(format!("{value:?}"));
                }
            }
        }
        event.record(&mut Message(&self.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn no_line_of_the_log_is_forged() {
    let stage = stage();
    let lines = Lines::default();
    let _logging = tracing::subscriber::set_default(lines.clone());
    let forged = "done\n2026-01-01T00:00:00Z ERROR relay_mesh: forged\r\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}";
    assert_eq!(told(&stage, &format!("log {}", encoded(forged))).await, "logged");
    let logged = lines.0.lock().expect("nobody panics").clone();
    assert!(logged.iter().any(|line| line.starts_with("done\\n2026")), "it was logged, on one line: {logged:?}");
    for line in &logged {
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    assert_eq!(told(&stage, &format!("log {}", "x".repeat(50_000))).await, "logged");
    let longest = lines.0.lock().expect("nobody panics").iter().map(String::len).max();
    assert!(longest.is_some_and(|length| length < 3_000), "{longest:?}");
}
