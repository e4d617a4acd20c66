//! Where adapters come from, and what happens if a file changes.

mod common;

use std::os::unix::fs::PermissionsExt;

use adapters::{Compilation, Condition, Source};
use common::{Stage, component, hook};
use mesh::ports::harness::{Harness as _, Harnesses as _};

/// The adapters of this repository, by name.
fn plugins() -> Vec<String> {
    let folders = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins")).expect("plugins/ is there");
    let adapters = folders.flatten().filter(|folder| folder.path().join("adapter.toml").is_file());
    let mut names: Vec<String> = adapters.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn built_in_adapters_are_loaded_and_answer() {
    let stage = Stage::with(&[]);
    let adapters = stage.adapters_with(|settings| settings.plugin_folders.clear());
    assert_eq!(adapters.names(), plugins(), "each folder of plugins/ that has a manifest");
    for name in adapters.names() {
        let harness = adapters.get(&name).await.expect("it loads").expect("it is known");
        assert_eq!(harness.about().harness, name);
    }
    let (states, unused) = adapters.states().await;
    assert!(unused.is_empty(), "{unused:?}");
    for state in states {
        assert_eq!(state.source, Source::BuiltIn);
        assert!(state.grants.iter().all(|grant| grant.given), "{}", state.name);
        assert_eq!(state.counters.faults, 0, "{}: {:?}", state.name, state.counters.last_fault);
    }
}

#[tokio::test]
async fn a_new_version_is_picked_up_between_two_calls() {
    let stage = Stage::with(&["polite"]);
    let adapters = stage.adapters();
    let first = adapters.adapter("polite").await.expect("loaded").expect("known");
    let again = adapters.adapter("polite").await.expect("loaded").expect("known");
    assert!(std::sync::Arc::ptr_eq(&first, &again));
    // The same component with one more custom section is another version.
    let mut newer = component("polite");
    newer.extend_from_slice(b"\0\x05\x04more");
    stage.put("polite", &newer);
    let second = adapters.adapter("polite").await.expect("loaded").expect("known");
    assert!(!std::sync::Arc::ptr_eq(&first, &second));
    second.discover().await.expect("it answers");
}

#[tokio::test]
async fn a_broken_new_version_leaves_the_old_one_running() {
    let stage = Stage::with(&["polite"]);
    let adapters = stage.adapters();
    hook(&adapters, "polite", "Stop").await.expect("it answers");
    for broken in [&b"garbage"[..], b"\0asm\x0d\0\x01\0garbage", b"\0asm\x01\0\0\0"] {
        stage.put("polite", broken);
        hook(&adapters, "polite", "Stop").await.expect("the old one answers");
    }
    let (states, _) = adapters.states().await;
    let state = states.iter().find(|state| state.name == "polite").expect("it is listed");
    assert!(
        matches!(&state.condition, Condition::Outdated(why) if why.contains("core module")),
        "{:?}",
        state.condition
    );
    std::fs::remove_dir_all(stage.plugins().join("polite")).expect("removed");
    assert!(adapters.adapter("polite").await.expect("no failure").is_none());
}

#[tokio::test]
async fn the_name_of_a_built_in_adapter_is_taken_only_with_consent() {
    let stage = Stage::with(&["polite"]);
    let manifest = stage.plugins().join("polite/adapter.toml");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, text.replace("\"polite\"", "\"generic\"")).expect("written");
    let adapters = stage.adapters();
    let generic = adapters.get("generic").await.expect("loaded").expect("known");
    assert_eq!(generic.about().harness, "generic");
    let (_, unused) = adapters.states().await;
    let why: String = unused.iter().map(|unused| unused.why.clone()).collect();
    assert!(why.contains("relay-mesh plugin grant generic replaces-built-in"), "{why}");
    stage.grant(&["replaces-built-in"]);
    let error = stage.adapters().adapter("generic").await.err().expect("it is tried");
    assert!(error.to_string().contains("says that it is for `polite`"), "{error}");
}

async fn check_cache(damage: impl Fn(&std::path::Path), expected: Compilation) {
    let stage = Stage::with(&["polite"]);
    let cache = stage.folder.path().join("cache");
    let load = || async {
        let adapters = stage.adapters_with(|settings| settings.cache = cache.clone());
        hook(&adapters, "polite", "Stop").await.expect("it answers");
        let (states, _) = adapters.states().await;
        states.into_iter().find(|state| state.name == "polite").expect("it is listed").condition
    };
    assert_eq!(load().await, Condition::Loaded(Compilation::Fresh));
    assert_eq!(load().await, Condition::Loaded(Compilation::Cached));
    let mode = std::fs::metadata(&cache).expect("a folder").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    damage(&cache);
    assert_eq!(load().await, Condition::Loaded(expected));
    assert!(!cache.join("old.cwasm").exists(), "what is long out of use goes");
}

fn each(cache: &std::path::Path, change: impl Fn(&std::path::Path)) {
    for entry in std::fs::read_dir(cache).expect("a folder").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "cwasm") {
            change(&entry.path());
        }
    }
}

#[tokio::test]
async fn compiled_code_is_kept_and_never_trusted_further_than_it_deserves() {
    check_cache(|_| {}, Compilation::Cached).await;
    check_cache(|cache| std::fs::remove_dir_all(cache).expect("removed"), Compilation::Fresh).await;
    check_cache(|cache| each(cache, |file| std::fs::write(file, b"garbage").expect("written")), Compilation::Fresh)
        .await;
    let flip = |file: &std::path::Path| {
        let mut bytes = std::fs::read(file).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).expect("written");
    };
    check_cache(|cache| each(cache, flip), Compilation::Fresh).await;
    let open = |mode| {
        move |path: &std::path::Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
        }
    };
    check_cache(|cache| each(cache, open(0o666)), Compilation::Fresh).await;
    check_cache(open(0o777), Compilation::Fresh).await;
    let leave_old_code = |cache: &std::path::Path| {
        std::fs::remove_dir_all(cache).expect("removed");
        std::fs::create_dir(cache).expect("a folder");
        let old = std::fs::File::create(cache.join("old.cwasm")).expect("a file");
        old.set_modified(std::time::UNIX_EPOCH).expect("set");
    };
    check_cache(leave_old_code, Compilation::Fresh).await;
    let replace_by_file = |cache: &std::path::Path| {
        std::fs::remove_dir_all(cache).expect("removed");
        std::fs::write(cache, "a file").expect("written");
    };
    check_cache(replace_by_file, Compilation::Unkept).await;
}

#[tokio::test]
async fn a_cache_that_cannot_be_used_gives_way_to_the_one_aside() {
    let stage = Stage::with(&["polite"]);
    let (cache, aside) = (stage.folder.path().join("cache"), stage.folder.path().join("aside"));
    let load = || async {
        let adapters = stage.adapters_with(|settings| {
            settings.cache = cache.clone();
            settings.cache_aside = Some(aside.clone());
        });
        hook(&adapters, "polite", "Stop").await.expect("it answers");
        let (states, _) = adapters.states().await;
        let condition = states.into_iter().find(|state| state.name == "polite").expect("it is listed").condition;
        (condition, adapters.caches().into_iter().map(|(_, fault)| fault.is_none()).collect::<Vec<bool>>())
    };
    std::fs::write(&cache, "a file").expect("written");
    assert_eq!(load().await, (Condition::Loaded(Compilation::Fresh), vec![false, true]));
    assert_eq!(load().await, (Condition::Loaded(Compilation::Cached), vec![false, true]), "compiled once");
    std::fs::remove_file(&cache).expect("removed");
    assert_eq!(load().await, (Condition::Loaded(Compilation::Cached), vec![true]));
    std::fs::remove_dir_all(&aside).expect("removed");
    assert_eq!(load().await, (Condition::Loaded(Compilation::Fresh), vec![true]));
    assert!(!aside.exists(), "it is not made where it is not needed");
}

#[test]
fn the_cache_may_be_deleted_at_any_moment() {
    let stage = Stage::with(&["polite"]);
    let cache = stage.folder.path().join("cache");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let load = || async {
        for _ in 0..6 {
            let adapters = stage.adapters_with(|settings| settings.cache = cache.clone());
            let reply = hook(&adapters, "polite", "Stop").await.expect("it answers");
            assert_eq!(reply.stdout.as_deref(), Some("Stop ticket you have mail"));
        }
    };
    let deleted = std::thread::scope(|scope| {
        let deleting = scope.spawn(|| {
            let mut deleted = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                deleted += usize::from(std::fs::remove_dir_all(&cache).is_ok());
                std::thread::yield_now();
            }
            deleted
        });
        let outcome = scope.spawn(|| runtime().block_on(load())).join();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome.expect("every load went well");
        deleting.join().expect("it deleted")
    });
    assert!(deleted > 0, "there was something to delete meanwhile");
}

#[tokio::test]
async fn machine_code_of_another_engine_is_compiled_anew() {
    let checksum = |bytes: &[u8]| format!("{:08x} {}", crc32fast::hash(bytes), bytes.len());
    // Its checksum is right, but this engine cannot load it.
    let foreign = |file: &std::path::Path| {
        std::fs::write(file, b"of another engine").expect("written");
        std::fs::write(file.with_extension("crc32"), checksum(b"of another engine")).expect("written");
    };
    check_cache(|cache| each(cache, foreign), Compilation::Fresh).await;
    // Another engine's files have other names, beside ours.
    let renamed = |file: &std::path::Path| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let (digest, _) = name.split_once('-').expect("a digest");
        for extension in ["cwasm", "crc32"] {
            let other = file.with_file_name(format!("{digest}-0123456789abcdef.{extension}"));
            std::fs::rename(file.with_extension(extension), other).expect("renamed");
        }
    };
    check_cache(|cache| each(cache, renamed), Compilation::Fresh).await;
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[tokio::test]
async fn what_is_taken_is_gone_at_the_next_call_of_a_process_that_runs() {
    let stage = Stage::with(&["hostile"]);
    std::fs::write(stage.home().join(".hostile/notes"), "read me").expect("written");
    let adapters = stage.adapters();
    let read = async || {
        let answer = hook(&adapters, "hostile", "answer:file config notes").await;
        answer.map_or_else(|denied| denied.to_string(), |reply| reply.stdout.unwrap_or_default())
    };
    assert!(read().await.contains("has no grant `roots.config`"));
    stage.grant(&["roots.config"]);
    assert_eq!(read().await, "read me");
    stage.grant(&["notices"]);
    assert!(read().await.contains("has no grant `roots.config`"));
}
