"""What the binary is made of, as CycloneDX 1.6: each crate with its licence, its digest and what it stands on, and what
the compiler links in beside them.

The same crates are named inside of the binary itself, for readers of `cargo auditable`'s list: auditable.py.
"""

import hashlib
import json
import tomllib
import uuid
from datetime import UTC, datetime

from linked import linked
from release import ROOT, Release
from runtime import RuntimePart, runtime


def build(release: Release) -> dict[str, bytes]:
    crates = linked(release.target.triple)
    binary, packages, edges = crates.binary, crates.packages, crates.edges
    names = {crate: f"pkg:cargo/{packages[crate]['name']}@{packages[crate]['version']}" for crate in edges}
    checksums = locked_checksums()
    parts = [component(packages[crate], names[crate], checksums) for crate in edges if crate != binary]
    below_all = runtime(release.target.triple)
    stands_on = {names[crate]: {names[one] for one in below} for crate, below in edges.items()}
    library, *c_libraries = below_all
    stands_on[names[binary]].add(library.package_url())
    stands_on[library.package_url()] = {one.package_url() for one in c_libraries}
    stands_on.update({one.package_url(): set() for one in c_libraries})
    parts += [runtime_component(one) for one in below_all]
    digest = hashlib.sha256(release.program).hexdigest()
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
        "dependencies": [{"ref": name, "dependsOn": sorted(stands_on[name])} for name in sorted(stands_on)],
    }
    return {f"{release.archive_stem()}.cdx.json": (json.dumps(bill, indent=1) + "\n").encode()}


def locked_checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}


def runtime_component(one: RuntimePart) -> dict:
    name = one.package_url()
    part = {"type": "library", "bom-ref": name, "name": one.name, "purl": name}
    if one.version:
        part["version"] = one.version
    part["licenses"] = [{"expression": one.licence}]
    part["externalReferences"] = [{"type": "vcs", "url": one.source}]
    return part


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
