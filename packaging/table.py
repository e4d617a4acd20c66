#!/usr/bin/env python3
"""Prints what the packages of dist/ are and what came of installing them. With --write it goes into docs/releasing.md."""

import json
import sys
from pathlib import Path

from release import ROOT

BEGIN = "<!-- dist: `make dist WRITE=1` writes this -->\n"
END = "<!-- end of dist -->\n"
# Each kind of package, with the endings of its files. What is noted of its installation is under the first.
KINDS = (
    ("archive by xz", (".tar.xz",)),
    ("archive by gzip", (".tar.gz",)),
    ("shell installer, with the archive by xz", ("install.sh", ".tar.xz")),
    ("Debian", (".deb",)),
    ("RPM", (".rpm",)),
    ("npm, launcher and platform", (".tgz",)),
    ("Python wheel", (".whl",)),
    ("container image", (".tar",)),
)


def target(name: str) -> str:
    arm = any(word in name for word in ("aarch64", "arm64"))
    return "Linux, ARM64" if arm else "Linux, x86-64"


def row(dist: Path, kind: str, endings: tuple[str, ...]) -> str:
    files = [file for file in dist.iterdir() if file.name.endswith(endings)]
    note = json.loads((dist / ".installed" / f"{endings[0]}.json").read_text())
    size = sum(file.stat().st_size for file in files) / 1e6
    return (
        f"| {kind} | {size:.1f} MB | {target(' '.join(file.name for file in files))} | {note['seconds']:.1f} s "
        f"| {note['seconds'] + note['first_message']:.1f} s | {note['times_hello_world']:.1f} | {note['doctor']} |\n"
    )


def main() -> int:
    dist = ROOT / "dist"
    try:
        rows = "".join(row(dist, kind, endings) for kind, endings in KINDS)
    except OSError as error:
        print(f"error: {error}\nhint: `make dist` packs and installs everything", file=sys.stderr)
        return 1
    table = (
        "| package | size | target | installed in | install to first message | `--version`, in hello-worlds | doctor |\n"
        "|---|---|---|---|---|---|---|\n" + rows
    )
    print(table, end="")
    if "--write" in sys.argv[1:]:
        page = ROOT / "docs/releasing.md"
        before, rest = page.read_text().split(BEGIN)
        _, after = rest.split(END)
        page.write_text(f"{before}{BEGIN}{table}{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
