#!/usr/bin/env python3
"""What the workflow that publishes a release does beyond calling one program: .github/workflows/publish.yml.

`check` compares the downloaded files with the tag and with SHA256SUMS. `npm` publishes the packages of the platforms, then
the launcher. What is published already is passed over, so that a run which broke off can be run again.
"""

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from errors import PackagingError, finish
from release import read_project, read_version, run
from sums import SIGNATURE, SUMS


def check(files: Path, tag: str) -> None:
    """That these are the files of this tag's release: all of them, and whole."""
    version = read_version()
    if tag != f"v{version}":
        raise PackagingError(f"the tag is {tag}, and Cargo.toml has version {version}")
    key = read_project().minisign_key
    if key:
        run(["minisign", "-V", "-q", "-P", key, "-m", str(files / SUMS), "-x", str(files / SIGNATURE)])
    lines = [line.split("  ", 1) for line in (files / SUMS).read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    differ = ({file.name for file in files.iterdir()} - {SUMS, SIGNATURE}) ^ listed.keys()
    if differ:
        raise PackagingError(f"the release and its {SUMS} do not name the same files: {', '.join(sorted(differ))}\n"
                             "hint: nothing was published; look at who changed the release")
    for name, digest in listed.items():
        if hashlib.sha256((files / name).read_bytes()).hexdigest() != digest:
            raise PackagingError(f"{name} is not what {SUMS} says\n"
                                 "hint: nothing was published; look at who changed the release")
    print(f"{len(listed)} files are what {SUMS} says" + (f", which is signed by {key}" if key else ""))


def npm(files: Path, tag: str) -> None:
    # Last, because it names the others.
    launcher = files / f"relay-mesh-npm-{read_version()}.tgz"
    for file in [*sorted(set(files.glob("relay-mesh-npm-*.tgz")) - {launcher}), launcher]:
        content = file.read_bytes()
        with tarfile.open(file) as packed:
            manifest = json.load(packed.extractfile("package/package.json"))
        name = f"{manifest['name']}@{manifest['version']}"
        published = integrity_on_npm(name)
        if published is None:
            run(["npm", "publish", str(file.resolve()), "--access", "public", "--tag", tag])
            print(f"{name}: published")
        elif published == "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode():
            print(f"{name}: was published already")
        else:
            raise PackagingError(f"{name} is published with other content\n"
                                 "hint: npm never takes a version twice; release a new one")


def integrity_on_npm(name: str) -> str | None:
    """The digest of a published version. Of a package without this version npm says nothing, of none that it is not
    found."""
    outcome = subprocess.run(["npm", "view", name, "dist.integrity"], capture_output=True, text=True, check=False)
    if outcome.returncode != 0 and "E404" not in outcome.stderr:
        raise PackagingError(f"npm does not say whether there is {name}: {outcome.stderr.strip()}")
    return outcome.stdout.strip() or None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("check", "npm"))
    parser.add_argument("files", type=Path, help="the folder with the files of the release")
    parser.add_argument("--tag", required=True, help="check: the release's tag; npm: the tag that the version gets there")
    choice = parser.parse_args()
    return finish(lambda: (check if choice.what == "check" else npm)(choice.files, choice.tag))


if __name__ == "__main__":
    sys.exit(main())
