"""Refresh tokens on disk, one file an account; readable by the owner alone, replaced atomically."""

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import ClassVar

import msgspec

from pixivflow.durable import sync_folder
from pixivflow.pixiv.errors import CredentialsDamaged, CredentialsUnsaved
from pixivflow.pixiv.redaction import Secretive

FINGERPRINT_LENGTH = 16
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}", re.ASCII)


class StoredToken(Secretive, frozen=True):
    """A refresh token and what is known of its owner.

    ``configured_fingerprint`` is that of the token in the configuration when this one was obtained.
    """

    secret_fields: ClassVar[frozenset[str]] = frozenset({"refresh_token"})

    refresh_token: str
    obtained_at_ms: int
    configured_fingerprint: str | None = None
    user_id: str | None = None
    user_name: str = ""
    is_premium: bool = False
    x_restrict: int = 0


def fingerprint(token: str) -> str:
    """Return a short digest that tells tokens apart without showing them."""
    return hashlib.sha256(token.encode()).hexdigest()[:FINGERPRINT_LENGTH]


def choose_token(configured: str | None, stored: StoredToken | None) -> str | None:
    """Return the newest of the configured and the stored token; None when there is neither.

    A configured token other than the one known when the stored one was obtained was written later.
    """
    if stored is None:
        return configured
    if configured is None or stored.configured_fingerprint == fingerprint(configured):
        return stored.refresh_token
    return configured


class TokenStore:
    """The token files under ``folder``. Its calls block: use a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, account: str) -> Path:
        """Return where the token of ``account`` lies. Raises ValueError for a name that is no plain word."""
        if not _ACCOUNT.fullmatch(account):
            raise ValueError(f"account {account!r}: expected letters, digits, '_', '-' or '.'")
        return self._folder / f"{account}.json"

    def load(self, account: str) -> StoredToken | None:
        """Return the stored token, or None. Raises CredentialsDamaged for a file that can't be read."""
        path = self.path(account)
        try:
            return msgspec.json.decode(path.read_bytes(), type=StoredToken)
        except FileNotFoundError:
            return None
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
        except (msgspec.DecodeError, UnicodeDecodeError):
            reason = "it is damaged"
        raise CredentialsDamaged(f"{path}: can't be read: {reason}; run: pixivflow login {account}")

    def save(self, account: str, token: StoredToken) -> None:
        """Replace the stored token; it is durable on return. Raises CredentialsUnsaved."""
        path = self.path(account)
        try:
            self._prepare()
            self._replace(path, msgspec.json.encode(token))
        except OSError as exc:
            reason = exc.strerror or type(exc).__name__
            raise CredentialsUnsaved(
                f"{path}: the token of account {account!r} can't be saved: {reason}"
            ) from exc

    def _prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._folder.stat().st_mode & 0o077:
            self._folder.chmod(0o700)

    def _replace(self, path: Path, content: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=".tmp", dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        sync_folder(self._folder)
