from pathlib import PurePosixPath

import pytest

from pixivflow.ledger.disk import filesystem_type, is_network_type, network_disk

MOUNTINFO = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv/media rw - nfs4 host:/export rw
31 30 8:1 / /srv/media/local rw shared:9 master:2 - xfs /dev/sda1 rw
32 22 0:41 / /srv/with\040space rw - cifs //host/share rw
33 22 0:42 / /home/me/far rw - fuse.sshfs me@host: rw
34 22 0:43 / /covered rw - nfs host:/a rw
35 22 8:2 / /covered rw - btrfs /dev/sdb rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/pixivflow/ledger.sqlite3", "ext4"),
        ("/srv/media/ledger.sqlite3", "nfs4"),
        ("/srv/mediate/ledger.sqlite3", "ext4"),
        ("/srv/media/local/ledger.sqlite3", "xfs"),
        ("/srv/with space/ledger.sqlite3", "cifs"),
        ("/home/me/far/ledger.sqlite3", "fuse.sshfs"),
        ("/covered/ledger.sqlite3", "btrfs"),
    ],
)
def test_the_deepest_and_latest_mount_decides(path, expected):
    assert filesystem_type(MOUNTINFO, PurePosixPath(path)) == expected


def test_a_path_that_no_mount_covers_is_unknown():
    assert filesystem_type("", PurePosixPath("/var")) is None


@pytest.mark.parametrize("fstype", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone", "ceph"])
def test_network_types_are_known(fstype):
    assert is_network_type(fstype)


@pytest.mark.parametrize(
    "fstype", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuseblk", "fuse.mergerfs"]
)
def test_local_types_are_not_refused(fstype):
    assert not is_network_type(fstype)


def test_a_temporary_folder_is_local(tmp_path):
    assert network_disk(tmp_path / "not there yet") is None
