"""SHA256SUMS over all files of a release, and its signature by minisign."""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from errors import PackagingError

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.minisig"
KEY = "RELAY_MESH_SIGNING_KEY"
# How minisign has written the secret half of a key: with a password, or without.
ENCRYPTED, OPEN = b"Sc", b"\0\0"
PASSWORD = "RELAY_MESH_SIGNING_PASSWORD"


def write(path: Path, content: bytes) -> None:
    """Whole or not at all, also if the disk is full."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.chmod(0o755 if path.suffix == ".sh" else 0o644)
        unfinished.replace(path)
    except OSError as error:
        raise PackagingError(f"{path} could not be written: {error.strerror}\n"
                             "hint: make room on the disk and pack again; nothing unfinished is left there") from error
    finally:
        unfinished.unlink(missing_ok=True)


def check_key() -> None:
    """Says before the work what would fail after it: that the key cannot be read, or its password cannot be asked for."""
    key = os.environ.get(KEY)
    if not key:
        return
    try:
        method = base64.b64decode(Path(key).read_text().splitlines()[1])[2:4]
        if method not in (ENCRYPTED, OPEN):
            raise ValueError("its second line is of another kind")
    except (OSError, ValueError, IndexError) as error:
        raise PackagingError(f"{KEY} is {key}, which is no secret key of minisign: {error}\n"
                             "hint: `minisign -G` makes one") from error
    if method == ENCRYPTED and PASSWORD not in os.environ and not sys.stdin.isatty():
        raise PackagingError(f"the key {key} has a password, and there is no terminal to ask for it\n"
                             f"hint: run this in a terminal, or set {PASSWORD}")


def write_sums(out: Path, version: str) -> None:
    """Over each file but these two. An older signature goes: it would be of other digests."""
    (out / SIGNATURE).unlink(missing_ok=True)
    files = sorted(file for file in out.iterdir() if file.is_file() and file.name != SUMS and file.name[0] != ".")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    write(out / SUMS, "".join(lines).encode())
    if os.environ.get(KEY):
        write(out / SIGNATURE, signature(out / SUMS, os.environ[KEY], version))
        print(f"{out / SIGNATURE}: signed with {os.environ[KEY]}")


def signature(sums: Path, key: str, version: str) -> bytes:
    """minisign asks for the key's password itself, at the terminal, unless it is given by a variable."""
    password = os.environ.get(PASSWORD)
    with tempfile.TemporaryDirectory() as folder:
        signed = Path(folder) / SIGNATURE
        # The comment is signed too. By default it holds the time, and each signature would be another.
        command = ["minisign", "-S", "-s", key, "-m", str(sums), "-x", str(signed), "-t", f"relay-mesh {version} {SUMS}"]
        if password is not None:
            options = {"input": f"{password}\n".encode(), "capture_output": True}
        else:
            options = {"stdout": sys.stderr}
        try:
            outcome = subprocess.run(command, **options)
        except OSError as error:
            raise PackagingError(f"minisign could not be started: {error}\nhint: packaging/setup installs it") from error
        if outcome.returncode != 0:
            said = (outcome.stderr or b"").decode(errors="replace").strip()
            raise PackagingError(f"minisign did not sign {sums} with {key}. {said}\n"
                                 "hint: is the password right? What was packed stays, and is not signed")
        return signed.read_bytes()
