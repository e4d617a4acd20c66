"""The Homebrew formula, for a tap of the owner's. It names each archive that lies in the output folder."""

import hashlib
from pathlib import Path

from release import Project
from targets import TARGETS

FORMULA = """\
class RelayMesh < Formula
  desc "{summary}"
  homepage "{homepage}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]

{archives}
  def install
    bin.install "relay-mesh"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/relay-mesh.bash" => "relay-mesh"
    zsh_completion.install "completions/_relay-mesh"
    fish_completion.install "completions/relay-mesh.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/relay-mesh --version")
  end
end
"""

ARCHIVE = """\
  {system} do
    {processor} do
      url "{url}"
      sha256 "{digest}"
    end
  end
"""


def build(version: str, project: Project, out: Path) -> dict[str, bytes]:
    archives = []
    for target in TARGETS:
        archive = out / f"relay-mesh-{version}-{target.triple}.tar.xz"
        if archive.exists():
            system, processor = target.homebrew
            digest = hashlib.sha256(archive.read_bytes()).hexdigest()
            url = f"{project.downloads.format(version=version)}/{archive.name}"
            archives.append(ARCHIVE.format(system=system, processor=processor, url=url, digest=digest))
    text = FORMULA.format(
        summary=project.summary, homepage=project.homepage, version=version, archives="\n".join(archives)
    )
    return {"relay-mesh.rb": text.encode()}
