"""The files of the image host, made when asked for and kept while there is room."""

import io
import zipfile
from collections import OrderedDict

import msgspec
import trio

from pixivflow.simulator.catalogue import SimWork
from pixivflow.simulator.paths import PicturePath
from pixivflow.simulator.pictures import Format, Picture, draw, encoded, placeholder, render

KEPT_BYTES = 64 << 20
_TYPES = {"jpg": "image/jpeg", "png": "image/png", "gif": "image/gif", "zip": "application/zip"}
_FORMATS: dict[str, Format] = {"jpg": "jpg", "png": "png", "gif": "gif"}
_MASTER_EDGE = 1200


class File(msgspec.Struct, frozen=True):
    """A finished file."""

    media_type: str
    data: bytes


class Gallery:
    """Makes files in worker threads; at most 64 MiB of them are kept."""

    def __init__(self, *, min_bytes: int, kept_bytes: int = KEPT_BYTES) -> None:
        self._min_bytes = min_bytes
        self._most_bytes = kept_bytes
        self._kept: OrderedDict[tuple[PicturePath, SimWork] | str, File] = OrderedDict()
        self._kept_bytes = 0
        self._threads = trio.CapacityLimiter(2)

    async def picture(self, path: PicturePath, work: SimWork) -> File:
        """Give the file at an address that belongs to the work."""
        file = self._kept.get((path, work))
        if file is None:
            file = await trio.to_thread.run_sync(make, path, work, self._min_bytes, limiter=self._threads)
            self._keep((path, work), file)
        return file

    async def placeholder(self, text: str) -> File:
        """Give a picture shown in place of another."""
        file = self._kept.get(text)
        if file is None:
            data = await trio.to_thread.run_sync(placeholder, text, limiter=self._threads)
            file = File("image/png", data)
            self._keep(text, file)
        return file

    def _keep(self, key: tuple[PicturePath, SimWork] | str, file: File) -> None:
        if key in self._kept:
            return
        self._kept[key] = file
        self._kept_bytes += len(file.data)
        while self._kept_bytes > self._most_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped.data)


def make(path: PicturePath, work: SimWork, min_bytes: int = 0) -> File:
    """Draw the file at an address. Slow: not on the event loop."""
    media_type = _TYPES[path.extension]
    match path.kind:
        case "original":
            form = _FORMATS[path.extension]
            return File(media_type, render(_plan(work, path.page, form, min_bytes=min_bytes)))
        case "frame":
            form = _FORMATS[path.extension]
            return File(media_type, render(_frame(work, path.page, form)))
        case "master" | "square":
            return File(media_type, _thumbnail(path, work))
        case "zip":
            return File(media_type, _zip(path, work))


def _plan(work: SimWork, page: int, form: Format, *, phase: float = 0.0, min_bytes: int = 0) -> Picture:
    lighthouse = "灯台" in work.tags
    return Picture(work.id, page, work.width, work.height, form, lighthouse, phase, min_bytes)


def _frame(work: SimWork, number: int, form: Format) -> Picture:
    return _plan(work, 0, form, phase=number / max(1, len(work.frame_delays)))


def _thumbnail(path: PicturePath, work: SimWork) -> bytes:
    image = draw(_plan(work, path.page, "jpg"))
    if path.kind == "square":
        edge = min(image.size)
        left, top = (image.width - edge) // 2, (image.height - edge) // 2
        image = image.crop((left, top, left + edge, top + edge))
    image.thumbnail((min(path.edge, _MASTER_EDGE), min(path.edge, _MASTER_EDGE)))
    return encoded(image, "jpg")


def _zip(path: PicturePath, work: SimWork) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for number in range(len(work.frame_delays)):
            image = draw(_frame(work, number, "jpg"))
            image.thumbnail((path.edge, path.edge))
            archive.writestr(zipfile.ZipInfo(f"{number:06d}.jpg"), encoded(image, "jpg"))
    return out.getvalue()
