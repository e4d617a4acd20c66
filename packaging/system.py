"""The files of a system package, where the file system hierarchy has them."""

from archive import Entry, compress
from release import Release


def files(release: Release, zsh: str) -> list[Entry]:
    """All but the licences. `zsh` is the folder for completions, which Debian and Fedora name differently."""
    places = {
        "relay-mesh.bash": "usr/share/bash-completion/completions/relay-mesh",
        "_relay-mesh": f"usr/share/zsh/{zsh}/_relay-mesh",
        "relay-mesh.fish": "usr/share/fish/vendor_completions.d/relay-mesh.fish",
    }
    entries = [Entry("usr/bin/relay-mesh", release.program, executable=True)]
    entries += [Entry(places[name], text) for name, text in release.completions.items()]
    for name, text in release.manual.items():
        entries.append(Entry(f"usr/share/man/man1/{name}.gz", compress(text, release.epoch)))
    return entries
