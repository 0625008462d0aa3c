"""What an answer of the image host means: pure functions over status, headers and first bytes."""

from collections.abc import Collection, Mapping

from pixivflow.download.errors import DownloadError, FileGone, ImageRefused, IntegrityFailed
from pixivflow.download.formats import sniff
from pixivflow.pixiv.errors import PixivError, RateLimited, ServerFailed

_OK = 200
_GONE = frozenset({404, 410})
_LIMITED = 429


def status_error(status: int, url: str, retry_after: str | None) -> DownloadError | PixivError | None:
    """Give the error that a status stands for, None for 200.

    206 is an error too: nothing but whole files is asked for.
    """
    if status == _OK:
        return None
    if status in _GONE:
        return FileGone(f"{url}: the image host answers {status}, the file is gone or was replaced")
    if status == _LIMITED:
        wait = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
        return RateLimited(f"{url}: the image host asks for a pause", retry_after_s=wait)
    if 400 <= status < 500:  # noqa: PLR2004 - the class of client errors
        return ImageRefused(f"{url}: the image host refuses the request with status {status}")
    return ServerFailed(f"{url}: the image host answers {status}, expected 200")


def announced_length(headers: Mapping[str, str]) -> int | None:
    """Give the length of the body that the answer announces, None when it announces none."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def picture_type(head: bytes, url: str, content_type: str, accept: Collection[str]) -> str:
    """Give the media type by signature. Raises `IntegrityFailed` unless it is one of ``accept``."""
    if not head:
        raise IntegrityFailed(f"{url}: the body is empty")
    media_type = sniff(head)
    if media_type is not None and media_type in accept:
        return media_type
    told = media_type or content_type or "something unknown"
    raise IntegrityFailed(f"{url}: expected {' or '.join(sorted(accept))}, the body is {told}")
