"""The container image, as an OCI image layout in a tar: `skopeo copy oci-archive:…`, `podman load` and `docker load`
take it. It holds the static binary and no shell, and runs as a user who is not root and owns nothing but its home.

`joined` makes one image for several processors of those for one each."""

import hashlib
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

from archive import Entry, Folder, compress, tar
from release import Release

USER = 65532
HOME = "home/relay-mesh"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
# Every registry and runtime takes gzip; some older ones do not take zstd.
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def build(release: Release) -> dict[str, bytes]:
    root = filesystem(release)
    layer = compress(root, release.epoch)
    config = encoded(configuration(release, sha256(root)))
    manifest = encoded({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config),
        "layers": [descriptor(LAYER, layer)],
        "annotations": labels(release),
    })
    image = descriptor(MANIFEST, manifest) | {"platform": platform(release)}
    packed = layout(release.version, image, {layer, config, manifest}, release.epoch)
    return {f"relay-mesh-{release.version}-oci-{release.target.triple}.tar": packed}


def joined(version: str, out: Path) -> dict[str, bytes]:
    """One image of those for one processor each that lie in the output folder, if there are several. Its tag names an
    index, in which a client finds the image for its processor; each blob is in it once."""
    images, blobs, epoch = [], set(), 0
    for file in sorted(out.glob(f"relay-mesh-{version}-oci-*.tar")):
        with tarfile.open(file) as archive:
            for member in archive:
                epoch = max(epoch, int(member.mtime))
                if member.isfile() and member.name.startswith("blobs/"):
                    blobs.add(archive.extractfile(member).read())
            images += json.load(archive.extractfile("index.json"))["manifests"]
    if len(images) < 2:
        return {}
    for image in images:
        # The tag is of all of them together.
        del image["annotations"]
    images.sort(key=lambda image: image["platform"]["architecture"])
    index = encoded({"schemaVersion": 2, "mediaType": INDEX, "manifests": images})
    return {f"relay-mesh-{version}-oci.tar": layout(version, descriptor(INDEX, index), blobs | {index}, epoch)}


def layout(version: str, image: dict, blobs: set[bytes], epoch: int) -> bytes:
    """An image layout with one image, tagged by the version."""
    tagged = image | {"annotations": {"org.opencontainers.image.ref.name": version}}
    index = encoded({"schemaVersion": 2, "mediaType": INDEX, "manifests": [tagged]})
    files = [Entry("oci-layout", encoded({"imageLayoutVersion": "1.0.0"})), Entry("index.json", index)]
    files += [Entry(f"blobs/sha256/{sha256(blob)}", blob) for blob in blobs]
    return tar(files, epoch)


def filesystem(release: Release) -> bytes:
    """The only layer. Certificates are not in it: who has TLS with a public server mounts them."""
    files = [
        Entry("usr/bin/relay-mesh", release.program, executable=True),
        Entry("etc/passwd", f"root:x:0:0::/:\nrelay-mesh:x:{USER}:{USER}::/{HOME}:\n".encode()),
        Entry("etc/group", f"root:x:0:\nrelay-mesh:x:{USER}:\n".encode()),
    ]
    files += [Entry(f"usr/share/licenses/relay-mesh/{name}", text) for name, text in release.licences().items()]
    return tar(files, release.epoch, (Folder(HOME, 0o700, USER), Folder("tmp", 0o1777)))


def configuration(release: Release, root: str) -> dict:
    created = datetime.fromtimestamp(release.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": created,
        **platform(release),
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/bin", f"HOME=/{HOME}"],
            "Entrypoint": ["/usr/bin/relay-mesh"],
            "WorkingDir": f"/{HOME}",
            "Volumes": {f"/{HOME}": {}},
            "Labels": labels(release),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{root}"]},
        "history": [{"created": created, "created_by": "relay-mesh packaging/oci.py"}],
    }


def labels(release: Release) -> dict[str, str]:
    facts = {
        "title": "relay-mesh",
        "description": release.project.summary,
        "version": release.version,
        "licenses": "MIT OR Apache-2.0",
        "url": release.project.homepage,
    }
    return {f"org.opencontainers.image.{name}": fact for name, fact in facts.items()}


def platform(release: Release) -> dict[str, str]:
    return {"architecture": release.target.oci, "os": "linux"}


def descriptor(kind: str, blob: bytes) -> dict:
    return {"mediaType": kind, "digest": f"sha256:{sha256(blob)}", "size": len(blob)}


def sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def encoded(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
