#!/usr/bin/env python3
"""Packs a binary of relay-mesh as everything that people install it from. `make dist` runs this.

What is the same for all platforms is packed on Linux alone: two machines may compress the same text to different bytes.

The same binary and the same commit give the same bytes. Files that are in the output folder already are replaced one
by one; SHA256SUMS is written last, over all of them, and signed if RELAY_MESH_SIGNING_KEY is the path of a secret key of
minisign. A key with a password is asked for at the terminal, or taken from RELAY_MESH_SIGNING_PASSWORD.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import auditable
import bundles
import deb
import homebrew
import licences
import npm
import oci
import rpm
import sbom
import tarball
import wheel
from errors import PackagingError, finish
from linked import linked
from release import ROOT, Release, ask, read_release
from sums import check_key, write, write_sums
from targets import Target

OF_MACOS = ("tarball", "npm", "wheel", "sbom")


def installer(release: Release) -> dict[str, bytes]:
    text = (ROOT / "packaging/install.sh").read_text()
    for variable, own in (("URL", release.downloads()), ("MINISIGN_KEY", release.project.minisign_key)):
        text = text.replace(f"${{RELAY_MESH_{variable}:-}}", f"${{RELAY_MESH_{variable}:-{own}}}", 1)
    return {"install.sh": text.encode()}


def kinds(out: Path) -> dict[str, Callable[[Release], dict[str, bytes]]]:
    """Each kind of package. The formula comes after the archives, whose digests it holds."""
    return {
        "tarball": tarball.build,
        "deb": deb.build,
        "rpm": rpm.build,
        "npm": npm.build,
        "npm-launcher": npm.launcher,
        "wheel": wheel.build,
        "oci": oci.build,
        "bundles": bundles.build,
        "homebrew": lambda release: homebrew.build(release.version, release.project, out),
        "installer": installer,
        "sbom": sbom.build,
    }


def chosen(target: Target, only: list[str] | None) -> list[str]:
    """The kinds that are packed for a target: all of them, or those that were asked for."""
    fitting = [name for name in kinds(Path()) if target.linux() or name in OF_MACOS]
    for name in only or fitting:
        if name not in fitting:
            raise PackagingError(f"{name} is not packed for {target.triple}\n"
                                 f"hint: these are: {', '.join(fitting)}; what all platforms share is packed on Linux")
    return [name for name in fitting if not only or name in only]


def complete(release: Release) -> Release:
    """With the list of its crates in the binary, and their licences. That a program that was changed still runs is
    tried."""
    crates = linked(release.target.triple)
    program = auditable.with_list(release.program, crates)
    if program != release.program:
        check_version(program, release.version)
    return replace(release, program=program, third_party=licences.build(crates))


def check_version(program: bytes, version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relay-mesh"
        path.write_bytes(program)
        path.chmod(0o755)
        said = ask(path, "--version").decode().strip()
    if said != f"relay-mesh {version}":
        raise PackagingError(f"with the list of its crates in it the binary says {said!r}")


def pack(binary: Path, target: str | None, only: list[str] | None, out: Path) -> None:
    check_key()
    release = read_release(binary, target)
    wanted = chosen(release.target, only)
    release = complete(release)
    out.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        for file, content in kinds(out)[name](release).items():
            write(out / file, content)
            print(f"{out / file}: {len(content) / 1e6:.1f} MB")
    write_sums(out, release.version)


def main() -> int:
    names = list(kinds(Path()))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, required=True, help="the released program")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where packages go [default: dist]")
    parser.add_argument("--target", help="the binary's target [default: what its header says]")
    parser.add_argument("--only", choices=names, action="append", help="one kind of package; may be given again")
    choice = parser.parse_args()
    return finish(lambda: pack(choice.binary, choice.target, choice.only, choice.out))


if __name__ == "__main__":
    sys.exit(main())
