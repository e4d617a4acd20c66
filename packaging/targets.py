"""The platforms that are packed for."""

from dataclasses import dataclass

from binary import ARM_MAC, Processor, processor_of
from errors import PackagingError


@dataclass(frozen=True)
class Target:
    """A platform, by the names that each kind of package has for it. `macos` is the oldest version of macOS that Rust
    builds for if nothing else is asked; a binary may want a later one, and says so."""

    triple: str
    processor: Processor
    npm_os: str
    npm_cpu: str
    wheel: str
    homebrew: tuple[str, str]
    debian: str = ""
    rpm: str = ""
    oci: str = ""
    macos: tuple[int, int] | None = None

    def linux(self) -> bool:
        return self.npm_os == "linux"

    def npm(self) -> str:
        return f"{self.npm_os}-{self.npm_cpu}"


# A static program runs with every C library, so the wheel names glibc's oldest and musl's.
TARGETS = (
    Target(
        triple="x86_64-unknown-linux-musl",
        processor=Processor("ELF", 62),
        npm_os="linux",
        npm_cpu="x64",
        wheel="manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        homebrew=("on_linux", "on_intel"),
        debian="amd64",
        rpm="x86_64",
        oci="amd64",
    ),
    Target(
        triple="aarch64-unknown-linux-musl",
        processor=Processor("ELF", 183),
        npm_os="linux",
        npm_cpu="arm64",
        wheel="manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        homebrew=("on_linux", "on_arm"),
        debian="arm64",
        rpm="aarch64",
        oci="arm64",
    ),
    Target(
        triple="x86_64-apple-darwin",
        processor=Processor("Mach-O", 0x01000007),
        npm_os="darwin",
        npm_cpu="x64",
        wheel="macosx_{}_{}_x86_64",
        homebrew=("on_macos", "on_intel"),
        macos=(10, 12),
    ),
    Target(
        triple="aarch64-apple-darwin",
        processor=Processor("Mach-O", ARM_MAC),
        npm_os="darwin",
        npm_cpu="arm64",
        wheel="macosx_{}_{}_arm64",
        homebrew=("on_macos", "on_arm"),
        macos=(11, 0),
    ),
)


def target_named(triple: str) -> Target:
    for target in TARGETS:
        if target.triple == triple:
            return target
    known = ", ".join(target.triple for target in TARGETS)
    raise PackagingError(f"{triple} is no target that is packed; these are: {known}")


def target_of(program: bytes, name: str) -> Target:
    """The target of a program that runs on other machines too. Any other is refused."""
    processor = processor_of(program, name)
    for target in TARGETS:
        if target.processor == processor:
            return target
    raise PackagingError(f"{name} is for {processor.form} machine {processor.number}, which is not packed")
