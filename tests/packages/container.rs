//! The container image: tools that know the format take it, and it works as the user whom it names.

use std::time::Instant;

use serde_json::Value;
use test_support::{Program, isolated};

use crate::installed::{CleanRoot, dist, hello_world, named, stage, use_it};

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn the_image_works_as_the_user_whom_it_names() {
    isolated(|| {
        let stage = stage();
        let image = format!("oci-archive:{}:{}", dist().join(named(".tar")).display(), env!("CARGO_PKG_VERSION"));
        let skopeo = |what: &[&str]| Program::new("skopeo").args(what).env("HOME", &stage.home).succeed();
        let config: Value = serde_json::from_str(&skopeo(&["inspect", "--config", &image])).expect("it is JSON");
        let said = &config["config"];
        assert_eq!(said["Entrypoint"][0], "/usr/bin/relay-mesh");
        assert_eq!(said["Labels"]["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
        let user = said["User"].as_str().and_then(|user| user.split_once(':')).expect("it names a user and a group");
        assert_ne!(user.0.parse(), Ok(0), "a number, and not root");
        let variables: Vec<String> =
            said["Env"].as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect();

        let began = Instant::now();
        let layout = format!("{}:image", stage.folder.join("layout").display());
        // It compares each digest.
        skopeo(&["copy", "--quiet", &image, &format!("oci:{layout}")]);
        let bundle = stage.folder.join("bundle");
        Program::new("umoci").args(["unpack", "--rootless", "--image", &layout]).arg(&bundle).succeed();
        let seconds = began.elapsed().as_secs_f64();

        let place = CleanRoot::of(bundle.join("rootfs"), stage);
        hello_world(&place.folder.join("bin/hello-world"));
        let home = said["WorkingDir"].as_str().expect("it names a folder");
        use_it(".tar", seconds, "/bin/hello-world", || {
            Program::new("unshare")
                .args([format!("--map-user={}", user.0), format!("--map-group={}", user.1)])
                .arg(format!("--root={}", place.folder.display()))
                .arg(format!("--wd={home}"))
                .args(["/bin/busybox", "env", "-i"])
                .args(&variables)
                .args(["/bin/busybox", "sh"])
        });
        assert!(
            place.folder.join(&home[1..]).read_dir().is_ok_and(|mut inside| inside.next().is_some()),
            "its home is used"
        );
    });
}

#[test]
#[ignore = "`make dist` runs it, after packing"]
fn a_user_of_the_image_owns_nothing_but_the_home() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    Program::new("tar").arg("-xf").arg(dist().join(named(".tar"))).arg("-C").arg(folder.path()).succeed();
    let largest = "ls -S blobs/sha256/* | head -n 1 | xargs tar --numeric-owner -tvzf";
    let listed = Program::new("sh").args(["-c", largest]).within(folder.path()).succeed();
    let owned: Vec<&str> = listed.lines().filter(|line| !line.contains(" 0/0 ")).collect();
    assert_eq!(owned.len(), 1, "{listed}");
    assert!(owned[0].starts_with("drwx------ 65532/65532 ") && owned[0].ends_with(" home/relay-mesh/"), "{listed}");
    assert!(listed.lines().any(|line| line.starts_with("drwxrwxrwt 0/0 ") && line.ends_with(" tmp/")), "{listed}");
}
