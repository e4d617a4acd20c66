#!/usr/bin/env python3
"""Joins what `make dist` has packed on machines of several platforms: one folder, with one formula, one image for all
processors and one SHA256SUMS."""

import argparse
import sys
from pathlib import Path

import homebrew
import oci
from errors import PackagingError, finish
from release import read_project, read_version
from sums import SIGNATURE, SUMS, check_key, write, write_sums

# Each is written anew, over the files of all platforms.
OVER_ALL = ("relay-mesh.rb", SUMS, SIGNATURE)


def join(parts: list[Path], out: Path) -> None:
    check_key()
    out.mkdir(parents=True)
    for part in parts:
        for file in sorted(part.iterdir()):
            if not file.is_file() or file.name in OVER_ALL:
                continue
            joined, content = out / file.name, file.read_bytes()
            if joined.exists() and joined.read_bytes() != content:
                raise PackagingError(f"{file.name} is not the same on each machine\nhint: pack the same commit on each")
            write(joined, content)
    version = read_version()
    for name, content in (homebrew.build(version, read_project(), out) | oci.joined(version, out)).items():
        write(out / name, content)
    write_sums(out, version)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path, nargs="+", help="the folder `dist` of each machine")
    parser.add_argument("--out", type=Path, required=True, help="a folder that is not there yet")
    choice = parser.parse_args()
    return finish(lambda: join(choice.parts, choice.out))


if __name__ == "__main__":
    sys.exit(main())
