"""The archive that install.sh and Homebrew download, and that works without either."""

from archive import Entry, tar_gz
from release import ROOT, Release


def build(release: Release) -> dict[str, bytes]:
    stem = release.archive_stem()
    entries = [Entry("relay-mesh", release.binary.read_bytes(), executable=True)]
    entries.append(Entry("README.md", (ROOT / "README.md").read_bytes()))
    entries += [Entry(name, text) for name, text in release.licences().items()]
    entries += [Entry(f"completions/{name}", text) for name, text in release.completions.items()]
    entries += [Entry(f"man/man1/{name}", text) for name, text in release.manual.items()]
    inside = [Entry(f"{stem}/{entry.path}", entry.content, entry.executable) for entry in entries]
    return {f"{stem}.tar.gz": tar_gz(inside, release.epoch)}
