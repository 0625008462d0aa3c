"""The signed-in account: sign-in codes, refresh tokens, access tokens."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from pixivflow.clock import Wall

USER_ID = 90_000_001
CODE_LIFETIME_MS = 30_000
# constants of the published mobile apps: they name the app, not a person
_CLIENTS = frozenset(
    {
        ("MOBrBDS8blbauoSck0ZfDbtuzpyT", "lsACyCD94FhDUtGTXi3QzcFE2uU1hqtDaKeqrdwj"),
        ("KzEZED7aC0vird8jWyHM38mXjNTY", "W9JZoJe00qPvJsiyCGT3CCtC6ZUtdpKpzMbNlUGP"),
    }
)


class GrantRefused(Exception):
    """The token endpoint says no; carries Pixiv's message and the OAuth error word."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.message = message
        self.error = error


class Accounts:
    """Gives out and checks tokens. ``refresh_token`` is the newest valid one."""

    def __init__(
        self, wall: Wall, *, lifetime_s: float, rotate: bool, premium: bool, x_restrict: int, seed: int
    ) -> None:
        self._wall = wall
        self._lifetime_s = lifetime_s
        self._rotate = rotate
        self._premium = premium
        self._x_restrict = x_restrict
        self._seed = seed
        self._issued = 0
        self._codes: dict[str, tuple[str, int]] = {}
        self._expiry_ms: dict[str, int] = {}
        self._refresh: set[str] = set()
        self.refresh_token = self._new_refresh()

    def open_code(self, challenge: str) -> str:
        """Give a fresh sign-in code, good once and for 30 s, bound to a PKCE challenge."""
        code = self._token("code")
        self._codes[code] = (challenge, self._wall.now_ms() + CODE_LIFETIME_MS)
        return code

    def grant(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Answer a token request. Raises `GrantRefused`."""
        if (form.get("client_id"), form.get("client_secret")) not in _CLIENTS:
            raise GrantRefused("Invalid client", "invalid_client")
        match form.get("grant_type"):
            case "refresh_token":
                return self._refreshed(form.get("refresh_token", ""))
            case "authorization_code":
                self._redeem(form.get("code", ""), form.get("code_verifier", ""))
                return self._answer(self._new_refresh())
            case "password":
                raise GrantRefused("The grant type is unauthorized for this client_id", "unauthorized_client")
            case _:
                raise GrantRefused("Invalid grant_type parameter or parameter missing", "invalid_request")

    def is_valid(self, access_token: str) -> bool:
        """Whether an access token is known and has not run out."""
        return self._expiry_ms.get(access_token, 0) > self._wall.now_ms()

    def expire(self, access_token: str) -> None:
        """End an access token early."""
        self._expiry_ms.pop(access_token, None)

    def expire_all(self) -> None:
        """End every access token early."""
        self._expiry_ms.clear()

    def revoke(self, refresh_token: str | None = None) -> None:
        """End a refresh token, or all of them: the account must sign in again."""
        self._refresh = set() if refresh_token is None else self._refresh - {refresh_token}

    def _refreshed(self, refresh_token: str) -> dict[str, Any]:
        if refresh_token not in self._refresh:
            raise GrantRefused("Invalid refresh token", "invalid_grant")
        if not self._rotate:
            return self._answer(refresh_token)
        self._refresh.discard(refresh_token)
        return self._answer(self._new_refresh())

    def _redeem(self, code: str, verifier: str) -> None:
        challenge, deadline_ms = self._codes.pop(code, ("", 0))
        if self._wall.now_ms() >= deadline_ms:
            raise GrantRefused("The authorization code has expired", "invalid_grant")
        digest = hashlib.sha256(verifier.encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != challenge:
            raise GrantRefused("Invalid code_verifier", "invalid_grant")

    def _answer(self, refresh_token: str) -> dict[str, Any]:
        access_token = self._token("access")
        now_ms = self._wall.now_ms()
        self._expiry_ms = {token: at for token, at in self._expiry_ms.items() if at > now_ms}
        self._expiry_ms[access_token] = now_ms + round(self._lifetime_s * 1000)
        answer = {
            "access_token": access_token,
            "expires_in": int(self._lifetime_s),
            "token_type": "bearer",
            "scope": "",
            "refresh_token": refresh_token,
            "user": self._user(),
        }
        return answer | {"response": answer}

    def _user(self) -> dict[str, Any]:
        base = "https://s.pximg.net/common/images/no_profile"
        return {
            "profile_image_urls": {
                "px_16x16": f"{base}_ss.png",
                "px_50x50": f"{base}_s.png",
                "px_170x170": f"{base}.png",
            },
            "id": str(USER_ID),
            "name": "collector-example",
            "account": "collector_example",
            "mail_address": "collector@example.invalid",
            "is_premium": self._premium,
            "x_restrict": self._x_restrict,
            "is_mail_authorized": True,
            "require_policy_agreement": False,
        }

    def _new_refresh(self) -> str:
        self.refresh_token = self._token("refresh")
        self._refresh.add(self.refresh_token)
        return self.refresh_token

    def _token(self, kind: str) -> str:
        self._issued += 1
        digest = hashlib.sha256(f"{self._seed} {kind} {self._issued}".encode()).digest()
        return f"simulated-{kind}-{base64.urlsafe_b64encode(digest[:18]).decode()}"
