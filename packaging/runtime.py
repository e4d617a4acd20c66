"""What is linked into the binary and is no crate: Rust's standard library, wasi-libc in the adapters and, on Linux, musl.
All come with the compiler, and their versions are read there.
"""

import functools
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from errors import PackagingError
from linked import ADAPTERS_TARGET
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
    """The first stands on the others."""
    sysroot = Path(run(["rustc", "--print", "sysroot"], cwd=ROOT).decode().strip())
    library = RuntimePart(
        name="rust-std",
        called="Rust's standard library",
        version=run(["rustc", "--version"], cwd=ROOT).decode().split()[1],
        licence="MIT OR Apache-2.0",
        source="https://github.com/rust-lang/rust",
        text=notices(sysroot),
    )
    inside = RuntimePart(
        name="wasi-libc",
        called="wasi-libc",
        version=wasi_version(c_library(sysroot, ADAPTERS_TARGET)),
        licence="(Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT) AND MIT AND BSD-2-Clause AND CC0-1.0",
        source="https://github.com/WebAssembly/wasi-libc",
        text=(ROOT / "packaging/notices/wasi-libc.txt").read_text(),
    )
    if not triple.endswith("-linux-musl"):
        return library, inside
    musl = RuntimePart(
        name="musl",
        called="musl",
        version=musl_version(c_library(sysroot, triple)),
        licence="MIT",
        source="https://git.musl-libc.org/cgit/musl",
        text=(ROOT / "packaging/notices/musl.txt").read_text(),
    )
    return library, inside, musl


def c_library(sysroot: Path, triple: str) -> Path:
    return sysroot / "lib/rustlib" / triple / "lib/self-contained/libc.a"


def wasi_version(library: Path) -> str | None:
    """wasi-libc has no numbers of its own: its tags are named after the wasi-sdk that builds it. The paths of the sources,
    for debuggers, begin with that one's version."""
    if not library.is_file():
        return None
    found = set(re.findall(rb"wasisdk://v(\d+)\.\d+", library.read_bytes()))
    return f"wasi-sdk-{found.pop().decode()}" if len(found) == 1 else None


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
