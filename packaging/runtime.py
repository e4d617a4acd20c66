"""What is linked into the binary and is no crate: Rust's standard library and, on Linux, musl. Both come with the
compiler, and their versions are read there.
"""

import functools
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from errors import PackagingError
from release import ROOT, run


@dataclass(frozen=True)
class RuntimePart:
    """`name` is the SBOM's. The version is not there if it cannot be told."""

    name: str
    called: str
    version: str | None
    licence: str
    source: str
    text: str

    def title(self) -> str:
        return f"{self.called} {self.version}" if self.version else self.called

    def package_url(self) -> str:
        return f"pkg:generic/{self.name}" + (f"@{self.version}" if self.version else "")


@functools.cache
def runtime(triple: str) -> tuple[RuntimePart, ...]:
    """Each stands on those after it."""
    sysroot = Path(run(["rustc", "--print", "sysroot"], cwd=ROOT).decode().strip())
    library = RuntimePart(
        name="rust-std",
        called="Rust's standard library",
        version=run(["rustc", "--version"], cwd=ROOT).decode().split()[1],
        licence="MIT OR Apache-2.0",
        source="https://github.com/rust-lang/rust",
        text=notices(sysroot),
    )
    if not triple.endswith("-linux-musl"):
        return (library,)
    musl = RuntimePart(
        name="musl",
        called="musl",
        version=musl_version(sysroot / "lib/rustlib" / triple / "lib/self-contained/libc.a"),
        licence="MIT",
        source="https://git.musl-libc.org/cgit/musl",
        text=(ROOT / "packaging/notices/musl.txt").read_text(),
    )
    return library, musl


def musl_version(library: Path) -> str | None:
    """musl holds its own version as a text, for its loader."""
    if not library.is_file():
        return None
    found = set(re.findall(rb"\0(\d+\.\d+\.\d+)\0", library.read_bytes()))
    return found.pop().decode() if len(found) == 1 else None


def notices(sysroot: Path) -> str:
    page = sysroot / "share/doc/rust/COPYRIGHT-library.html"
    if not page.is_file():
        raise PackagingError(f"there is no {page}, which has the licences of Rust's standard library\n"
                             "hint: use the toolchain that rust-toolchain.toml names, installed by rustup")
    plain = Plain()
    plain.feed(page.read_text())
    return re.sub(r"\n\s*\n+", "\n\n", "".join(plain.parts))


class Plain(HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
