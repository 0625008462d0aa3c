"""How to reach Pixiv, and as which application."""

from typing import ClassVar

from pixivflow.pixiv.redaction import Secretive

CALLBACK = "https://app-api.pixiv.net/web/v1/users/auth/pixiv/callback"
"""The redirect address registered for the mobile application."""

TOTAL_FACTOR = 2.0


class PixivSettings(Secretive, frozen=True):
    """Addresses, manners and the application profile; seconds throughout.

    ``image_url`` is a mirror that replaces scheme and host of ``i.pximg.net``. ``image_proxy`` defaults to
    ``proxy``. The client constants are those of the published mobile application, the same for everybody.
    """

    secret_fields: ClassVar[frozenset[str]] = frozenset(
        {"proxy", "image_proxy", "client_secret", "hash_secret"}
    )

    api_url: str = "https://app-api.pixiv.net"
    oauth_url: str = "https://oauth.secure.pixiv.net"
    image_url: str | None = None
    proxy: str | None = None
    image_proxy: str | None = None
    timeout_s: float = 30.0
    pace_s: float = 1.0
    language: str = "en"
    retry_base_s: float = 0.5
    client_id: str = "MOBrBDS8blbauoSck0ZfDbtuzpyT"
    client_secret: str = "lsACyCD94FhDUtGTXi3QzcFE2uU1hqtDaKeqrdwj"  # noqa: S105 - published with the application
    hash_secret: str = "28c1fdd170a5204386cb1313c7077b34f83e4aaf4aa829ce78c231e05b0bae2c"  # noqa: S105 - likewise
    redirect_uri: str = CALLBACK
    user_agent: str = "PixivIOSApp/7.19.1 (iOS 16.7.2; iPhone12,8)"
    app_os: str = "ios"
    app_os_version: str = "16.7.2"
    app_version: str = "7.19.1"

    @property
    def total_s(self) -> float:
        """The longest a whole request may take, its body included."""
        return self.timeout_s * TOTAL_FACTOR

    @property
    def proxy_of_images(self) -> str | None:
        """The proxy of the image host."""
        return self.image_proxy or self.proxy
