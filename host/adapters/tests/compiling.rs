//! What compiling may take: a component that was built to be a burden ends at its limits, leaves nothing, and costs its
//! neighbours nothing.

#[path = "../../../tests/hostile/burden.rs"]
mod burden;
mod common;

use std::path::{Path, PathBuf};

use adapters::compiling::{Attempt, COMMAND, Limits};
use adapters::{Adapters, Package};
use common::{Stage, compiler, hook};

/// One second of a processor, and as much memory as it takes.
const SECOND: Limits = Limits { processor: (1, 0), memory: (8_192, 0) };
/// Little memory, and as much time as it takes.
const LITTLE: Limits = Limits { processor: (60, 0), memory: (400, 0) };

struct Scene {
    stage: Stage,
    cache: PathBuf,
}

impl Scene {
    /// The polite adapter, and one of this name that is a burden.
    fn new() -> Scene {
        let stage = Stage::with(&["polite"]);
        stage.put("stuck", &burden::component(1_000, 1_000));
        let cache = stage.folder.path().join("cache");
        Scene { stage, cache }
    }

    fn adapters(&self, limits: Limits, usually: Attempt) -> Adapters {
        self.stage.adapters_with(|settings| {
            settings.cache = self.cache.clone();
            settings.compiler = compiler(limits, usually);
        })
    }

    async fn told(&self, limits: Limits, usually: Attempt) -> String {
        let adapters = self.adapters(limits, usually);
        let told = adapters.adapter("stuck").await.err().expect("it is a burden").to_string();
        assert!(!told.contains('\n') && told.len() < 400, "{told}");
        assert_eq!(processes(&self.cache), 0, "nobody compiles any more");
        told
    }

    /// The files in the cache with this extension.
    fn kept(&self, extension: &str) -> usize {
        let entries = std::fs::read_dir(&self.cache).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension)).count()
    }
}

/// The processes that compile into this cache.
fn processes(cache: &Path) -> usize {
    let all = std::fs::read_dir("/proc").expect("a list").flatten();
    let cache = cache.display().to_string();
    let compiles = |words: &str| words.contains(COMMAND) && words.contains(&cache);
    all.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
        })
        .filter(|entry| {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            compiles(&String::from_utf8_lossy(&words))
        })
        .count()
}

#[tokio::test]
async fn what_is_a_burden_to_compile_ends_at_its_limits_and_leaves_nothing() {
    let scene = Scene::new();
    let told = scene.told(SECOND, Attempt::Trial).await;
    assert!(told.contains("compiling it takes more than 1 s of processor time"), "{told}");
    let told = scene.told(LITTLE, Attempt::Trial).await;
    assert!(told.contains("compiling it takes more than 400 MB of memory"), "{told}");
    assert_eq!(std::fs::read_dir(&scene.cache).expect("a folder").count(), 0);
    let neighbour = scene.adapters(Limits::default(), Attempt::InUse);
    let reply = hook(&neighbour, "polite", "Stop").await.expect("the neighbour answers");
    assert_eq!(reply.stdout.as_deref(), Some("Stop ticket you have mail"));
}

#[tokio::test]
async fn what_cannot_be_compiled_is_tried_a_few_times_and_then_no_more() {
    let scene = Scene::new();
    for _ in 0..3 {
        let told = scene.told(SECOND, Attempt::InUse).await;
        assert!(told.contains("compiling it takes more than 1 s of processor time"), "{told}");
    }
    // Each is another process, as hooks are. With limits that would suffice for hours, it is not begun.
    let endless = Limits { processor: (86_400, 0), memory: (8_192, 0) };
    let told = scene.told(endless, Attempt::InUse).await;
    assert!(told.contains("could not be compiled: compiling it takes more than 1 s"), "{told}");
    assert_eq!((scene.kept("failure"), scene.kept("cwasm"), scene.kept("tmp")), (1, 0, 0));
    let note = told.split('`').find(|word| word.ends_with(".failure")).expect("the note is named");
    std::fs::remove_file(note).expect("it can be deleted");
    let told = scene.told(SECOND, Attempt::InUse).await;
    assert!(told.contains("takes more than 1 s of processor time"), "{told}");
    // A user who wants to know is not told what was found before.
    let package = Package::open(&scene.stage.plugins().join("stuck")).expect("a package");
    let told = scene.adapters(LITTLE, Attempt::InUse).try_out(&package).await.expect_err("it is a burden").to_string();
    assert!(told.contains("more than 400 MB of memory"), "{told}");
}

#[tokio::test]
async fn what_an_adapter_is_can_be_told_without_compiling_it() {
    let scene = Scene::new();
    scene.stage.put("too-new", &common::component("too-new"));
    // Nothing could be compiled with these.
    let adapters = scene.adapters(Limits { processor: (0, 0), memory: (0, 0) }, Attempt::Trial);
    let burden = adapters.look_over("stuck").expect("it can be read").expect("it is known");
    assert_eq!((burden.imports.len(), burden.exports.len()), (0, 0));
    let polite = adapters.look_over("polite").expect("it can be read").expect("it is known");
    assert!(polite.exports.contains(&"relay:adapter/hooks@0.1.0".to_owned()), "{:?}", polite.exports);
    assert!(polite.imports.contains(&"relay:adapter/types@0.1.0".to_owned()), "{:?}", polite.imports);
    assert_eq!(polite.interfaces, ["0.1.0".to_owned()].into());
    let newer = adapters.look_over("too-new").expect("it can be read").expect("it is known");
    assert!(newer.interfaces.contains("0.2.0"), "{:?}", newer.interfaces);
    assert_eq!(scene.kept("cwasm"), 0);
}
