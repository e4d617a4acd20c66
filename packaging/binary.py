"""What the header of a program says of it: for which processor it is, and whether it runs on another machine.

A program for Linux is ELF and static. One for macOS is Mach-O, and loads what every Mac has: at least Apple's C
library, since no other way into the system is promised there.
"""

import struct
from dataclasses import dataclass

from errors import PackagingError

ELF = b"\x7fELF\x02\x01"
MACH_O = b"\xcf\xfa\xed\xfe"
ARM_MAC = 0x0100000C
# What every Mac has.
OF_MACOS = ("/usr/lib/", "/System/Library/")

INTERPRETER = 3
EXECUTABLE = 2
SEGMENT = 0x19
SIGNATURE = 0x1D
VERSION_MIN_MACOSX = 0x24
BUILD_VERSION = 0x32
PLATFORM_MACOS = 1
# To be loaded at the start, weakly, exported anew, later, and from below.
LOADS = (0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023)


@dataclass(frozen=True)
class Processor:
    """By the number that the format has for it."""

    form: str
    number: int


def processor_of(program: bytes, name: str) -> Processor:
    """The processor of a program that runs on other machines too; one that does not is refused."""
    try:
        if program.startswith(ELF):
            return elf(program, name)
        if program.startswith(MACH_O):
            return mach_o(program, name)
    except (struct.error, IndexError) as error:
        raise PackagingError(f"{name} is cut off: {error}\nhint: `make release` builds it") from error
    raise PackagingError(f"{name} is no 64-bit ELF or Mach-O program")


def elf(program: bytes, name: str) -> Processor:
    (machine,) = struct.unpack_from("<H", program, 18)
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    if any(struct.unpack_from("<I", program, table + size * index)[0] == INTERPRETER for index in range(count)):
        raise PackagingError(f"{name} needs a dynamic linker\nhint: `make release` builds a static program")
    return Processor("ELF", machine)


def mach_o(program: bytes, name: str) -> Processor:
    processor, _, kind = struct.unpack_from("<III", program, 4)
    if kind != EXECUTABLE:
        raise PackagingError(f"{name} is a Mach-O file of kind {kind}, and no program")
    found = commands(program)
    for library in (library_of(command) for number, command in found if number in LOADS):
        if not library.startswith(OF_MACOS):
            raise PackagingError(f"{name} loads {library}, which other Macs do not have\n"
                                 "hint: build it where the linker does not find that library")
    if processor == ARM_MAC and all(number != SIGNATURE for number, _ in found):
        raise PackagingError(f"{name} is not signed, and a Mac with an ARM processor starts no such program\n"
                             f"hint: Apple's linker signs what it links; `codesign --sign - {name}` does it afterwards")
    oldest_macos(program, name)
    return Processor("Mach-O", processor)


def oldest_macos(program: bytes, name: str) -> tuple[int, int]:
    """The oldest version of macOS that a Mach-O program says it runs on."""
    for number, command in commands(program):
        at = None
        if number == BUILD_VERSION and struct.unpack_from("<I", command, 8)[0] == PLATFORM_MACOS:
            at = 12
        elif number == VERSION_MIN_MACOSX:
            at = 8
        if at is not None:
            (version,) = struct.unpack_from("<I", command, at)
            return version >> 16, version >> 8 & 0xFF
    raise PackagingError(f"{name} does not say on which versions of macOS it runs\n"
                         "hint: is it for another of Apple's systems?")


def section(program: bytes, segment: str, wanted: str) -> bytes | None:
    """The content of a section of a Mach-O program, if there is one of this name."""
    for number, command in commands(program):
        if number != SEGMENT or text_at(command, 8, 16) != segment:
            continue
        (count,) = struct.unpack_from("<I", command, 64)
        for at in range(72, 72 + 80 * count, 80):
            size, offset = struct.unpack_from("<QI", command, at + 40)
            if text_at(command, at, 16) == wanted:
                return program[offset:offset + size]
    return None


def commands(program: bytes) -> list[tuple[int, bytes]]:
    """The load commands of a Mach-O program, each with its number."""
    (count,) = struct.unpack_from("<I", program, 16)
    found, at = [], 32
    for _ in range(count):
        number, size = struct.unpack_from("<II", program, at)
        if size < 8 or at + size > len(program):
            raise IndexError(f"its load command at {at} has {size} bytes")
        found.append((number, program[at:at + size]))
        at += size
    return found


def library_of(command: bytes) -> str:
    return text_at(command, *struct.unpack_from("<I", command, 8))


def text_at(command: bytes, at: int, length: int | None = None) -> str:
    """A text that a zero ends, or its length."""
    end = len(command) if length is None else at + length
    return command[at:end].split(b"\0")[0].decode(errors="replace")
