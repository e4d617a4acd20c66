"""The licence texts of what is linked into the binary: of each crate the files that come in its own package, of Rust's
standard library the notices that come with the compiler, and that of musl. A text that several share is printed once.
"""

import re
from html.parser import HTMLParser
from pathlib import Path

from linked import Linked
from release import ROOT, PackagingError, run

LICENCE_FILE = re.compile(r"^(UN)?(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)([-._].*)?$", re.IGNORECASE)
SOURCE_CODE = (".rs", ".yml", ".c", ".h")
LINE = "=" * 120 + "\n"
HEAD = """\
What is linked into relay-mesh, and under which licences. relay-mesh itself is under MIT or Apache-2.0: LICENSE-MIT and
LICENSE-APACHE. First all parts are listed, then follow the texts, each under the parts that it is of.

"""
# What a crate is under that says so and brings no text. Its authors stand above it.
COMMON = {"MIT": "LICENSE-MIT", "Apache-2.0": "LICENSE-APACHE"}


def build(crates: Linked) -> bytes:
    # A text without its spaces, with the text as it is and the parts that it is of.
    texts: dict[str, tuple[str, list[str]]] = {}

    def add(part: str, text: str) -> None:
        _, parts = texts.setdefault(" ".join(text.split()), (text, []))
        if part not in parts:
            parts.append(part)

    others = crates.others()
    listed = []
    for package in others:
        part = f"{package['name']} {package['version']}"
        listed.append(f"{part}: {package['license'] or package['license_file']}\n")
        for text in texts_of(package, others):
            add(part, text)
    for part, text in runtime():
        listed.append(f"{part}\n")
        add(part, text)
    blocks = [LINE + "\n".join(parts) + f"\n{LINE}\n{text.strip()}\n\n" for text, parts in texts.values()]
    return (HEAD + "".join(listed) + "\n" + "".join(blocks)).encode()


def texts_of(package: dict, others: list[dict]) -> list[str]:
    """Those in the crate's package, else those of a crate from the same repository under the same licence."""
    own = own_texts(package)
    if own:
        return own
    for other in others:
        # The text of this licence names no holder of the copyright, so that any crate's is right.
        related = other["repository"] == package["repository"] or "LLVM-exception" in package["license"]
        if related and other["license"] == package["license"] and own_texts(other):
            return own_texts(other)
    if package["license"] in COMMON:
        return [standard(package)]
    raise PackagingError(f"{package['name']} {package['version']} brings no text of its licence, {package['license']}\n"
                         "hint: packaging/licences.py has to learn where it is")


def own_texts(package: dict) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    files = [file for file in folder.rglob("*") if file.is_file() and LICENCE_FILE.match(file.name)]
    if package["license_file"]:
        files.append(folder / package["license_file"])
    chosen = {file.resolve() for file in files if file.suffix not in SOURCE_CODE}
    return [file.read_text(errors="replace") for file in sorted(chosen)]


def standard(package: dict) -> str:
    text = (ROOT / COMMON[package["license"]]).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("Copyright (c)")]
    authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
    return f"Copyright: {authors}. The package has no text of its licence; this is the common one.\n\n" + "\n".join(lines)


def runtime() -> list[tuple[str, str]]:
    """What is linked from no crate."""
    root = Path(run(["rustc", "--print", "sysroot"], cwd=ROOT).decode().strip())
    page = root / "share/doc/rust/COPYRIGHT-library.html"
    if not page.is_file():
        raise PackagingError(f"there is no {page}, which has the licences of Rust's standard library\n"
                             "hint: use the toolchain that rust-toolchain.toml names, installed by rustup")
    plain = Plain()
    plain.feed(page.read_text())
    text = re.sub(r"\n\s*\n+", "\n\n", "".join(plain.parts))
    musl = (ROOT / "packaging/notices/musl.txt").read_text()
    return [("Rust's standard library: MIT OR Apache-2.0", text), ("musl: MIT", musl)]


class Plain(HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
