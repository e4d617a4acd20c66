"""The crates that cargo links into the binary and into the adapters inside of it, with what each links itself.

Crates that only build something (procedural macros, build scripts) are no part of it. The SBOM, the list inside of the
binary and the licence texts are made from this.
"""

import functools
import json
from dataclasses import dataclass

from release import ROOT, run

ADAPTERS_TARGET = "wasm32-wasip2"


@dataclass(frozen=True)
class Linked:
    """What is linked for a target, by cargo's package ids."""

    triple: str
    binary: str
    packages: dict[str, dict]
    edges: dict[str, set[str]]

    def others(self) -> list[dict]:
        """The packages that come from elsewhere, in order."""
        foreign = [self.packages[crate] for crate in self.edges if self.packages[crate]["source"]]
        return sorted(foreign, key=lambda package: (package["name"], package["version"], package["source"]))


@functools.cache
def linked(triple: str) -> Linked:
    native, inside = metadata(triple), metadata(ADAPTERS_TARGET)
    (binary,) = (one["id"] for one in native["packages"] if one["name"] == "relay-mesh")
    adapters = [one["id"] for one in inside["packages"] if one["name"].startswith("adapter-")]
    edges = below(native, [binary])
    for crate, further in below(inside, adapters).items():
        edges[crate] = edges.get(crate, set()) | further
    edges[binary] |= set(adapters)
    packages = {one["id"]: one for one in native["packages"] + inside["packages"]}
    return Linked(triple, binary, packages, edges)


def metadata(target: str) -> dict:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(run(command, cwd=ROOT))


def below(metadata: dict, roots: list[str]) -> dict[str, set[str]]:
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
                further["pkg"]
                for further in nodes[crate]["deps"]
                if further["pkg"] not in macros and any(kind["kind"] is None for kind in further["dep_kinds"])
            }
            waiting += edges[crate]
    return edges
