//! packaging/install.sh, with a release of a stand-in for the program: it installs, replaces an older program, and
//! refuses what is broken so that the older one still works.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use test_support::{Outcome, Program, Stage, isolated};

/// The archive that it looks for on this machine.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

#[test]
fn an_older_program_is_replaced() {
    isolated(|| {
        let stage = stage();
        let place = InstallFolder(stage.folder.join("place"));
        let outcome = place.install("true");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let said = format!("relay-mesh 2.0.0 is installed: {}\n", place.bin().join("relay-mesh").display());
        assert!(outcome.stdout.ends_with(&said), "{outcome:?}");
        assert!(outcome.stderr.contains("is not on your PATH"), "{outcome:?}");
        place.holds_alone("2.0.0");
    });
}

#[test]
fn a_signature_is_verified_if_a_key_is_known() {
    isolated(|| {
        let stage = stage();
        let place = InstallFolder(stage.folder.join("verified"));
        let outcome = place.install("sign own; known own");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("SHA256SUMS is signed by RW"), "{outcome:?}");
        assert!(!outcome.stderr.contains("warning"), "{outcome:?}");
        place.holds_alone("2.0.0");

        let place = InstallFolder(stage.folder.join("not-verified"));
        let outcome = place.install("sign own; known own; only");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let said = "warning: the signature of SHA256SUMS was not verified, because there is no minisign";
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        assert!(!outcome.stdout.contains("is signed"), "{outcome:?}");
        place.holds_alone("2.0.0");

        // Without xz the archive by gzip is taken, and without gzip the one by xz.
        for (without, taken) in [("xz", "gz"), ("gzip", "xz")] {
            let place = InstallFolder(stage.folder.join(format!("without-{without}")));
            let outcome = place.install(&format!("rm $RELEASE/*.tar.[!{}]*; only; rm tools/{without}", &taken[..1]));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            place.holds_alone("2.0.0");
        }
    });
}

#[test]
fn the_archive_is_the_one_for_the_processor_of_the_mac() {
    isolated(|| {
        let stage = stage();
        // What the machine says of itself, and of its processor below Rosetta; and the archive that fits.
        for (number, (machine, arm, target)) in [
            ("arm64", "echo 1", "aarch64-apple-darwin"),
            ("x86_64", "echo 1", "aarch64-apple-darwin"),
            ("x86_64", "echo 0", "x86_64-apple-darwin"),
            // A Mac that has never heard of ARM.
            ("x86_64", "exit 1", "x86_64-apple-darwin"),
        ]
        .into_iter()
        .enumerate()
        {
            let place = InstallFolder(stage.folder.join(format!("mac-{number}")));
            let outcome = place.install(&format!("{ON_A_MAC}; mac {machine} '{arm}' {target}"));
            assert_eq!(outcome.code, Some(0), "{machine}, {arm}: {outcome:?}");
            place.holds_alone("2.0.0");
        }
    });
}

#[test]
fn what_a_killed_installer_left_is_removed_after_more_than_a_day() {
    isolated(|| {
        let stage = stage();
        let place = InstallFolder(stage.folder.join("killed"));
        let outcome = place.install(KILLED);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        // The room's first process is there, the last possible number is no process's.
        place.holds(
            "2.0.0",
            &[
                ".relay-mesh-install-1-running",
                ".relay-mesh-install-4194304-fresh",
                ".relay-mesh-install-4194304-link",
                ".relay-mesh-install-of-another-kind",
            ],
        );
        assert!(place.0.join("elsewhere/file").is_file(), "a link is not followed");
    });
}

/// One installer is killed while it downloads, long ago; beside what it left are folders that are to stay.
const KILLED: &str = r#"stub cp 'kill -9 $PPID'; sh $INSTALLER && exit 9; rm tools/cp
[ -d $BIN/.relay-mesh-install-*-* ]; mkdir elsewhere; touch elsewhere/file
cd $BIN; mkdir .relay-mesh-install-4194304 .relay-mesh-install-1-running .relay-mesh-install-of-another-kind
touch .relay-mesh-install-4194304/relay-mesh; ln -s ../../elsewhere .relay-mesh-install-4194304-link
touch -h -d '3 days ago' .relay-mesh-install-*; mkdir .relay-mesh-install-4194304-fresh; cd ../..
"#;

#[test]
fn three_at_once_each_end_well() {
    isolated(|| {
        let stage = stage();
        let place = InstallFolder(stage.folder.join("at-once"));
        let outcome = place.install(THREE_AT_ONCE);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        place.holds_alone("2.0.0");
        for number in 1..=3 {
            let said = std::fs::read_to_string(place.0.join(format!("said-{number}"))).expect("it ran");
            assert!(said.starts_with("relay-mesh 2.0.0 is installed: "), "{said}");
        }
    });
}

/// None of the three goes on before all of them have begun to download.
const THREE_AT_ONCE: &str = r#"real=$(command -v cp)
stub cp "touch begun-\$PPID; until [ \$(ls -d begun-* | wc -l) -ge 3 ]; do :; done; exec $real \"\$@\""
running=; for number in 1 2 3; do sh $INSTALLER >said-$number & running="$running $!"; done
for one in $running; do wait $one; done
"#;

#[test]
fn what_is_broken_is_refused_and_the_older_program_still_works() {
    isolated(|| {
        let stage = stage();
        for (number, (what, said)) in REFUSALS.iter().enumerate() {
            let place = InstallFolder(stage.folder.join(number.to_string()));
            let outcome = place.install(what);
            assert_eq!(outcome.code, Some(1), "{what}: {outcome:?}");
            let told = outcome.stderr.lines().any(|line| line.starts_with("error: ") && line.contains(said));
            assert!(told, "{what}: {said}: {outcome:?}");
            place.holds_alone("1.0.0");
        }
    });
}

/// Each: what goes wrong, as a preparation in a shell, and what the installer says of it.
const REFUSALS: &[(&str, &str)] = &[
    ("echo more >>$RELEASE/$ARCHIVE", "is not what SHA256SUMS says"),
    ("truncate -s 1000 $RELEASE/$ARCHIVE", "is not what SHA256SUMS says"),
    ("sed -i s/^[0-9a-f]/z/ $RELEASE/SHA256SUMS", "names no archive for"),
    ("sed -i s/-unknown-linux-/-plan9-/ $RELEASE/SHA256SUMS", "names no archive for"),
    ("sed s/-2.0.0-/-3.0.0-/ $RELEASE/SHA256SUMS >more; cat more >>$RELEASE/SHA256SUMS", "names several archives for"),
    ("rm $RELEASE/$ARCHIVE", "could not be copied"),
    ("rm $RELEASE/SHA256SUMS", "could not be copied"),
    ("sign own; known another", "is not signed by the key RW"),
    ("sign own; known own; echo >>$RELEASE/SHA256SUMS", "is not signed by the key RW"),
    ("sign own; known own; echo >$RELEASE/SHA256SUMS.minisig", "is not signed by the key RW"),
    ("sign own; known own; rm $RELEASE/SHA256SUMS.minisig", "SHA256SUMS.minisig could not be copied"),
    ("sign own; export RELAY_MESH_MINISIGN_KEY=nonsense", "is not signed by the key nonsense"),
    // Signed rightly, and the archive is another.
    ("sign own; known own; echo more >>$RELEASE/$ARCHIVE", "is not what SHA256SUMS says"),
    // The disk is full: it holds the old program and less than the archive.
    ("mount -t tmpfs -o size=64k full $BIN; cp old $BIN/relay-mesh", "could not be copied"),
    // It holds the archive, and less than what is in it.
    ("mount -t tmpfs -o size=340k full $BIN; cp old $BIN/relay-mesh", "could not be unpacked"),
    // A download that breaks off half-way, as curl tells it.
    (
        "stub curl 'for last; do :; done; head -c 1000 $RELEASE/${last##*/} >$5; exit 18'; https",
        "could not be downloaded",
    ),
    ("stub curl true; only; rm tools/sha256sum; https", "neither sha256sum nor shasum"),
    ("only; https", "there is neither curl nor wget"),
    ("only; rm tools/tar", "there is no tar"),
    ("rm $RELEASE/*.tar.xz; sed -i /xz$/d $RELEASE/SHA256SUMS", "names no archive for"),
    ("export RELAY_MESH_URL=http://127.0.0.1/", "only https:// and file:// are safe"),
    ("unset RELAY_MESH_URL", "RELAY_MESH_URL is not set"),
    ("unset RELAY_MESH_BIN HOME", "HOME is not set"),
    ("stub uname 'echo Plan9'", "there is no package for Plan9"),
    ("touch file; export RELAY_MESH_BIN=$PWD/file/bin", "cannot be made"),
    ("printf 'exit 1' >program; release 3.0.0 program", "does not run on this machine"),
];

/// Functions of the preparations: a release of a version with a program, tools that stand in for others, a PATH with
/// only what the installer needs.
const PREPARATION: &str = r#"set -eu
release() {
    rm -rf $RELEASE; mkdir -p $RELEASE; ARCHIVE=relay-mesh-$1-$TARGET.tar.xz; stem=relay-mesh-$1-$TARGET
    mkdir $stem; printf '#!/bin/sh\n' | cat - $2 >$stem/relay-mesh; chmod +x $stem/relay-mesh
    head -c 200000 /dev/urandom >$stem/README.md
    tar -cJf $RELEASE/$ARCHIVE $stem; tar -czf $RELEASE/$stem.tar.gz $stem; (cd $RELEASE && sha256sum * >SHA256SUMS)
}
stub() { mkdir -p tools; printf '#!/bin/sh\n%s\n' "$2" >tools/$1; chmod +x tools/$1; PATH=$PWD/tools:$PATH; }
only() {
    mkdir -p tools
    for one in sh uname id mkdir mktemp cp rm mv tar gzip xz grep cut wc find sha256sum; do
        ln -s $(command -v $one) tools/$one
    done
    PATH=$PWD/tools
}
sign() { minisign -G -W -p $1.pub -s $1.key >said; minisign -S -s $1.key -m $RELEASE/SHA256SUMS; }
known() { [ -e $1.pub ] || minisign -G -W -p $1.pub -s $1.key >said; export RELAY_MESH_MINISIGN_KEY=$(sed -n 2p $1.pub); }
https() { export RELAY_MESH_URL=https://127.0.0.1; }
echo echo relay-mesh 1.0.0 >program; release 1.0.0 program
sh $INSTALLER
cp $BIN/relay-mesh old
echo echo relay-mesh 2.0.0 >program; release 2.0.0 program
"#;

/// What the installer asks a Mac, whose tar unpacks xz without a program for it. There is an archive for it, by xz alone.
const ON_A_MAC: &str = r#"mac() {
    TARGET=$3; release 2.0.0 program; rm $RELEASE/*.gz
    real=$PATH; only; rm tools/uname tools/tar tools/xz; PATH=$real
    stub uname "case \$1 in -m) echo $1 ;; *) echo Darwin ;; esac"; stub sysctl "$2"
    stub tar "PATH=$real; exec tar \"\$@\""
    PATH=$PWD/tools
}"#;

/// A folder with a release, and a home into which it is installed.
struct InstallFolder(PathBuf);

impl InstallFolder {
    /// Installs version 1.0.0, prepares version 2.0.0 and what is to go wrong, and installs again.
    fn install(&self, what: &str) -> Outcome {
        std::fs::create_dir(&self.0).expect("the stage is writable");
        let release = self.0.join("release");
        let script = format!("{PREPARATION}\n{what}\nexec /bin/sh $INSTALLER");
        Program::new("/bin/sh")
            .args(["-c", &script])
            .env("INSTALLER", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install.sh"))
            .env("RELEASE", &release)
            .env("RELAY_MESH_URL", format!("file://{}", release.display()))
            .env("BIN", self.bin())
            .env("RELAY_MESH_BIN", self.bin())
            .env("TARGET", TARGET)
            .within(&self.0)
            .run()
    }

    fn bin(&self) -> PathBuf {
        self.0.join("home/bin")
    }

    /// The folder of programs holds this version, which runs, and nothing that is unfinished.
    fn holds_alone(&self, version: &str) {
        self.holds(version, &[]);
    }

    /// The folder of programs holds this version, which runs, and beside it these.
    fn holds(&self, version: &str, others: &[&str]) {
        assert_eq!(Program::new(self.bin().join("relay-mesh")).succeed(), format!("relay-mesh {version}\n"));
        let inside = std::fs::read_dir(self.bin()).expect("it is there");
        let mut inside: Vec<_> = inside.map(|entry| entry.expect("it can be read").file_name()).collect();
        inside.sort();
        let mut expected = others.to_vec();
        expected.push("relay-mesh");
        assert_eq!(inside, expected);
    }
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
