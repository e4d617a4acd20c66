"""Archives that are the same bytes each time: entries sorted, owned by root, all of one time."""

import gzip
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file to be packed."""

    path: str
    content: bytes
    executable: bool = False

    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def compress(content: bytes, epoch: int) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=epoch) as file:
        file.write(content)
    return packed.getvalue()


def tar_gz(entries: list[Entry], epoch: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in folders(entries):
            archive.addfile(header(folder, epoch, 0o755, tarfile.DIRTYPE))
        for entry in in_order(entries):
            info = header(entry.path, epoch, entry.mode(), tarfile.REGTYPE)
            info.size = len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content))
    return compress(packed.getvalue(), epoch)


def header(path: str, epoch: int, mode: int, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.mtime, info.mode, info.type = epoch, mode, kind
    info.uname = info.gname = "root"
    return info


def folders(entries: list[Entry]) -> list[str]:
    above = {str(parent) for entry in entries for parent in Path(entry.path).parents}
    return sorted(above - {"."})


def in_order(entries: list[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.path)


def write_tree(entries: list[Entry], folder: Path, epoch: int) -> None:
    """Writes the files for a tool that packs a folder."""
    for name in folders(entries):
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
    for entry in entries:
        path = folder / entry.path
        path.write_bytes(entry.content)
        path.chmod(entry.mode())
        os.utime(path, (epoch, epoch))
    for name in [*folders(entries), "."]:
        os.utime(folder / name, (epoch, epoch))
