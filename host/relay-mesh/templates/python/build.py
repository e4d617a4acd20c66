"""Builds adapter.wasm: the component, with adapter.toml inside, so that one file is enough."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMPONENT = HERE / "adapter.wasm"
# The custom section in which a component carries its manifest.
SECTION = b"relay:adapter/manifest"


def leb128(number: int) -> bytes:
    """A number as WebAssembly writes it."""
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | 0x80 if number else low)
        if not number:
            return bytes(out)


def main() -> None:
    program = Path(sys.executable).parent / "componentize-py"
    wit = ["--wit-path", str(HERE / "wit"), "--world", "adapter"]
    # Nothing of WASI is asked of the host: an adapter has what the interface lends it.
    subprocess.run([program, *wit, "componentize", "--stub-wasi", "adapter", "-o", COMPONENT], cwd=HERE, check=True)
    body = leb128(len(SECTION)) + SECTION + (HERE / "adapter.toml").read_bytes()
    with COMPONENT.open("ab") as out:
        out.write(b"\x00" + leb128(len(body)) + body)


main()
