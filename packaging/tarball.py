"""The archive that install.sh and Homebrew download, and that works without either. The one by xz is a third smaller;
the one by gzip is for machines that have no xz."""

from archive import Entry, tar_gz, tar_xz
from release import ROOT, Release


def build(release: Release) -> dict[str, bytes]:
    stem = release.archive_stem()
    entries = [Entry("relay-mesh", release.program, executable=True)]
    entries.append(Entry("README.md", (ROOT / "README.md").read_bytes()))
    entries += [Entry(name, text) for name, text in release.licences().items()]
    entries += [Entry(f"completions/{name}", text) for name, text in release.completions.items()]
    entries += [Entry(f"man/man1/{name}", text) for name, text in release.manual.items()]
    inside = [Entry(f"{stem}/{entry.path}", entry.content, entry.executable) for entry in entries]
    return {
        f"{stem}.tar.gz": tar_gz(inside, release.epoch),
        f"{stem}.tar.xz": tar_xz(inside, release.epoch),
    }
