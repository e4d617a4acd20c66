#!/usr/bin/env python3
"""Packs a binary of relay-mesh as everything that people install it from. `make dist` runs this.

The same binary and the same commit give the same bytes. Files that are in the output folder already are replaced one
by one; SHA256SUMS is written last, over all of them.
"""

import argparse
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import deb
import homebrew
import npm
import rpm
import sbom
import tarball
import wheel
from release import ROOT, Release, finish, read_release

SUMS = "SHA256SUMS"


def installer(release: Release) -> dict[str, bytes]:
    text = (ROOT / "packaging/install.sh").read_text()
    return {"install.sh": text.replace("url=${RELAY_MESH_URL:-}", f"url=${{RELAY_MESH_URL:-{release.downloads()}}}").encode()}


def kinds(out: Path) -> dict[str, Callable[[Release], dict[str, bytes]]]:
    """Each kind of package. The formula comes after the archives, whose digests it holds."""
    return {
        "tarball": tarball.build,
        "deb": deb.build,
        "rpm": rpm.build,
        "npm": npm.build,
        "wheel": wheel.build,
        "homebrew": lambda release: homebrew.build(release.version, release.project, out),
        "installer": installer,
        "sbom": sbom.build,
    }


def write(path: Path, content: bytes) -> None:
    """Whole or not at all, also if the disk is full."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.chmod(0o755 if path.suffix == ".sh" else 0o644)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_sums(out: Path) -> None:
    files = sorted(file for file in out.iterdir() if file.is_file() and file.name != SUMS and file.name[0] != ".")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    write(out / SUMS, "".join(lines).encode())


def pack(binary: Path, target: str | None, only: list[str] | None, out: Path) -> None:
    release = read_release(binary, target)
    out.mkdir(parents=True, exist_ok=True)
    for name, build in kinds(out).items():
        if not only or name in only:
            for file, content in build(release).items():
                write(out / file, content)
                print(f"{out / file}: {len(content) / 1e6:.1f} MB")
    write_sums(out)


def main() -> int:
    names = list(kinds(Path()))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, required=True, help="the released program")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where packages go [default: dist]")
    parser.add_argument("--target", help="the binary's target [default: what its ELF header says]")
    parser.add_argument("--only", choices=names, action="append", help="one kind of package; may be given again")
    choice = parser.parse_args()
    return finish(lambda: pack(choice.binary, choice.target, choice.only, choice.out))


if __name__ == "__main__":
    sys.exit(main())
