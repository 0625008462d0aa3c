"""Tells whether a path lies on a network disk, where SQLite's locks and shared memory cannot be trusted."""

import re
from pathlib import Path, PurePosixPath
from typing import Final

NETWORK_TYPES: Final = frozenset({
    "9p", "afs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
    "smb3", "smbfs", "beegfs", "orangefs", "gfs2",
})  # fmt: skip
NETWORK_FUSE: Final = frozenset({
    "sshfs", "s3fs", "rclone", "davfs2", "davfs", "glusterfs", "cephfs", "ceph-fuse", "smbnetfs", "gcsfuse", "goofys",
    "juicefs", "mfs", "curlftpfs", "blobfuse", "blobfuse2", "gvfsd-fuse", "seaweedfs",
})  # fmt: skip
_MOUNTINFO: Final = Path("/proc/self/mountinfo")


def filesystem_type(mountinfo: str, path: PurePosixPath) -> str | None:
    """Tell the type of the file system that holds the absolute ``path``; None when no line covers it.

    ``mountinfo`` is the text of ``/proc/self/mountinfo``. Of two mounts on one folder the later covers the earlier.
    """
    found: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        mount = _mount(line)
        if mount is None or not path.is_relative_to(mount[0]):
            continue
        depth = len(mount[0].parts)
        if found is None or depth >= found[0]:
            found = (depth, mount[1])
    return None if found is None else found[1]


def is_network_type(fstype: str) -> bool:
    """Whether a file system of this type lives on another machine."""
    kind, _, flavour = fstype.partition(".")
    if kind in {"fuse", "fuseblk"}:
        return flavour in NETWORK_FUSE
    return kind in NETWORK_TYPES


def network_disk(path: Path) -> str | None:
    """Tell the type of the network disk under ``path``, None for a local one or where Linux does not say."""
    try:
        mountinfo = _MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    fstype = filesystem_type(mountinfo, PurePosixPath(path.resolve()))
    return fstype if fstype is not None and is_network_type(fstype) else None


def _mount(line: str) -> tuple[PurePosixPath, str] | None:
    before, separator, after = line.partition(" - ")
    fields, tail = before.split(" "), after.split(" ")
    if not separator or len(fields) < 5 or not tail[0]:  # noqa: PLR2004 - the mount point is the fifth field
        return None
    return PurePosixPath(_unescaped(fields[4])), tail[0]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
