"""The package for Debian and Ubuntu, by dpkg-deb."""

import hashlib
import os
import tempfile
import textwrap
from email.utils import formatdate
from pathlib import Path

import system
from archive import Entry, compress, write_tree
from release import ROOT, THIRD_PARTY, Release, run

# Of the packaging: to be counted up if the same version of relay-mesh is packed differently.
REVISION = 1


def build(release: Release) -> dict[str, bytes]:
    version = f"{release.version}-{REVISION}"
    name = f"relay-mesh_{version}_{release.target.debian}.deb"
    files = system.files(release, zsh="vendor-completions") + documents(release, version)
    digests = "".join(f"{hashlib.md5(file.content).hexdigest()}  {file.path}\n" for file in files)
    installed = sum(len(file.content) for file in files) // 1024
    meta = [
        Entry("DEBIAN/control", control(release, version, installed).encode()),
        Entry("DEBIAN/md5sums", digests.encode()),
    ]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir(mode=0o755)
        write_tree(files + meta, tree, release.epoch)
        package = Path(folder) / name
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "--build", str(tree), str(package)],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)})
        return {name: package.read_bytes()}


def control(release: Release, version: str, installed: int) -> str:
    project = release.project
    description = textwrap.indent(textwrap.fill(project.description.strip(), 78), " ")
    return (
        f"Package: relay-mesh\n"
        f"Version: {version}\n"
        f"Section: utils\n"
        f"Priority: optional\n"
        f"Architecture: {release.target.debian}\n"
        f"Installed-Size: {installed}\n"
        f"Maintainer: {project.maintainer}\n"
        f"Homepage: {project.homepage}\n"
        f"Description: {project.summary}\n{description}\n"
    )


def documents(release: Release, version: str) -> list[Entry]:
    """What Debian's policy asks of each package: copyright and changelogs."""
    mit = (ROOT / "LICENSE-MIT").read_text()
    copyright = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: relay-mesh\n"
        "Comment: What is linked in is under licences of its own: THIRD-PARTY-LICENSES.gz in this folder.\n\n"
        "Files: *\nCopyright: the relay-mesh contributors\nLicense: MIT or Apache-2.0\n\n"
        f"License: MIT\n{paragraph(mit)}\n"
        "License: Apache-2.0\n On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.\n"
    )
    changelog = (
        f"relay-mesh ({version}) unstable; urgency=medium\n\n  * relay-mesh {release.version}, "
        f"see changelog.gz.\n\n -- {release.project.maintainer}  {formatdate(release.epoch)}\n"
    )
    upstream = (ROOT / "CHANGELOG.md").read_bytes()
    folder = "usr/share/doc/relay-mesh"
    return [
        Entry(f"{folder}/copyright", copyright.encode()),
        Entry(f"{folder}/{THIRD_PARTY}.gz", compress(release.third_party, release.epoch)),
        Entry(f"{folder}/changelog.Debian.gz", compress(changelog.encode(), release.epoch)),
        Entry(f"{folder}/changelog.gz", compress(upstream, release.epoch)),
        Entry("usr/share/lintian/overrides/relay-mesh", (ROOT / "packaging/lintian-overrides").read_bytes()),
    ]


def paragraph(text: str) -> str:
    """A text as a field of several lines: each is indented, and an empty one is a dot."""
    return "".join(f" {line.strip() or '.'}\n" for line in text.strip().splitlines())
