"""What the binary is made of, as CycloneDX 1.6: each crate with its licence, its digest and what it stands on.

The crates are those that cargo links into the binary and into the adapters inside of it. Crates that only build
something (procedural macros, build scripts) are no part of it.
"""

import hashlib
import json
import tomllib
import uuid
from datetime import UTC, datetime

from release import ROOT, Release, run

ADAPTERS_TARGET = "wasm32-wasip2"


def build(release: Release) -> dict[str, bytes]:
    native = metadata(release.target.triple)
    inside = metadata(ADAPTERS_TARGET)
    (binary,) = (one["id"] for one in native["packages"] if one["name"] == "relay-mesh")
    adapters = [one["id"] for one in inside["packages"] if one["name"].startswith("adapter-")]
    edges = linked(native, [binary]) | {}
    for crate, below in linked(inside, adapters).items():
        edges[crate] = edges.get(crate, set()) | below
    edges[binary] |= set(adapters)
    packages = {one["id"]: one for one in native["packages"] + inside["packages"]}
    names = {crate: f"pkg:cargo/{packages[crate]['name']}@{packages[crate]['version']}" for crate in edges}
    checksums = locked_checksums()
    parts = [component(packages[crate], names[crate], checksums) for crate in edges if crate != binary]
    digest = hashlib.sha256(release.binary.read_bytes()).hexdigest()
    program = {
        "type": "application",
        "bom-ref": names[binary],
        "name": "relay-mesh",
        "version": release.version,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "purl": names[binary],
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(release.epoch, UTC).isoformat(), "component": program},
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
        "dependencies": sorted(
            ({"ref": names[crate], "dependsOn": sorted({names[one] for one in below})} for crate, below in edges.items()),
            key=lambda one: one["ref"],
        ),
    }
    return {f"{release.archive_stem()}.cdx.json": (json.dumps(bill, indent=1) + "\n").encode()}


def metadata(target: str) -> dict:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(run(command, cwd=ROOT))


def linked(metadata: dict, roots: list[str]) -> dict[str, set[str]]:
    """What these crates link in, each with what it links itself."""
    macros = {
        one["id"] for one in metadata["packages"] if any("proc-macro" in target["kind"] for target in one["targets"])
    }
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    edges: dict[str, set[str]] = {}
    waiting = list(roots)
    while waiting:
        crate = waiting.pop()
        if crate not in edges:
            edges[crate] = {
                below["pkg"]
                for below in nodes[crate]["deps"]
                if below["pkg"] not in macros and any(kind["kind"] is None for kind in below["dep_kinds"])
            }
            waiting += edges[crate]
    return edges


def locked_checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}


def component(package: dict, name: str, checksums: dict[tuple[str, str], str]) -> dict:
    part = {"type": "library", "bom-ref": name, "name": package["name"], "version": package["version"], "purl": name}
    if package["license"]:
        # Crates of before SPDX's expressions write a slash for OR.
        part["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        part["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        part["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return part
