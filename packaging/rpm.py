"""The package for Fedora, openSUSE and their kin, by rpmbuild."""

import os
import tempfile
import textwrap
from pathlib import Path

import system
from archive import Entry, write_tree
from release import Release, run

REVISION = 1

# What would otherwise change from one build to the next, or be done to a binary that is finished.
DEFINES = {
    "_buildhost": "localhost",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "source_date_epoch_from_changelog": "0",
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "_binary_payload": "w9.xzdio",
}


def build(release: Release) -> dict[str, bytes]:
    name = f"relay-mesh-{release.version}-{REVISION}.{release.target.rpm}.rpm"
    files = system.files(release, zsh="site-functions")
    folder = "usr/share/licenses/relay-mesh"
    files += [Entry(f"{folder}/{licence}", text) for licence, text in release.licences().items()]
    with tempfile.TemporaryDirectory() as temporary:
        top = Path(temporary)
        tree = top / "tree"
        tree.mkdir()
        write_tree(files, tree, release.epoch)
        recipe = top / "relay-mesh.spec"
        recipe.write_text(spec(release, files, tree))
        defines = DEFINES | {"_topdir": str(top)}
        options = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
        run(["rpmbuild", "-bb", "--target", f"{release.target.rpm}-linux", *options, str(recipe)],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch), "HOME": temporary})
        return {name: (top / "RPMS" / release.target.rpm / name).read_bytes()}


def spec(release: Release, files: list[Entry], tree: Path) -> str:
    listed = "\n".join(f"{kind(file.path)}/{file.path}" for file in sorted(files, key=lambda file: file.path))
    return (
        f"Name: relay-mesh\n"
        f"Version: {release.version}\n"
        f"Release: {REVISION}\n"
        f"Summary: {release.project.summary}\n"
        f"License: MIT OR Apache-2.0\n"
        f"URL: {release.project.homepage}\n"
        f"AutoReqProv: no\n\n"
        f"%description\n{textwrap.fill(release.project.description.strip(), 78)}\n\n"
        f"%install\ncp -a '{tree}/.' '%{{buildroot}}/'\n\n"
        f"%files\n%defattr(-,root,root,-)\n{listed}\n"
    )


def kind(path: str) -> str:
    if path.startswith("usr/share/licenses/"):
        return "%license "
    return "%doc " if path.startswith("usr/share/man/") else ""
