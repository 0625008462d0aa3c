"""What can go wrong on the way to Pixiv, by who is to blame.

::

    PixivError
    ├── Outage                  nobody's work is to blame: stop the scan, try again later
    │   ├── NetworkFailed       no connection, reset, timeout, an answer cut short
    │   ├── ServerFailed        5xx, HTML where JSON was expected (bot wall), an unreadable body
    │   ├── RateLimited         429, or "Rate Limit" under any status; may carry retry_after_s
    │   └── AuthFailed          the refresh token is refused, missing, or the account is blocked
    ├── WorkUnavailable         a verdict about one work
    │   ├── WorkDeleted         a clear "gone"
    │   └── WorkRestricted      withheld from this account (stubs, limit_* pictures)
    ├── RequestRefused          Pixiv calls our request invalid (4xx validation)
    └── PaginationError         a walk over pages made no progress
"""


class PixivError(Exception):
    """Base of everything this package raises on purpose."""


class Outage(PixivError):
    """The way to Pixiv is disturbed; no candidate is to blame."""


class NetworkFailed(Outage):
    """No answer, or an answer that was cut short."""


class ServerFailed(Outage):
    """An answer that is no answer: 5xx, a challenge page, an unreadable body."""


class RateLimited(Outage):
    """Pixiv asks for a pause."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuthFailed(Outage):
    """The account must log in again."""


class WorkUnavailable(PixivError):
    """A verdict about one work: it can't be had."""


class WorkDeleted(WorkUnavailable):
    """The work is gone."""


class WorkRestricted(WorkUnavailable):
    """The account may not have the work."""


class RequestRefused(PixivError):
    """Pixiv calls the request itself invalid."""


class PaginationError(PixivError):
    """A walk over pages did not move on."""
