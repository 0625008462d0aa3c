import pytest

from pixivflow.config.redaction import is_secret_name, redact_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/path", "https://host/path"),
        ("https://me:pw@host/path", "https://***@host/path"),
        ("https://me:p@w@host/", "https://***@host/"),
        ("me:pw@host:1", "***@host:1"),
        ("https://h/x?token=abc&page=2", "https://h/x?token=***&page=2"),
        ("https://h/x?a=1&X-Amz-Signature=abc#key=d", "https://h/x?a=1&X-Amz-Signature=***#key=***"),
        ("https://h/@name", "https://h/@name"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url, shown):
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "name", ["Authorization", "X-Api-Key", "token", "accessToken", "proxy_password", "sig", "Cookie"]
)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "keywords", "title", "design", "passage"])
def test_names_of_other_things_are_not_taken_for_secrets(name):
    assert not is_secret_name(name)
