"""How files come into a folder that another program watches: nothing counts before its manifest is there.

Everything is first written and synced under ``.pixivflow/<digest>/``, then linked to its final name, and last the
manifest ``<digest>.json`` is renamed into place. The staged twins stay until then: by them a resumed send tells its
own files from others. What was published leaves a receipt, so that a manifest that its reader has
taken away is not written again. Blocking: for a worker thread.
"""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pixivflow.delivery.artifacts import OpenFile, Pulse, check_hash
from pixivflow.delivery.keys import key_digest
from pixivflow.durable import sync_folder
from pixivflow.failpoints import reach
from protocol.payloads import Payload

HIDDEN = ".pixivflow"
RECEIPT_DAYS = 30
MAX_NAME_BYTES = 255
_SUFFIX_ROOM = 24
_RESERVED = re.compile(r"[0-9a-f]{32}\.json")
_UNSAFE = re.compile(r"[/\x00-\x1f\x7f]")
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
)


class Slip(msgspec.Struct, frozen=True):
    """Where the parts of one message lie."""

    folder: Path
    digest: str

    @property
    def manifest(self) -> Path:
        """The visible manifest."""
        return self.folder / f"{self.digest}.json"

    @property
    def staging(self) -> Path:
        """The folder of the unfinished message."""
        return self.folder / HIDDEN / self.digest

    @property
    def staged_manifest(self) -> Path:
        """The manifest before it is published."""
        return self.staging / "manifest"

    @property
    def seal(self) -> Path:
        """Written when only the publication is missing."""
        return self.staging / "sealed"

    @property
    def receipt(self) -> Path:
        """What is left of a published message."""
        return self.folder / HIDDEN / f"{self.digest}.done"

    @property
    def published(self) -> bool:
        """Whether the manifest has been visible, even if its reader has taken it away since."""
        sealed_and_gone = self.seal.exists() and not self.staged_manifest.exists()
        return self.manifest.exists() or self.receipt.exists() or sealed_and_gone


def slip_for(folder: Path, key: str) -> Slip:
    """Return where the message with this key lies."""
    return Slip(folder, key_digest(key))


def put(slip: Slip, payload: Payload, files: Sequence[OpenFile], pulse: Pulse) -> None:
    """Bring a message into the folder; may be repeated after any crash. Raises `FileMissing`, OSError."""
    _make_folder(slip.folder)
    slip.staging.mkdir(parents=True, exist_ok=True)
    staged = [_stage(slip.staging, index, each, pulse) for index, each in enumerate(files)]
    sync_folder(slip.staging)
    reach("folder.staged")
    names: list[str] = []
    for source, each in zip(staged, files, strict=True):
        names.append(_place(source, slip, each, names))
    sync_folder(slip.folder)
    reach("folder.placed")
    _write_durably(slip.staged_manifest, manifest(payload, names))
    _write_durably(slip.seal, b"")
    sync_folder(slip.staging)
    slip.staged_manifest.replace(slip.manifest)
    sync_folder(slip.folder)
    reach("folder.published")
    finish(slip)


def finish(slip: Slip) -> None:
    """Turn a published message's staging into its receipt. Raises OSError."""
    if slip.seal.exists():
        slip.seal.replace(slip.receipt)
    elif not slip.receipt.exists():
        slip.receipt.parent.mkdir(exist_ok=True)
        _write_durably(slip.receipt, b"")
    sync_folder(slip.receipt.parent)
    shutil.rmtree(slip.staging, ignore_errors=True)


def prune_receipts(folder: Path, now_s: float) -> None:
    """Remove receipts, and unfinished messages, that no retry can still ask for. Raises OSError."""
    for left in (folder / HIDDEN).glob("*"):
        if now_s - left.stat().st_mtime <= RECEIPT_DAYS * 86_400:
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def manifest(payload: Payload, names: Sequence[str]) -> bytes:
    """Return the manifest: fields as lists of values, files in order under the names they have here."""
    fields: dict[str, list[str]] = {}
    for name, value in payload.fields:
        fields.setdefault(name, []).append(value)
    content = {
        "format": 1,
        "key": payload.key,
        "route": payload.route,
        "work": str(payload.work),
        "slot": payload.slot_id,
        "target": payload.target_id,
        "fields": fields,
        "files": [
            {"name": name, "bytes": file.bytes, "sha256": file.sha256, "media_type": file.media_type}
            for name, file in zip(names, payload.files, strict=True)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def _write_durably(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    part.replace(path)


def _stage(staging: Path, index: int, each: OpenFile, pulse: Pulse) -> Path:
    """Copy a file into the staging folder, unless a send before has done so."""
    target = staging / str(index)
    if target.exists() and _same_content(target, each, pulse):
        return target
    part = staging / f"{index}.part"
    digest = hashlib.sha256()
    with part.open("wb") as handle:
        for chunk in each.chunks(pulse):
            digest.update(chunk)
            handle.write(chunk)
        handle.flush()
        os.fsync(handle.fileno())
    check_hash(each.file, digest.hexdigest())
    part.replace(target)
    return target


def _same_content(path: Path, each: OpenFile, pulse: Pulse) -> bool:
    if path.stat().st_size != each.file.bytes:
        return False
    with path.open("rb") as handle:
        return all(chunk == handle.read(len(chunk)) for chunk in each.chunks(pulse))


def _place(staged: Path, slip: Slip, each: OpenFile, taken: Sequence[str]) -> str:
    """Give a staged file its final name without ever overwriting another; return the name."""
    for name in _candidates(each.file.name, slip.digest):
        if name not in taken and _claim(staged, slip.folder / name, each):
            return name
    raise AssertionError("unreachable: candidates never end")


def _claim(staged: Path, final: Path, each: OpenFile) -> bool:
    """Whether ``final`` is ours: linked now, or by a send before."""
    try:
        final.hardlink_to(staged)
    except FileExistsError:
        return final.samefile(staged)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        return _claim_without_links(staged, final, each)
    return True


def _claim_without_links(staged: Path, final: Path, each: OpenFile) -> bool:
    """Do the same on file systems without hard links; there, ours is what has our content."""
    try:
        final.open("xb").close()
    except FileExistsError:
        return final.is_file() and _same_content(final, each, lambda: None)
    staged.replace(final)
    return True


def _candidates(wanted: str, digest: str) -> Iterator[str]:
    name = safe_name(wanted)
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    if not _RESERVED.fullmatch(name):
        yield name
    yield f"{stem}~{digest[:8]}{dot}{ending}"
    number = 2
    while True:
        yield f"{stem}~{digest[:8]}-{number}{dot}{ending}"
        number += 1


def safe_name(name: str) -> str:
    """Return ``name`` as one component of a path, with room for a suffix; the end of a name stays."""
    clean = _UNSAFE.sub("_", name).strip()
    if clean.strip(".") == "":
        clean = "file"
    stem, dot, ending = clean.rpartition(".")
    if not stem or len(ending.encode()) > _SUFFIX_ROOM:
        stem, dot, ending = clean, "", ""
    room = MAX_NAME_BYTES - _SUFFIX_ROOM - len(f"{dot}{ending}".encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + ending
