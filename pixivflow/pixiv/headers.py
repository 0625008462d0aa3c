"""The headers by which Pixiv knows its application."""

import hashlib
from datetime import UTC, datetime

from pixivflow.pixiv.settings import PixivSettings

REFERER = "https://app-api.pixiv.net/"


def client_time(now_ms: int) -> str:
    """Return the instant as ``X-Client-Time`` has it, in UTC."""
    return datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")


def app_headers(settings: PixivSettings, now_ms: int) -> dict[str, str]:
    """Return what every request to the API and to the token endpoint carries, without credentials."""
    moment = client_time(now_ms)
    digest = hashlib.md5((moment + settings.hash_secret).encode(), usedforsecurity=False)
    return {
        "User-Agent": settings.user_agent,
        "App-OS": settings.app_os,
        "App-OS-Version": settings.app_os_version,
        "App-Version": settings.app_version,
        "Accept-Language": settings.language,
        "Referer": REFERER,
        "X-Client-Time": moment,
        "X-Client-Hash": digest.hexdigest(),
    }
