"""What can go wrong on the way to Pixiv, by who is to blame.

::

    PixivError
    ├── Outage                  nobody's work is to blame: stop the scan, try again later
    │   ├── NetworkFailed       no connection, reset, timeout, an answer cut short
    │   ├── ServerFailed        5xx, HTML where JSON was expected (bot wall), an unreadable body
    │   ├── RateLimited         429, or "Rate Limit" under any status; may carry retry_after_s
    │   ├── CredentialsUnsaved  a new refresh token could not be written, so it is not used
    │   └── AuthFailed          the refresh token is refused, missing, or the account is blocked
    │       ├── CredentialsDamaged  the token file can't be read
    │       ├── AccessTokenRefused  400 with the OAuth sentence; the client answers it by one refresh
    │       └── AccessDenied        403 with Pixiv's envelope: the account or the work is restricted
    ├── WorkUnavailable         a verdict about one work, or about one artist's works
    │   ├── WorkDeleted         a clear "gone"
    │   ├── WorkRestricted      withheld from this account (stubs, limit_* pictures)
    │   └── OwnerGone           the artist left Pixiv or is suspended
    ├── RequestRefused          Pixiv calls our request invalid (4xx validation)
    │   └── NotFound            404 with Pixiv's envelope; what is gone depends on the endpoint
    ├── PaginationError         a walk over pages made no progress
    └── BadAddress              a configured address or proxy can't be used (a ValueError, too)
"""


class PixivError(Exception):
    """Base of everything this package raises on purpose."""


class Outage(PixivError):
    """The way to Pixiv is disturbed; no candidate is to blame."""


class NetworkFailed(Outage):
    """No answer, or an answer that was cut short."""


class ServerFailed(Outage):
    """An answer that is no answer: 5xx, a challenge page, an unreadable body.

    ``blocked`` says that a quick retry is pointless: something between us and Pixiv turns us away.
    """

    def __init__(self, message: str, *, blocked: bool = False) -> None:
        super().__init__(message)
        self.blocked = blocked


class RateLimited(Outage):
    """Pixiv asks for a pause."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CredentialsUnsaved(Outage):
    """A new refresh token could not be written; the access token that came with it is not used."""


class AuthFailed(Outage):
    """The account must log in again."""


class CredentialsDamaged(AuthFailed):
    """The token file of an account can't be read."""


class AccessTokenRefused(AuthFailed):
    """Pixiv does not take the access token of this one request."""


class AccessDenied(AuthFailed):
    """Pixiv withholds what was asked for from this account."""


class WorkUnavailable(PixivError):
    """A verdict about one work: it can't be had."""


class WorkDeleted(WorkUnavailable):
    """The work is gone."""


class WorkRestricted(WorkUnavailable):
    """The account may not have the work."""


class OwnerGone(WorkUnavailable):
    """The artist left Pixiv, is suspended, or never existed; says nothing about single works."""


class RequestRefused(PixivError):
    """Pixiv calls the request itself invalid; ``parameters`` names what it dislikes, when it says so."""

    def __init__(self, message: str, *, status: int = 400, parameters: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.parameters = parameters


class NotFound(RequestRefused):
    """Pixiv itself says that what the request names does not exist."""


class PaginationError(PixivError):
    """A walk over pages did not move on."""


class BadAddress(PixivError, ValueError):
    """A configured address or proxy can't be used."""
