#!/usr/bin/env python3
"""The list of linked crates in the binary, as `cargo auditable` writes it: a section `.dep-v0` with JSON that zlib has
compressed, for `rust-audit-info`, `cargo audit bin`, Syft, Trivy and their like.

Into an ELF program it is written here: the section and a new section table are appended to the file. What the system
loads stays as it is, but for three fields of the ELF header that say where the section table lies, so nothing of the
program can break. `objcopy` does the same with the tools of one processor for one processor.

A Mach-O program is signed by the linker, and nothing may be changed in it afterwards. There the linker puts the list
into it, from a file that `make release` has this write before: `packaging/auditable.py TARGET FILE`.
"""

import argparse
import json
import struct
import sys
import zlib
from pathlib import Path

from binary import ELF, MACH_O, section
from errors import PackagingError, finish
from linked import Linked, linked

SECTION = b".dep-v0"
PROGBITS = 1
# cargo auditable's revision for lists from `cargo metadata` without procedural macros.
FORMAT = 1


def described(crates: Linked) -> bytes:
    """The list, compressed. Each crate names those it links by their places in the list."""
    packages = crates.packages
    order = sorted(crates.edges, key=lambda crate: (packages[crate]["name"], packages[crate]["version"], crate))
    places = {crate: place for place, crate in enumerate(order)}

    def entry(crate: str) -> dict:
        fields = {
            "name": packages[crate]["name"],
            "version": packages[crate]["version"],
            "source": source(packages[crate]["source"]),
        }
        if crates.edges[crate]:
            fields["dependencies"] = sorted(places[below] for below in crates.edges[crate])
        if crate == crates.binary:
            fields["root"] = True
        return fields

    listed = {"packages": [entry(crate) for crate in order], "format": FORMAT}
    return zlib.compress(json.dumps(listed, separators=(",", ":")).encode(), 9)


def source(said: str | None) -> str:
    if said is None:
        return "local"
    if said == "registry+https://github.com/rust-lang/crates.io-index":
        return "crates.io"
    return said.split("+")[0]


def with_list(program: bytes, crates: Linked) -> bytes:
    """The program with the list in it. What is no program stands in for one in a test, and stays as it is."""
    if program.startswith(ELF):
        return with_section(program, described(crates))
    if program.startswith(MACH_O):
        check_list(program, crates)
    return program


def check_list(program: bytes, crates: Linked) -> None:
    """That the linker has put this very list into a Mach-O program."""
    found = section(program, "__DATA", SECTION.decode())
    if found is None:
        raise PackagingError("the binary holds no list of its crates\nhint: pack what `make release` has built")
    try:
        same = zlib.decompress(found) == zlib.decompress(described(crates))
    except zlib.error as error:
        raise PackagingError(f"the list of crates in the binary cannot be read: {error}") from error
    if not same:
        raise PackagingError("the binary holds the list of other crates than Cargo.lock names\nhint: `make release`")


def with_section(program: bytes, content: bytes) -> bytes:
    """The ELF program with this section at its end."""
    (table,) = struct.unpack_from("<Q", program, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", program, 0x3A)
    if size != 64 or not count or table + size * count > len(program):
        raise PackagingError("the binary has no section table, so it cannot hold the list of its crates")
    headers = [bytearray(program[table + size * index:table + size * (index + 1)]) for index in range(count)]
    name_at, name_size = struct.unpack_from("<QQ", headers[names_at], 0x18)
    names = program[name_at:name_at + name_size]
    if SECTION + b"\0" in names:
        raise PackagingError("the binary holds a list of its crates already\nhint: pack what `make release` has built")
    packed = bytearray(program)
    own = bytearray(64)
    struct.pack_into("<IIQQQQIIQQ", own, 0, name_size, PROGBITS, 0, 0, appended(packed, content, 1), len(content), 0, 0, 1, 0)
    names += SECTION + b"\0"
    struct.pack_into("<QQ", headers[names_at], 0x18, appended(packed, names, 1), len(names))
    struct.pack_into("<Q", packed, 0x28, appended(packed, b"".join([*headers, own]), 8))
    struct.pack_into("<H", packed, 0x3C, count + 1)
    return bytes(packed)


def appended(packed: bytearray, content: bytes, align: int) -> int:
    """Appends, and returns where."""
    packed += bytes(-len(packed) % align)
    at = len(packed)
    packed += content
    return at


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the list of linked crates into a file, for a linker.")
    parser.add_argument("target", help="for example aarch64-apple-darwin")
    parser.add_argument("file", type=Path, help="is written")
    choice = parser.parse_args()
    return finish(lambda: write(choice.target, choice.file))


def write(triple: str, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(described(linked(triple)))


if __name__ == "__main__":
    sys.exit(main())
