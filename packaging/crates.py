#!/usr/bin/env python3
"""Packs our crates as crates.io takes them, into OUT/crates. `make dist` runs this, after a build.

The crate that runs adapters needs them as components, and what is packed has no sources of them: they travel with it,
with their digests. `--install ROOT` builds the program from the packed files alone, somewhere else, into ROOT/bin.
`--publish` gives to crates.io what it does not have yet, after a build (`make plugins`).
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from errors import PackagingError, finish
from release import ROOT

PREBUILT = ROOT / "host/adapters/prebuilt"
PROGRAM = "relay-mesh"
INDEX = "https://index.crates.io"


def cargo(*words: str, folder: Path = ROOT) -> str:
    outcome = subprocess.run(["cargo", *words], cwd=folder, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise PackagingError(f"cargo {words[0]} ended with {outcome.returncode}\n{outcome.stderr.strip()}")
    return outcome.stdout


def published() -> list[tuple[str, str]]:
    """Names and versions of the crates that `publish = false` does not keep here."""
    listing = json.loads(cargo("metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"))
    return [(one["name"], one["version"]) for one in listing["packages"] if one["publish"] is None]


@contextlib.contextmanager
def with_components() -> Iterator[None]:
    """Fills `prebuilt/` of the crate that embeds the adapters with what its last build has made of their sources, for as
    long as this lasts. Who packs at the same time waits."""
    with open(PREBUILT.parent / "Cargo.toml") as ours:
        fcntl.flock(ours, fcntl.LOCK_EX)
        try:
            bring_components()
            yield
        finally:
            shutil.rmtree(PREBUILT, ignore_errors=True)


def bring_components() -> None:
    shutil.rmtree(PREBUILT, ignore_errors=True)
    PREBUILT.mkdir()
    sums = []
    for manifest in sorted(ROOT.glob("plugins/*/adapter.toml")):
        name = manifest.parent.name
        component = manifest.with_name(f"{name}.wasm")
        if not component.is_file():
            raise PackagingError(f"there is no {component}\nhint: `make plugins` builds it")
        for source, suffix in [(manifest, "toml"), (component, "wasm")]:
            content = source.read_bytes()
            (PREBUILT / f"{name}.{suffix}").write_bytes(content)
            sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}.{suffix}\n")
    (PREBUILT / "SHA256SUMS").write_text("".join(sums))


def pack(out: Path) -> None:
    crates = published()
    with tempfile.TemporaryDirectory() as scratch, with_components():
        # What is packed is built by `--install`, and not each crate by itself.
        words = [word for name, _ in crates for word in ("-p", name)]
        cargo("package", "--offline", "--locked", "--allow-dirty", "--no-verify", "--target-dir", scratch, *words)
        folder = out / "crates"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, version in crates:
            file = f"{name}-{version}.crate"
            shutil.copyfile(Path(scratch) / "package" / file, folder / file)
            print(f"{folder / file}: {(folder / file).stat().st_size / 1e6:.1f} MB")


def install(out: Path, root: Path) -> None:
    """What a person's `cargo install relay-mesh` does once the crates are published: until then each of ours is told
    where the other lies unpacked."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, version in published():
            with tarfile.open(out / "crates" / f"{name}-{version}.crate") as packed:
                packed.extractall(scratch, filter="data")
        patches = []
        for name, version in published():
            if name != PROGRAM:
                patches += ["--config", f'patch.crates-io.{name}.path="{scratch}/{name}-{version}"']
        program = next(f"{name}-{version}" for name, version in published() if name == PROGRAM)
        words = ["--debug", "--offline", "--target-dir", f"{scratch}/target", "--root", str(root)]
        cargo("install", *patches, *words, "--path", program, folder=Path(scratch))


def publish() -> None:
    """Cargo takes them in the order of their dependencies, and waits until crates.io offers each. Those that are there
    already are left out, so that a run which broke off can be run again."""
    missing = [name for name, version in published() if version not in versions_on_crates_io(name)]
    if not missing:
        print("all crates were published already")
        return
    with with_components():
        words = [word for name in missing for word in ("-p", name)]
        cargo("publish", "--locked", "--allow-dirty", "--no-verify", *words)
    print(f"published: {', '.join(missing)}")


def versions_on_crates_io(name: str) -> set[str]:
    request = urllib.request.Request(f"{INDEX}/{name[:2]}/{name[2:4]}/{name}", headers={"User-Agent": PROGRAM})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {json.loads(line)["vers"] for line in answer.read().decode().splitlines()}
    except urllib.error.HTTPError as error:
        if error.code in (404, 410, 451):
            return set()
        raise PackagingError(f"crates.io does not say which versions of {name} it has: {error}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where packages go [default: dist]")
    parser.add_argument("--install", type=Path, metavar="ROOT", help="build the program from what is packed there")
    parser.add_argument("--publish", action="store_true", help="give them to crates.io")
    choice = parser.parse_args()
    if choice.publish:
        return finish(publish)
    return finish(lambda: install(choice.out, choice.install) if choice.install else pack(choice.out))


if __name__ == "__main__":
    sys.exit(main())
