"""The licence texts of what is linked into the binary: of each crate the files that come in its own package, and those of
what is no crate (runtime.py). A text that several share is printed once.
"""

import re
from pathlib import Path

from errors import PackagingError
from linked import Linked
from release import ROOT
from runtime import runtime

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
    for one in runtime(crates.triple):
        listed.append(f"{one.title()}: {one.licence}\n")
        add(one.title(), one.text)
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
    # Where a crate lets one choose, the first that is common is chosen.
    for licence in COMMON:
        if licence in re.split(" OR |/", package["license"]):
            return [standard(package, licence)]
    raise PackagingError(f"{package['name']} {package['version']} brings no text of its licence, {package['license']}\n"
                         "hint: packaging/licences.py has to learn where it is")


def own_texts(package: dict) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    files = [file for file in folder.rglob("*") if file.is_file() and LICENCE_FILE.match(file.name)]
    if package["license_file"]:
        files.append(folder / package["license_file"])
    chosen = {file.resolve() for file in files if file.suffix not in SOURCE_CODE}
    return [file.read_text(errors="replace") for file in sorted(chosen)]


def standard(package: dict, licence: str) -> str:
    text = (ROOT / COMMON[licence]).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("Copyright (c)")]
    authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
    return f"Copyright: {authors}. The package has no text of its licence; this is the common one.\n\n" + "\n".join(lines)
