"""What every package is made from: the binary, what it prints about itself, and what the repository says."""

import os
import struct
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHELLS = {"bash": "relay-mesh.bash", "zsh": "_relay-mesh", "fish": "relay-mesh.fish"}
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
THIRD_PARTY = "THIRD-PARTY-LICENSES"


class PackagingError(Exception):
    """Something that the person who packs can mend. It is printed without a trace."""


@dataclass(frozen=True)
class Target:
    """A platform, by the names that each kind of package has for it."""

    triple: str
    elf_machine: int
    debian: str
    rpm: str
    npm_os: str
    npm_cpu: str
    wheel: str
    homebrew: tuple[str, str]
    oci: str


# A static program runs with every C library, so the wheel names glibc's oldest and musl's.
TARGETS = (
    Target(
        triple="x86_64-unknown-linux-musl",
        elf_machine=62,
        debian="amd64",
        rpm="x86_64",
        npm_os="linux",
        npm_cpu="x64",
        wheel="manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        homebrew=("on_linux", "on_intel"),
        oci="amd64",
    ),
    Target(
        triple="aarch64-unknown-linux-musl",
        elf_machine=183,
        debian="arm64",
        rpm="aarch64",
        npm_os="linux",
        npm_cpu="arm64",
        wheel="manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        homebrew=("on_linux", "on_arm"),
        oci="arm64",
    ),
)


@dataclass(frozen=True)
class Project:
    """packaging/project.toml."""

    maintainer: str
    homepage: str
    downloads: str
    npm_scope: str
    minisign_key: str
    mcp_name: str
    summary: str
    description: str


@dataclass(frozen=True)
class Release:
    """One version for one platform. `program` is the binary, with the list of its crates in it; `binary` is the file that
    was built, which can be run."""

    version: str
    epoch: int
    target: Target
    project: Project
    binary: Path
    program: bytes
    completions: dict[str, bytes]
    manual: dict[str, bytes]
    third_party: bytes

    def downloads(self) -> str:
        return self.project.downloads.format(version=self.version)

    def own_licences(self) -> dict[str, bytes]:
        """For a package that does not hold the binary."""
        return {name: (ROOT / name).read_bytes() for name in LICENCES}

    def licences(self) -> dict[str, bytes]:
        return self.own_licences() | {THIRD_PARTY: self.third_party}

    def archive_stem(self) -> str:
        return f"relay-mesh-{self.version}-{self.target.triple}"


def read_release(binary: Path, triple: str | None) -> Release:
    """Asks the binary for its pages. The target is read from the binary unless it is given."""
    if not binary.is_file():
        raise PackagingError(f"there is no {binary}\nhint: `make release` builds it")
    target = target_named(triple) if triple else target_of(binary)
    version = read_version()
    said = ask(binary, "--version").decode().strip()
    if said != f"relay-mesh {version}":
        raise PackagingError(f"{binary} says {said!r}, and Cargo.toml has version {version}\nhint: `make release`")
    completions = {name: ask(binary, "completions", shell) for shell, name in SHELLS.items()}
    with tempfile.TemporaryDirectory() as folder:
        ask(binary, "man", "--out", folder)
        manual = {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}
    return Release(version, epoch(), target, read_project(), binary, binary.read_bytes(), completions, manual, b"")


def read_version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def read_project() -> Project:
    return Project(**tomllib.loads((ROOT / "packaging/project.toml").read_text()))


def target_named(triple: str) -> Target:
    for target in TARGETS:
        if target.triple == triple:
            return target
    known = ", ".join(target.triple for target in TARGETS)
    raise PackagingError(f"{triple} is no target that is packed; these are: {known}")


def target_of(binary: Path) -> Target:
    """The target of a static ELF program. One that needs a C library would not run everywhere, and is refused."""
    with binary.open("rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise PackagingError(f"{binary} is no 64-bit ELF program")
        (machine,) = struct.unpack_from("<H", header, 18)
        (table,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(table)
        segments = file.read(size * count)
    interpreter = 3
    if any(struct.unpack_from("<I", segments, size * index)[0] == interpreter for index in range(count)):
        raise PackagingError(f"{binary} needs a dynamic linker\nhint: `make release` builds a static program")
    for target in TARGETS:
        if target.elf_machine == machine:
            return target
    raise PackagingError(f"{binary} is for ELF machine {machine}, which is not packed")


def epoch() -> int:
    """The time that is written into packages: SOURCE_DATE_EPOCH, else that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
        if log.returncode != 0:
            raise PackagingError(f"git does not tell the time of the last commit: {log.stderr.strip()}\n"
                                 "hint: set SOURCE_DATE_EPOCH")
        given = log.stdout.strip()
    if not given.isdecimal():
        raise PackagingError(f"SOURCE_DATE_EPOCH is {given!r}, and should be seconds since 1970")
    return int(given)


def ask(binary: Path, *arguments: str) -> bytes:
    with tempfile.TemporaryDirectory() as home:
        return run([str(binary.resolve()), *arguments], env={"HOME": home, "PATH": os.defpath})


def finish(work: Callable[[], None]) -> int:
    """Does the work of a command, and returns its exit code. What a person can mend is printed without a trace."""
    try:
        work()
    except (PackagingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run(command: list[str], **options) -> bytes:
    """Runs a program to its end and returns its output."""
    try:
        outcome = subprocess.run(command, capture_output=True, **options)
    except OSError as error:
        raise PackagingError(f"{command[0]} could not be started: {error}\nhint: packaging/setup installs the tools")
    if outcome.returncode != 0:
        said = (outcome.stderr + outcome.stdout).decode(errors="replace").strip()
        raise PackagingError(f"`{' '.join(command)}` failed with exit code {outcome.returncode}: {said}")
    return outcome.stdout
