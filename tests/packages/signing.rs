//! SHA256SUMS is signed if there is a key, and only so. The keys are made here, and thrown away.

use std::path::{Path, PathBuf};

use test_support::{Outcome, Program};

use crate::{TARGET, pack, stand_in};

#[test]
fn a_key_signs_the_digests_the_same_each_time() {
    let place = InstallFolder::new();
    let key = place.key("own", None);
    let first = place.pack(&[("RELAY_MESH_SIGNING_KEY", &key)]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(place.verified_by("own").code, Some(0));
    let signature = place.signature();
    assert!(signature.contains(concat!("trusted comment: relay-mesh ", env!("CARGO_PKG_VERSION"), " SHA256SUMS\n")));
    assert_eq!(place.pack(&[("RELAY_MESH_SIGNING_KEY", &key)]).code, Some(0));
    assert_eq!(place.signature(), signature);

    // What another key says, and what is said of other digests.
    place.key("another", None);
    assert_eq!(place.verified_by("another").code, Some(1));
    std::fs::write(place.out().join("SHA256SUMS"), "changed\n").expect("the folder is writable");
    assert_eq!(place.verified_by("own").code, Some(1));

    // Packed again without a key, nothing is left that would be of other digests.
    assert_eq!(place.pack(&[]).code, Some(0));
    assert!(!place.out().join("SHA256SUMS.minisig").exists());
}

#[test]
fn a_key_with_a_password_signs_if_the_password_is_given() {
    let place = InstallFolder::new();
    let key = place.key("own", Some("correct"));
    let given =
        |password: &str| place.pack(&[("RELAY_MESH_SIGNING_KEY", &key), ("RELAY_MESH_SIGNING_PASSWORD", password)]);
    let wrong = given("wrong");
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(
        wrong.stderr.contains("error: minisign did not sign ") && wrong.stderr.contains("hint: is the password right")
    );
    assert!(!place.out().join("SHA256SUMS.minisig").exists(), "nothing is half signed");
    assert_eq!(given("correct").code, Some(0));
    assert_eq!(place.verified_by("own").code, Some(0));
}

#[test]
fn a_key_that_cannot_sign_is_refused_before_anything_is_packed() {
    let place = InstallFolder::new();
    let locked = place.key("locked", Some("correct"));
    let missing = place.folder.path().join("missing").display().to_string();
    let public = place.folder.path().join("locked.pub").display().to_string();
    for (key, said) in [
        (&locked, "has a password, and there is no terminal to ask for it\nhint: run this in a terminal, or set "),
        (&missing, "which is no secret key of minisign: "),
        (&public, "which is no secret key of minisign: "),
    ] {
        let outcome = place.pack(&[("RELAY_MESH_SIGNING_KEY", key)]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains(said), "{said}: {outcome:?}");
        assert!(!outcome.stderr.contains("Traceback"), "{outcome:?}");
        assert!(!place.out().exists(), "nothing was packed");
    }
}

/// A folder with keys, a stand-in for the binary and what is packed from it.
struct InstallFolder {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl InstallFolder {
    fn new() -> InstallFolder {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let binary = stand_in(folder.path(), env!("CARGO_PKG_VERSION"));
        InstallFolder { folder, binary }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Makes a pair of keys of this name, and returns the path of the secret one.
    fn key(&self, name: &str, password: Option<&str>) -> String {
        let file = |ending: &str| self.folder.path().join(format!("{name}.{ending}")).display().to_string();
        let (public, secret) = (file("pub"), file("key"));
        // It asks twice, and takes what is no terminal too.
        let script = match password {
            None => "minisign -G -W -p \"$1\" -s \"$2\"",
            Some(_) => "printf '%s\\n%s\\n' \"$3\" \"$3\" | minisign -G -p \"$1\" -s \"$2\"",
        };
        Program::new("sh").args(["-c", script, "key", &public, &secret, password.unwrap_or_default()]).succeed();
        secret
    }

    /// Packs one small kind.
    fn pack(&self, variables: &[(&str, &str)]) -> Outcome {
        Program::new("env")
            .args(pack(&self.binary, &self.out()))
            .args(["--target", TARGET, "--only", "installer"])
            .env("SOURCE_DATE_EPOCH", "1795699023")
            .envs(variables.iter().copied())
            .run()
    }

    fn signature(&self) -> String {
        crate::read(&self.out().join("SHA256SUMS.minisig"))
    }

    fn verified_by(&self, name: &str) -> Outcome {
        let public = self.folder.path().join(format!("{name}.pub"));
        verify(&self.out().join("SHA256SUMS"), &public)
    }
}

fn verify(sums: &Path, public: &Path) -> Outcome {
    Program::new("minisign").args(["-V", "-q", "-m"]).arg(sums).arg("-p").arg(public).run()
}
