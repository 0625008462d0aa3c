"""Where pictures lie on the image host: building addresses, and reading them back."""

import hashlib
import re
from typing import Literal

import msgspec

from pixivflow.simulator.catalogue import SimWork

_D = r"\d{4}/\d{2}/\d{2}/\d{2}/\d{2}/\d{2}"
_NAME = rf"(?P<time>{_D})/(?P<id>\d+)(?:-(?P<hash>[0-9a-f]{{32}}))?"
_ORIGINAL = re.compile(rf"/img-original/img/{_NAME}_p(?P<page>\d+)\.(?P<ext>jpg|png|gif)")
_FRAME = re.compile(rf"/img-original/img/{_NAME}_ugoira(?P<page>\d+)\.(?P<ext>jpg|png|gif)")
_MASTER = re.compile(
    rf"(?:/c/[0-9a-z_]+)?/img-master/img/{_NAME}(?:_p(?P<page>\d+))?_(?P<size>master1200|square1200)\.(?P<ext>jpg)"
)
_ZIP = re.compile(rf"/img-zip-ugoira/img/{_NAME}_ugoira(?P<size>600x600|1920x1080)\.(?P<ext>zip)")

PictureKind = Literal["original", "master", "square", "frame", "zip"]


class PicturePath(msgspec.Struct, frozen=True):
    """What an address on the image host asks for."""

    kind: PictureKind
    work_id: int
    time: str
    page: int
    extension: str
    edge: int = 1200
    hash: str = ""


def parse(path: str) -> PicturePath | None:
    """Read an address; None when it is no picture of a work."""
    if found := _ORIGINAL.fullmatch(path):
        return _read("original", found)
    if found := _FRAME.fullmatch(path):
        return _read("frame", found)
    if found := _MASTER.fullmatch(path):
        square = found["size"] == "square1200"
        return _read("square" if square else "master", found, 360 if square else 1200)
    if found := _ZIP.fullmatch(path):
        return _read("zip", found, int(found["size"].partition("x")[0]))
    return None


def _read(kind: PictureKind, found: re.Match[str], edge: int = 1200) -> PicturePath:
    groups = found.groupdict()
    page = int(groups.get("page") or 0)
    return PicturePath(kind, int(found["id"]), found["time"], page, found["ext"], edge, found["hash"] or "")


def belongs(path: PicturePath, work: SimWork) -> bool:
    """Whether the work has such a picture now, under exactly this name."""
    if (path.time, path.hash) != (_time(work), _hash(work)):
        return False
    match path.kind:
        case "original":
            pages = work.page_count if work.type != "ugoira" else 0
            return path.page < pages and path.extension == work.extension(path.page)
        case "frame":
            return path.page < len(work.frame_delays) and path.extension == work.extension(0)
        case "zip":
            return work.type == "ugoira"
        case "master" | "square":
            return path.page < work.page_count


def original(base: str, work: SimWork, page: int) -> str:
    """Address of a page's original, or of an animation's first frame."""
    part = "ugoira" if work.type == "ugoira" else "p"
    return f"{base}/img-original/img/{_stem(work)}_{part}{page}.{work.extension(page)}"


def thumbnails(base: str, work: SimWork, page: int) -> dict[str, str]:
    """Addresses of a page's three thumbnails."""
    stem = _stem(work) if work.type == "ugoira" else f"{_stem(work)}_p{page}"
    return {
        "square_medium": f"{base}/c/360x360_70/img-master/img/{stem}_square1200.jpg",
        "medium": f"{base}/c/540x540_70/img-master/img/{stem}_master1200.jpg",
        "large": f"{base}/c/600x1200_90/img-master/img/{stem}_master1200.jpg",
    }


def animation(base: str, work: SimWork) -> str:
    """Address of the smaller zip of an animation."""
    return f"{base}/img-zip-ugoira/img/{_stem(work)}_ugoira600x600.zip"


def placeholder(base: str, kind: str) -> str:
    """Address of the picture shown in place of withheld content."""
    return f"{base}/common/images/limit_{kind}_360.png"


def _time(work: SimWork) -> str:
    return work.upload_time.strftime("%Y/%m/%d/%H/%M/%S")


def _hash(work: SimWork) -> str:
    return hashlib.blake2b(str(work.id).encode(), digest_size=16).hexdigest() if work.hashed else ""


def _stem(work: SimWork) -> str:
    suffix = f"-{_hash(work)}" if work.hashed else ""
    return f"{_time(work)}/{work.id}{suffix}"
