//! Adapters that travel: to and from a real OCI registry over TLS, from the web, and from servers that mean no good.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use test_support::components::{component, manifest, ship};
use test_support::{
    Door, LOGIN, OciRegistry, Outcome, Program, Proxy, Reply, Stage, WebServer, artifact, isolated, wait_for,
};

const YES: [&str; 3] = ["--yes", "--grant", "state"];

#[test]
fn an_adapter_travels_from_its_author_to_a_user() {
    isolated(|| {
        let author = stage();
        let registry = OciRegistry::start(&author.folder.join("registry"), Door::Password);
        let ca = registry.authority.display().to_string();
        let to = format!("oci://{}/acme/polite", registry.host);
        author.relay_ok(&["plugin", "keygen", "key.pem"]);
        let first = signed(&author, "1.0.0", "");
        let push = |file: &str, further: &[&str]| {
            author.relay(&[&["plugin", "push", file, &to, "--ca", &ca][..], further].concat()).run()
        };
        let unknown = author.run(&["plugin", "push", &first, &to]);
        assert!(unknown.stderr.contains("UnknownIssuer") && unknown.stderr.contains("`--ca FILE`"), "{unknown:?}");
        let denied = push(&first, &[]);
        assert!(denied.code == Some(4) && denied.stderr.contains("wants a login"), "{denied:?}");
        assert!(denied.stderr.contains("docker login"), "{denied:?}");
        log_in(&author, &registry.host, "dXNlcjp3cm9uZw==");
        let denied = push(&first, &[]);
        assert!(denied.stderr.contains("does not let `user` do this"), "{denied:?}");
        log_in(&author, &registry.host, LOGIN);
        let unsigned = push(&package(&author, "1.0.0", ""), &[]);
        assert!(unsigned.stderr.contains("`relay-mesh plugin sign` puts the manifest into it"), "{unsigned:?}");
        let pushed = push(&first, &[]);
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        let install = pushed.stdout.split("relay-mesh plugin install ").nth(1).expect("the next command").trim();
        assert!(install.starts_with(&format!("{to}:1.0.0@sha256:")), "{install}");
        let again: Value = serde_json::from_str(&push(&first, &["--json"]).stdout).expect("JSON");
        assert_eq!(again["outcome"], "unchanged", "{again}");
        let other = signed(&author, "1.0.0", "\n# another build of the same version\n");
        let taken = push(&other, &[]);
        assert!(taken.code == Some(4) && taken.stderr.contains(":1.0.0 is there already"), "{taken:?}");
        for version in ["1.1.0-rc.1", "0.9.0"] {
            assert_eq!(push(&signed(&author, version, ""), &[]).code, Some(0));
        }

        // A user whose login is with a credential helper.
        let user = stage();
        let from = |source: &str, words: &[&str]| run(&user, &[words, &[source, "--ca", &ca]].concat());
        assert_eq!(from(&to, &["plugin", "inspect"]).code, Some(4));
        helper(&user, &registry.host);
        let asked = from(install, &[&["plugin", "install"][..], &YES].concat());
        assert_eq!(asked.code, Some(0), "{asked:?}");
        assert!(asked.stdout.contains("signed by ed25519:"), "{asked:?}");
        let newest = from(&to, &["plugin", "inspect", "--json"]);
        assert!(newest.stdout.contains("\"version\":\"1.0.0\""), "neither an older one nor a draft: {newest:?}");
        // A pinned one stays, and one with a version's tag goes on to the newest.
        let update =
            |flags: &[&str]| run(&user, &[&["plugin", "update", "polite", "--ca", &ca, "--json"][..], flags].concat());
        assert_eq!(push(&signed(&author, "1.2.0", ""), &[]).code, Some(0));
        let updated: Value = serde_json::from_str(&update(&[]).stdout).expect("JSON");
        assert_eq!((&updated["outcome"], &updated["version"]), (&json!("updated"), &json!("1.2.0")), "{updated}");
        let said = run(&user, &["plugin", "inspect", "polite", "--json"]);
        let from: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(from["installed"]["from"], json!(format!("{to}:1.2.0")), "{said:?}");
        let unchanged: Value = serde_json::from_str(&update(&[]).stdout).expect("JSON");
        assert_eq!(unchanged["outcome"], "unchanged");
        // What others may have pinned is replaced only on demand.
        assert_eq!(push(&other, &["--replace"]).code, Some(0));
        let old = run(&user, &["plugin", "inspect", install, "--ca", &ca, "--json"]);
        assert!(old.stdout.contains("\"version\":\"1.0.0\""), "a digest still leads to what it named: {old:?}");
    });
}

#[test]
fn a_version_whose_content_changed_at_its_address_is_refused_and_a_rebuilt_file_is_not() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let files = ["", "\n# another build of the same version\n"].map(|more| signed(&stage, "1.0.0", more));
        let builds = files.clone().map(|file| {
            let bytes = fs::read(file).expect("the component");
            let (manifest, layer) = artifact(&bytes, digest);
            (manifest.to_string(), layer, bytes)
        });
        // Which of the two its tag and its address lead to.
        let leads_to = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&leads_to);
        let server = WebServer::start(move |request| {
            let (manifest, layer, bytes) = &builds[now.load(Ordering::SeqCst)];
            match request.target.as_str() {
                "/polite.wasm" => Reply::of(200, bytes),
                target if target.contains(layer.as_str()) => Reply::of(200, bytes),
                target if target.contains("/blobs/") => Reply::of(404, ""),
                _ => Reply::of(200, manifest),
            }
        });
        for (source, flags) in [
            (format!("oci://{}/acme/polite:stable", server.address), &["--plain-http"][..]),
            (format!("http://{}/polite.wasm", server.address), &[]),
        ] {
            leads_to.store(0, Ordering::SeqCst);
            let installed = run(&stage, &[&["plugin", "install", &source][..], flags, &YES].concat());
            assert_eq!(installed.code, Some(0), "{installed:?}");
            let before = stage.tree(&stage.data.join("plugins"));
            leads_to.store(1, Ordering::SeqCst);
            let update = |more: &[&str]| run(&stage, &[&["plugin", "update", "polite"][..], flags, more].concat());
            let refused = update(&["--yes"]);
            assert_eq!(refused.code, Some(4), "{refused:?}");
            for words in [
                "the content of this version changed: `polite` 1.0.0 is installed with the digest ",
                &format!(", and `{source}` now leads to "),
                "hint: a change comes as a new version",
                "`--allow-changed`",
            ] {
                assert!(refused.stderr.contains(words), "{words}: {refused:?}");
            }
            assert!(stage.tree(&stage.data.join("plugins")) == before, "{source}: nothing was changed");
            let taken = update(&["--allow-changed"]);
            assert_eq!(taken.code, Some(0), "{taken:?}");
            let told = taken.stdout + &taken.stderr;
            assert!(told.contains("it asks for nothing more than before"), "what it asked for is no news: {told}");
            assert!(told.contains(" 1.0.0 was replaced by another build of this version."), "{told}");
            let removed = run(&stage, &["plugin", "remove", "polite"]);
            assert_eq!(removed.code, Some(0), "{removed:?}");
        }
        // Its author builds the same version again and again.
        let [first, second] = &files;
        let installed = run(&stage, &[&["plugin", "install", first][..], &YES].concat());
        assert_eq!(installed.code, Some(0), "{installed:?}");
        for file in [second, first] {
            let rebuilt = run(&stage, &["plugin", "update", "polite", file]);
            assert_eq!(rebuilt.code, Some(0), "{rebuilt:?}");
            assert!(rebuilt.stderr.contains("was replaced by another build of this version"), "{rebuilt:?}");
        }
    });
}

#[test]
fn an_update_from_a_registry_that_is_gone_changes_nothing() {
    isolated(|| {
        let stage = stage();
        let registry = OciRegistry::start(&stage.folder.join("registry"), Door::Open);
        let ca = registry.authority.display().to_string();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let to = format!("oci://{}/acme/polite", registry.host);
        stage.relay_ok(&["plugin", "push", &signed(&stage, "1.0.0", ""), &to, "--ca", &ca]);
        let installed = run(&stage, &[&["plugin", "install", &to, "--ca", &ca][..], &YES].concat());
        assert_eq!(installed.code, Some(0), "{installed:?}");
        let before = stage.tree(&stage.data.join("plugins"));
        let (address, port) = registry.host.rsplit_once(':').expect("an address and a port");
        let unreachable = format!("{address} port {port}: ");
        drop(registry);
        let gone = run(&stage, &["plugin", "update", "polite", "--ca", &ca]);
        assert_eq!(gone.code, Some(1), "{gone:?}");
        assert!(gone.stderr.contains(&unreachable) && gone.stderr.contains("\nhint: "), "{gone:?}");
        assert!(stage.tree(&stage.data.join("plugins")) == before, "nothing was changed");
        assert_eq!(run(&stage, &["plugin", "verify"]).code, Some(0), "what is installed is sound");
    });
}

#[test]
fn a_registry_may_have_its_tokens_given_by_another_server() {
    isolated(|| {
        let stage = stage();
        let registry = OciRegistry::start(&stage.folder.join("registry"), Door::Token);
        let ca = registry.authority.display().to_string();
        let to = format!("oci://{}/polite:test", registry.host);
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let push = ["plugin", "push", &signed(&stage, "1.0.0", ""), &to, "--ca", &ca];
        let denied = stage.run(&push);
        assert!(denied.code == Some(4) && denied.stderr.contains("wants a login"), "{denied:?}");
        log_in(&stage, &registry.host, "dXNlcjp3cm9uZw==");
        let wrong = stage.run(&push);
        assert!(wrong.code == Some(4) && wrong.stderr.contains("does not let `user` do this"), "{wrong:?}");
        log_in(&stage, &registry.host, LOGIN);
        let pushed = stage.run(&push);
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        // Everybody may pull, as from most public registries.
        fs::remove_dir_all(stage.home.join(".docker")).expect("the login is there");
        let pulled = run(&stage, &[&["plugin", "install", &to, "--ca", &ca][..], &YES].concat());
        assert_eq!(pulled.code, Some(0), "{pulled:?}");
    });
}

#[test]
fn a_registry_that_lies_installs_nothing() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let bytes = fs::read(signed(&stage, "1.0.0", "")).expect("the component");
        let (good, layer) = artifact(&bytes, digest);
        let other = vec![0_u8; bytes.len()];
        let manifest_of = |change: &dyn Fn(&mut Value)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.to_string()
        };
        let huge = manifest_of(&|manifest| manifest["layers"][0]["size"] = json!(1_u64 << 40));
        let tar = manifest_of(&|manifest| manifest["layers"][0]["mediaType"] = json!("application/tar"));
        let climbs = manifest_of(&|manifest| manifest["layers"][0]["digest"] = json!("../../../v2/x"));
        let of_many = json!({"manifests": [{"mediaType": "m", "digest": digest(b"other"), "size": 5}]}).to_string();
        let text = good.to_string();
        let deep = "[".repeat(100_000);
        let cases: Vec<(&str, Reply, Reply, &str)> = vec![
            ("another blob", Reply::of(200, &text), Reply::of(200, &other), "gave something else than sha256:"),
            ("a short blob", Reply::of(200, &text), Reply::of(200, &bytes[..100]), "gave something else than"),
            (
                "a longer blob",
                Reply::of(200, &text),
                Reply::of(200, [&bytes[..], b"x"].concat()),
                "answers with more than",
            ),
            ("a huge layer", Reply::of(200, &huge), Reply::of(200, &bytes), "and at most 67108864 are taken"),
            ("a tar", Reply::of(200, &tar), Reply::of(200, &bytes), "its layers are of application/tar"),
            ("a path for a digest", Reply::of(200, &climbs), Reply::of(200, &bytes), "is no manifest: a digest is"),
            ("an index to another", Reply::of(200, &of_many), Reply::of(200, &bytes), "gave something else than"),
            ("a page", Reply::of(200, "<html>"), Reply::of(200, &bytes), "answered is no manifest"),
            ("a deep one", Reply::of(200, &deep), Reply::of(200, &bytes), "answered is no manifest"),
            ("a huge manifest", Reply::of(200, "{}").saying(1 << 40), Reply::of(200, &bytes), "answers with more than"),
            (
                "a manifest of another digest",
                Reply::of(200, &text).with("docker-content-digest", &digest(b"x")),
                Reply::of(200, &bytes),
                "gave something else than",
            ),
            (
                "a way to elsewhere",
                Reply::of(307, "").with("location", "http://192.0.2.1/x"),
                Reply::of(200, &bytes),
                "no address that is followed",
            ),
            (
                "a file",
                Reply::of(307, "").with("location", "file:///etc/passwd"),
                Reply::of(200, &bytes),
                "no address that is followed",
            ),
            (
                "a circle",
                Reply::of(307, "").with("location", "/v2/acme/toad/manifests/1"),
                Reply::of(200, &bytes),
                "redirects more than 5 times",
            ),
            (
                "a login elsewhere",
                Reply::of(401, "").with("www-authenticate", "Bearer realm=\"http://192.0.2.1/t\""),
                Reply::of(200, &bytes),
                "a way that is not known here",
            ),
            ("a login that it lacks", Reply::of(401, ""), Reply::of(200, &bytes), "asks for a login by a way"),
            (
                "trouble",
                Reply::of(503, r#"{"errors":[{"message":"down \u001b[2J"}]}"#),
                Reply::of(200, &bytes),
                "answered 503",
            ),
        ];
        for (what, manifest, blob, expected) in cases {
            let server = serving(manifest, blob, &layer);
            let source = format!("oci://{}/acme/toad:1", server.address);
            let outcome = run(&stage, &[&["plugin", "install", &source, "--plain-http"][..], &YES].concat());
            assert!(outcome.stderr.contains(expected), "{what}: {outcome:?}");
            assert!(outcome.code != Some(0) && outcome.stderr.contains("hint: "), "{what}: {outcome:?}");
            assert!(!outcome.stderr.contains('\u{1b}'), "{what}: {outcome:?}");
        }
        assert_eq!(installed(&stage), Vec::<PathBuf>::new());
        let elsewhere = run(&stage, &["plugin", "install", "oci://registry.example/toad", "--plain-http"]);
        assert!(elsewhere.code == Some(2) && elsewhere.stderr.contains("is not on this machine"), "{elsewhere:?}");
        // The same server, if it tells the truth.
        let server = serving(Reply::of(200, &text), Reply::of(200, &bytes), &layer);
        let source = format!("oci://{}/acme/toad:1", server.address);
        let outcome = run(&stage, &[&["plugin", "install", &source, "--plain-http"][..], &YES].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    });
}

#[test]
fn a_login_is_shown_to_no_server_but_its_own() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let bytes = fs::read(signed(&stage, "1.0.0", "")).expect("the component");
        let (manifest, layer) = artifact(&bytes, digest);
        let blob = bytes.clone();
        let elsewhere = WebServer::start(move |_| Reply::of(200, &blob));
        let to = format!("http://{}/blob", elsewhere.address);
        let registry = WebServer::start(move |request| match request.header("authorization") {
            None => Reply::of(401, "").with("www-authenticate", "Basic realm=\"tests\""),
            Some(_) if request.target.contains("/blobs/") => Reply::of(307, "").with("location", &to),
            Some(_) => Reply::of(200, manifest.to_string()),
        });
        log_in(&stage, &registry.address.to_string(), LOGIN);
        let source = format!(
            "oci://{}/acme/toad:1@{}",
            registry.address,
            digest(artifact(&bytes, digest).0.to_string().as_bytes())
        );
        let outcome = run(&stage, &[&["plugin", "install", &source, "--plain-http"][..], &YES].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(registry.asked().iter().any(|request| request.header("authorization").is_some()));
        let asked = elsewhere.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|request| request.header("authorization").is_none()),
            "{asked:?}"
        );
        assert!(registry.asked().iter().all(|request| !request.target.contains(&layer) || request.method == "GET"));
    });
}

#[test]
fn an_address_on_the_web_gives_a_component() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let bytes = fs::read(signed(&stage, "1.0.0", "")).expect("the component");
        let (right, wrong) = (digest(&bytes).replace(':', "="), digest(b"x").replace(':', "="));
        let server = WebServer::start(move |request| match request.target.as_str() {
            "/polite.wasm" => Reply::of(200, &bytes),
            "/moved" => Reply::of(302, "").with("location", "/polite.wasm"),
            "/page" => Reply::of(200, "<html>"),
            "/module" => Reply::of(200, b"\0asm\x01\0\0\0"),
            "/cut" => Reply::of(200, &bytes[..100]).saying(1000),
            _ => Reply::of(404, "<html>nothing"),
        });
        for (path, code, expected) in [
            ("nothing", 3, "answered 404 Not Found"),
            ("page", 1, "it is not a WebAssembly component"),
            ("module", 1, "it is a core module, not a component"),
            ("cut", 1, "broke off"),
            (&format!("polite.wasm#{wrong}"), 1, "was wanted"),
            ("polite.wasm#md5=1", 2, "a digest is `#sha256=DIGITS`"),
        ] {
            let outcome = run(&stage, &["plugin", "install", &format!("http://{}/{path}", server.address)]);
            assert!(outcome.code == Some(code) && outcome.stderr.contains(expected), "{path}: {outcome:?}");
        }
        assert_eq!(installed(&stage), Vec::<PathBuf>::new());
        let source = format!("http://{}/moved#{right}", server.address);
        let outcome = run(&stage, &[&["plugin", "install", &source][..], &YES].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let again = run(&stage, &["plugin", "update", "polite", "--json"]);
        assert!(again.stdout.contains("\"unchanged\""), "it is asked again where it came from: {again:?}");
    });
}

#[test]
fn the_proxy_of_the_environment_is_used_and_spared() {
    isolated(|| {
        let stage = stage();
        let registry = OciRegistry::start(&stage.folder.join("registry"), Door::Open);
        let ca = registry.authority.display().to_string();
        let proxy = Proxy::start();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let to = format!("oci://{}/polite", registry.host);
        let push = ["plugin", "push", &signed(&stage, "1.0.0", ""), &to, "--ca", &ca];
        let through = |further: &[(&str, &str)]| {
            let variable = format!("http://{}", proxy.address);
            stage.relay(&push).env("HTTPS_PROXY", variable).envs(further.iter().copied()).run()
        };
        let spared = through(&[("NO_PROXY", "127.0.0.1")]);
        assert!(spared.code == Some(0) && proxy.asked().is_empty(), "{spared:?}: {:?}", proxy.asked());
        let pushed = through(&[]);
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        assert!(
            proxy.asked().iter().all(|to| *to == registry.host) && !proxy.asked().is_empty(),
            "{:?}",
            proxy.asked()
        );
        let gone = stage.relay(&push).env("HTTPS_PROXY", "http://127.0.0.1:1").run();
        assert!(gone.stderr.contains("127.0.0.1 port 1: ") && gone.code == Some(1), "{gone:?}");
    });
}

#[test]
fn no_agent_installs_signs_or_publishes() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["plugin", "keygen", "key.pem"]);
        let file = signed(&stage, "1.0.0", "");
        let server = WebServer::start(|_| Reply::of(404, ""));
        let to = format!("oci://{}/polite", server.address);
        let index = format!("http://{}/index.json", server.address);
        // Below the process of a harness, as a tool of its agent is.
        let deeds = [
            vec!["plugin", "install", &to, "--plain-http", "--yes"],
            vec!["plugin", "sign", &file, "--key", "key.pem"],
            vec!["plugin", "push", &file, &to, "--plain-http"],
            vec!["plugin", "inspect", &to, "--plain-http"],
            vec!["plugin", "search", "--index", &index],
        ];
        for deed in deeds {
            let outcome = stage.relay(&deed).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1").run();
            assert!(outcome.code == Some(4) && outcome.stderr.contains("belongs to an agent"), "{deed:?}: {outcome:?}");
        }
        assert!(server.asked().is_empty(), "nothing is asked before it is known who wants it: {:?}", server.asked());
    });
}

#[test]
fn an_install_that_is_killed_on_its_way_leaves_nothing() {
    isolated(|| {
        let stage = stage();
        let server = WebServer::start(|_| Reply::of(200, b"\0asm\x0d\0\x01\0").saying(1_000_000));
        let log = stage.folder.join("log");
        let source = format!("http://{}/polite.wasm", server.address);
        // Its body never comes to an end as long as the connection is open.
        let slow = WebServer::start(move |_| {
            std::thread::park();
            Reply::of(200, "")
        });
        let waiting = format!("http://{}/polite.wasm", slow.address);
        let mut running = stage.relay(&[&["plugin", "install", &waiting][..], &YES].concat()).start(&log);
        wait_for("it waits for its answer", || {
            let port = format!("{:04X}", slow.address.port());
            let table = fs::read_to_string("/proc/net/tcp").ok()?;
            table.lines().any(|line| line.contains(&format!(":{port} 01"))).then_some(())
        });
        running.kill();
        assert_eq!(installed(&stage), Vec::<PathBuf>::new());
        let cut = run(&stage, &[&["plugin", "install", &source][..], &YES].concat());
        assert!(cut.stderr.contains("broke off"), "{cut:?}");
        assert_eq!(installed(&stage), Vec::<PathBuf>::new());
    });
}

#[test]
fn a_list_of_adapters_is_searched() {
    isolated(|| {
        let stage = stage();
        let none = stage.run(&["plugin", "search"]);
        assert!(none.code == Some(2) && none.stderr.contains("there is no list to look in"), "{none:?}");
        let list = json!({"about": "ignored", "adapters": [
            {"name": "toad", "title": "Toad", "description": "A client for the terminal", "source": "oci://r.example/toad"},
            {"name": "newt", "source": "github:acme/newt", "keys": ["ed25519:QdOX-G52RRLigKS-cToYROcx9Tm39JOZ9Yeb0_0gqTE"]},
            {"name": "evil\u{1b}[2J", "title": "x\ny", "source": "oci://r.example/evil; rm -rf"},
        ]});
        fs::write(stage.home.join("list.json"), list.to_string()).expect("the home is writable");
        stage.configure("[adapters]\nindex = '~/list.json'\n");
        let all = stage.relay_ok(&["plugin", "search"]);
        assert!(all.contains("oci://r.example/toad") && all.contains("github:acme/newt"), "{all}");
        assert!(!all.contains('\u{1b}') && all.lines().count() == 4, "{all}");
        let found = stage.relay_ok(&["plugin", "search", "CLIENT", "terminal", "--json"]);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        assert_eq!(found["adapters"].as_array().map(Vec::len), Some(1), "{found}");
        let none = stage.relay_ok(&["plugin", "search", "terminal", "newt"]);
        assert!(none.contains("No adapter in the list is like this"), "{none}");
        // From the web, by a flag.
        let text = list.to_string();
        let server = WebServer::start(move |request| match request.target.as_str() {
            "/list.json" => Reply::of(200, &text),
            _ => Reply::of(200, "[]"),
        });
        let index = format!("http://{}/list.json", server.address);
        assert!(stage.relay_ok(&["plugin", "search", "newt", "--index", &index]).contains("github:acme/newt"));
        let other = format!("http://{}/other", server.address);
        let outcome = stage.run(&["plugin", "search", "--index", &other]);
        assert!(outcome.stderr.contains("is no list of adapters"), "{outcome:?}");
        let clear = stage.run(&["plugin", "search", "--index", "http://r.example/list.json"]);
        assert!(clear.code == Some(2) && clear.stderr.contains("is not https"), "{clear:?}");
    });
}

/// A server with one artifact.
fn serving(manifest: Reply, blob: Reply, layer: &str) -> WebServer {
    let layer = layer.to_owned();
    WebServer::start(move |request| {
        let is_blob = request.target.contains("/blobs/");
        if is_blob && request.target.contains(&layer) {
            blob.clone()
        } else if is_blob {
            Reply::of(404, "")
        } else {
            manifest.clone()
        }
    })
}

/// What is in the folder of installed adapters, without its lock.
fn installed(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.data.join("plugins")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| !path.ends_with(".lock")).collect()
}

/// Writes what `docker login` would.
fn log_in(stage: &Stage, registry: &str, login: &str) {
    let folder = stage.home.join(".docker");
    fs::create_dir_all(&folder).expect("the home is writable");
    let text = json!({"auths": {registry: {"auth": login}}}).to_string();
    fs::write(folder.join("config.json"), text).expect("the home is writable");
}

/// The same with a credential helper.
fn helper(stage: &Stage, registry: &str) {
    stage.program(
        "docker-credential-tests",
        &format!("#!/bin/sh\nread server\n[ \"$1 $server\" = 'get {registry}' ] || exit 1\necho '{{\"Username\":\"user\",\"Secret\":\"secret\"}}'\n"),
    );
    let folder = stage.home.join(".docker");
    fs::create_dir_all(&folder).expect("the home is writable");
    let text = json!({"credHelpers": {registry: "tests"}}).to_string();
    fs::write(folder.join("config.json"), text).expect("the home is writable");
}

/// A folder with this version of the polite adapter, and its manifest beside it.
fn package(stage: &Stage, version: &str, more: &str) -> String {
    let folder = stage.folder.join(format!("unsigned-{version}-{}", more.len()));
    let text = manifest("polite").replace("0.1.0", version) + more;
    ship(&folder, "polite", &component(env!("CARGO_TARGET_TMPDIR"), "polite"), &text).display().to_string()
}

/// The same as one file, signed.
fn signed(stage: &Stage, version: &str, more: &str) -> String {
    let from = package(stage, version, more);
    let file = stage.folder.join(format!("signed-{version}-{}.wasm", more.len())).display().to_string();
    stage.relay_ok(&["plugin", "sign", &from, "--key", "key.pem", "--output", &file]);
    file
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    let relay: Program = stage.relay(arguments);
    relay.env("XDG_CACHE_HOME", format!("{}/cache", env!("CARGO_TARGET_TMPDIR"))).run()
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
