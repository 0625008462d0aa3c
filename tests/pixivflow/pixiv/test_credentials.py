import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.pixiv.credentials import StoredToken, TokenStore, choose_token, fingerprint
from pixivflow.pixiv.errors import AuthFailed, CredentialsDamaged, CredentialsUnsaved

TOKEN = StoredToken("SECRET-refresh", 5, fingerprint("configured"), "90000001", "someone", True, 2)


def test_a_saved_token_is_loaded_again(store):
    store.save("main", TOKEN)
    assert store.load("main") == TOKEN


def test_an_account_without_file_has_no_token(store):
    assert store.load("main") is None


def test_file_and_folder_are_for_the_owner_alone(store):
    old = os.umask(0)
    try:
        store.save("main", TOKEN)
    finally:
        os.umask(old)
    path = store.path("main")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_open_folder_is_closed_to_others(tmp_path):
    folder = tmp_path / "tokens"
    folder.mkdir(mode=0o755)
    TokenStore(folder).save("main", TOKEN)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_saving_leaves_no_temporary_file(store):
    store.save("main", TOKEN)
    store.save("main", TOKEN)
    assert [path.name for path in store.path("main").parent.iterdir()] == ["main.json"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"refresh_token": 5}', b"\xff\xfe", b"[]"])
def test_a_damaged_file_names_itself_and_the_command(store, content):
    store.save("main", TOKEN)
    store.path("main").write_bytes(content)
    with pytest.raises(CredentialsDamaged) as caught:
        store.load("main")
    assert str(store.path("main")) in str(caught.value)
    assert "pixivflow login main" in str(caught.value)
    assert isinstance(caught.value, AuthFailed)


def test_a_folder_in_place_of_the_file_is_reported_too(store):
    store.path("main").mkdir(parents=True)
    with pytest.raises(CredentialsDamaged, match="pixivflow login main"):
        store.load("main")


def test_a_failed_save_keeps_the_old_token_and_shows_none(tmp_path):
    store = TokenStore(tmp_path / "file" / "tokens")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CredentialsUnsaved) as caught:
        store.save("main", TOKEN)
    assert "SECRET" not in str(caught.value)
    assert "main.json" in str(caught.value)


def test_a_failed_rename_leaves_no_temporary_file(store):
    store.path("main").mkdir(parents=True)
    with pytest.raises(CredentialsUnsaved):
        store.save("main", TOKEN)
    assert [path.name for path in store.path("main").parent.iterdir()] == ["main.json"]


@pytest.mark.parametrize("account", ["", "../main", "a/b", ".hidden", "a\n", "a" * 200])
def test_an_account_name_can_not_leave_the_folder(account):
    with pytest.raises(ValueError, match="account"):
        TokenStore(Path("tokens")).load(account)


def test_the_token_is_not_in_the_printed_form():
    assert "SECRET" not in repr(TOKEN)
    assert "someone" in repr(TOKEN)
    assert "SECRET" not in str(TOKEN.__rich_repr__())


def test_without_a_login_the_configuration_counts():
    assert choose_token("configured", None) == "configured"
    assert choose_token(None, None) is None


def test_a_login_counts_when_nothing_is_configured():
    assert choose_token(None, TOKEN) == "SECRET-refresh"


def test_the_stored_token_counts_while_the_configuration_is_unchanged():
    assert choose_token("configured", TOKEN) == "SECRET-refresh"


def test_a_configuration_edited_after_the_login_counts():
    assert choose_token("edited", TOKEN) == "edited"


def test_a_configuration_written_after_a_bare_login_counts():
    assert choose_token("configured", StoredToken("stored", 5)) == "configured"


@given(st.text(min_size=1), st.text(min_size=1))
def test_fingerprints_tell_tokens_apart_without_showing_them(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (one == other)
    assert len(fingerprint(one)) == 16
