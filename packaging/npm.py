"""The npm packages: a launcher, and the binary in one package per platform. npm installs the one that fits by its
fields `os` and `cpu`; nothing is downloaded after the installation. The launcher is the same for all platforms."""

import json

from archive import Entry, tar_gz
from release import ROOT, Release
from targets import TARGETS


def build(release: Release) -> dict[str, bytes]:
    """The package of the binary's platform."""
    target = release.target
    name = f"{release.project.npm_scope}/{target.npm()}"
    entries = [
        manifest(release, name, {"os": [target.npm_os], "cpu": [target.npm_cpu]}),
        Entry("package/bin/relay-mesh", release.program, executable=True),
    ]
    return {f"relay-mesh-npm-{target.npm()}-{release.version}.tgz": packed(release, entries, release.licences())}


def launcher(release: Release) -> dict[str, bytes]:
    scope = release.project.npm_scope
    entries = [
        manifest(release, "relay-mesh", {
            "bin": {"relay-mesh": "bin/relay-mesh.js"},
            # By this the MCP Registry knows that the package belongs to its entry.
            "mcpName": release.project.mcp_name,
            "engines": {"node": ">=18"},
            "optionalDependencies": {f"{scope}/{target.npm()}": release.version for target in TARGETS},
        }),
        Entry("package/bin/relay-mesh.js", (ROOT / "packaging/npm/relay-mesh.js").read_bytes(), executable=True),
        Entry("package/README.md", (ROOT / "README.md").read_bytes()),
    ]
    return {f"relay-mesh-npm-{release.version}.tgz": packed(release, entries, release.own_licences())}


def manifest(release: Release, name: str, further: dict) -> Entry:
    fields = {
        "name": name,
        "version": release.version,
        "description": release.project.summary,
        "homepage": release.project.homepage,
        **repository(release.project.repository),
        "license": "MIT OR Apache-2.0",
        "files": ["bin"],
        **further,
    }
    return Entry("package/package.json", (json.dumps(fields, indent=2) + "\n").encode())


def packed(release: Release, entries: list[Entry], licences: dict[str, bytes]) -> bytes:
    return tar_gz(entries + [Entry(f"package/{name}", text) for name, text in licences.items()], release.epoch)


def repository(address: str) -> dict:
    return {"repository": {"type": "git", "url": f"git+{address}.git"}} if address else {}
