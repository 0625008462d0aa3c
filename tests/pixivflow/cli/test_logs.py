import pytest
import structlog

from pixivflow.cli.logs import configure_logs
from pixivflow.cli.redaction import redact

SECRET = "s3cr3t-Value.0123456789"
LEAKS = [
    f"Authorization: Bearer {SECRET}",
    f"https://user:{SECRET}@host.example/path",
    f"https://host.example/hook?access_token={SECRET}&page=2",
    f"https://host.example/auth?code={SECRET}",
    f"https://api.example/bot123456:{SECRET}/sendPhoto",
]


@pytest.fixture
def written(capsys):
    yield lambda: capsys.readouterr().err
    structlog.reset_defaults()


def fail(text):
    refresh_token = SECRET
    raise ValueError(f"{text} {len(refresh_token)}")


@pytest.mark.parametrize("shape", ["console", "json", "auto"])
@pytest.mark.parametrize("leak", LEAKS)
def test_no_secret_leaves_by_the_log_in_any_shape(written, shape, leak):
    configure_logs(shape, "info")
    log = structlog.get_logger("test")
    try:
        fail(leak)
    except ValueError as error:
        log.exception("failed", error=error, url=leak, refresh_token=SECRET, nested={"urls": [leak]})
    text = written()
    assert "ValueError" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    "text",
    ["HTTP 503: upstream busy", "https://host.example/a?page=2", "12:30:45 slot morning@20261130T230000Z"],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_levels_below_the_configured_one_are_left_out(written):
    configure_logs("json", "warning")
    structlog.get_logger("test").info("quiet")
    structlog.get_logger("test").warning("loud")
    text = written()
    assert "quiet" not in text
    assert "loud" in text
