"""The Python wheel: it puts the binary into the environment's bin, for `pip install` and `uvx`."""

import base64
import hashlib
import io
import time
import zipfile

from archive import Entry, in_order
from binary import MACH_O, oldest_macos
from release import ROOT, Release


def build(release: Release) -> dict[str, bytes]:
    stem = f"relay_mesh-{release.version}"
    tag = f"py3-none-{platforms(release)}"
    info = f"{stem}.dist-info"
    entries = [
        Entry(f"{stem}.data/scripts/relay-mesh", release.program, executable=True),
        Entry(f"{info}/METADATA", metadata(release).encode()),
        Entry(f"{info}/WHEEL", wheel(release).encode()),
    ]
    entries += [Entry(f"{info}/licenses/{name}", text) for name, text in release.licences().items()]
    entries = in_order(entries)
    entries.append(Entry(f"{info}/RECORD", record(entries, f"{info}/RECORD").encode()))
    return {f"{stem}-{tag}.whl": zipped(entries, release.epoch)}


def platforms(release: Release) -> str:
    """On macOS with the oldest version that the binary runs on. From 11 on pip knows whole versions only: what needs
    11.3 is for 12."""
    if release.target.macos is None:
        return release.target.wheel
    stands_in = not release.program.startswith(MACH_O)
    major, minor = release.target.macos if stands_in else oldest_macos(release.program, str(release.binary))
    if major >= 11 and minor > 0:
        major, minor = major + 1, 0
    return release.target.wheel.format(major, minor)


def metadata(release: Release) -> str:
    return (
        "Metadata-Version: 2.4\n"
        "Name: relay-mesh\n"
        f"Version: {release.version}\n"
        f"Summary: {release.project.summary}\n"
        f"Project-URL: Homepage, {release.project.homepage}\n"
        "License-Expression: MIT OR Apache-2.0\n"
        "License-File: LICENSE-APACHE\n"
        "License-File: LICENSE-MIT\n"
        "License-File: THIRD-PARTY-LICENSES\n"
        "Description-Content-Type: text/markdown\n\n"
        f"{(ROOT / 'README.md').read_text()}\n"
        # By this the MCP Registry knows that the package belongs to its entry.
        f"<!-- mcp-name: {release.project.mcp_name} -->\n"
    )


def wheel(release: Release) -> str:
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms(release).split("."))
    return f"Wheel-Version: 1.0\nGenerator: relay-mesh packaging\nRoot-Is-Purelib: false\n{tags}"


def record(entries: list[Entry], itself: str) -> str:
    def line(entry: Entry) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b"=").decode()
        return f"{entry.path},sha256={digest},{len(entry.content)}\n"

    return "".join(map(line, entries)) + f"{itself},,\n"


def zipped(entries: list[Entry], epoch: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            file = zipfile.ZipInfo(entry.path, time.gmtime(epoch)[:6])
            file.compress_type = zipfile.ZIP_DEFLATED
            file.create_system = 3
            file.external_attr = (0o100000 | entry.mode()) << 16
            archive.writestr(file, entry.content)
    return packed.getvalue()
