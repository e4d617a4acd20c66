"""What every package is made from: the binary, what it prints about itself, and what the repository says."""

# First, because it refuses a Python that has no tomllib.
from errors import PackagingError

import os
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from targets import Target, target_named, target_of

ROOT = Path(__file__).resolve().parent.parent
SHELLS = {"bash": "relay-mesh.bash", "zsh": "_relay-mesh", "fish": "relay-mesh.fish"}
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
THIRD_PARTY = "THIRD-PARTY-LICENSES"


@dataclass(frozen=True)
class Project:
    """packaging/project.toml."""

    maintainer: str
    homepage: str
    repository: str
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
    program = binary.read_bytes()
    target = target_named(triple) if triple else target_of(program, str(binary))
    version = read_version()
    said = ask(binary, "--version").decode().strip()
    if said != f"relay-mesh {version}":
        raise PackagingError(f"{binary} says {said!r}, and Cargo.toml has version {version}\nhint: `make release`")
    completions = {name: ask(binary, "completions", shell) for shell, name in SHELLS.items()}
    with tempfile.TemporaryDirectory() as folder:
        ask(binary, "man", "--out", folder)
        manual = {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}
    return Release(version, epoch(), target, read_project(), binary, program, completions, manual, b"")


def read_version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def read_project() -> Project:
    return Project(**tomllib.loads((ROOT / "packaging/project.toml").read_text()))


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
