"""Archives that are the same bytes each time: entries sorted, owned by root, all of one time."""

import gzip
import io
import lzma
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
    # Of the user and of the group.
    owner: int = 0

    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def compress(content: bytes, epoch: int) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=epoch) as file:
        file.write(content)
    return packed.getvalue()


@dataclass(frozen=True)
class Folder:
    """A folder that is packed although it is empty, or that is not for everybody."""

    path: str
    mode: int
    owner: int = 0


def tar_gz(entries: list[Entry], epoch: int) -> bytes:
    return compress(tar(entries, epoch), epoch)


def tar_xz(entries: list[Entry], epoch: int) -> bytes:
    """Without a filter for machine code, which would spare a twentieth: the xz of busybox knows none."""
    return lzma.compress(tar(entries, epoch), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, preset=9)


def tar(entries: list[Entry], epoch: int, further: tuple[Folder, ...] = ()) -> bytes:
    """An archive that is not compressed, with the folders above each entry, and these."""
    packed = io.BytesIO()
    all_folders = {path: Folder(path, 0o755) for path in folders(entries)} | {one.path: one for one in further}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(all_folders):
            folder = all_folders[path]
            archive.addfile(header(path, epoch, folder.mode, tarfile.DIRTYPE, folder.owner))
        for entry in in_order(entries):
            info = header(entry.path, epoch, entry.mode(), tarfile.REGTYPE, entry.owner)
            info.size = len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content))
    return packed.getvalue()


def header(path: str, epoch: int, mode: int, kind: bytes, owner: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.mtime, info.mode, info.type = epoch, mode, kind
    info.uid = info.gid = owner
    info.uname = info.gname = "root" if owner == 0 else ""
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
