"""Builds adapter.wasm: the component with adapter.toml inside, so that one file is enough."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMPONENT = HERE / "adapter.wasm"
# The custom section of a component that holds its manifest.
SECTION = b"relay:adapter/manifest"


def leb128(number: int) -> bytes:
    """A number in WebAssembly's encoding."""
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | 0x80 if number else low)
        if not number:
            return bytes(out)


def main() -> None:
    program = Path(sys.executable).parent / "componentize-py"
    wit = ["--wit-path", str(HERE / "wit"), "--world", "adapter"]
    # The component imports nothing of WASI: an adapter has only the host functions of the interface.
    subprocess.run([program, *wit, "componentize", "--stub-wasi", "adapter", "-o", COMPONENT], cwd=HERE, check=True)
    body = leb128(len(SECTION)) + SECTION + (HERE / "adapter.toml").read_bytes()
    with COMPONENT.open("ab") as out:
        out.write(b"\x00" + leb128(len(body)) + body)


main()
