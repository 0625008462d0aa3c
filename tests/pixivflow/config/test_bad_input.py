"""Each kind of bad input ends in one message at the right key."""

import pytest

from pixivflow.config import ConfigRefused, check_config, load_config

ENV = {"HOME": "/home/somebody"}
TARGET = '[[targets]]\nid = "t"\nmode = "search"\ntags = ["x"]\nlimit = 1\n'
SCHEDULE = '[[schedules]]\nid = "s"\ncron = "0 8 * * *"\ntargets = ["t"]\n'
ROUTE = '[routes.r]\ntype = "multipart"\nurl = "http://127.0.0.1:1/x"\n'


def _target(mode: str, *lines: str) -> str:
    return "\n".join(('[[targets]]\nid = "t"', f'mode = "{mode}"', *lines)) + "\n"


BAD = [
    # unknown and later words
    ("[pixv]", "pixv", 'unknown key "pixv", did you mean "pixiv"?'),
    ('[pixiv]\npce = "1s"', "pixiv.pce", 'unknown key "pce", did you mean "pace"?'),
    (TARGET + "min_bookmark = 5", "targets.t.min_bookmark", 'did you mean "min_bookmarks"?'),
    ("[logging]\nzzz = 1", "logging.zzz", 'unknown key "zzz", known here: format, level'),
    ("[http]", "http", '"http" is not available in this release'),
    ("[notifications]", "notifications", '"notifications" is not available in this release'),
    ("[accounts.main]\nbudget_per_day = 1", "accounts.main.budget_per_day", "not available in this release"),
    (TARGET + 'pages = "all"', "targets.t.pages", '"pages" is not available in this release'),
    ('[defaults]\nugoira = "webp"', "defaults.ugoira", '"ugoira" is not available in this release'),
    (
        _target("topic"),
        "targets.t.mode",
        '"topic" is not available in this release, expected one of "search"',
    ),
    (TARGET + 'kind = "novel"', "targets.t.kind", '"novel" is not available in this release'),
    (TARGET + 'sort = "random"', "targets.t.sort", '"random" is not available in this release'),
    ('[routes.r]\ntype = "telegram"\nbot_token = "x"', "routes.r.type", '"telegram" is not available'),
    (ROUTE + 'dedup = "none"', "routes.r.dedup", "not available in this release"),
    ('[routes.r]\ntype = "folder"\npath = "x"\nproxy = "http://a"', "routes.r.proxy", 'unknown key "proxy"'),
    # wrong types and choices
    ('[storage]\npage_concurrency = "6"', "storage.page_concurrency", 'found "6", expected a whole number'),
    ("[pixiv]\ntimeout = 30", "pixiv.timeout", "found 30, expected a duration such as"),
    (TARGET + 'sidecar = "yes"', "targets.t.sidecar", 'found "yes", expected true or false'),
    (TARGET + "exclude_tags = [1]", "targets.t.exclude_tags", "found [1], expected a list of texts"),
    (TARGET + 'exclude_tags = [" "]', "targets.t.exclude_tags", "expected texts of at least one character"),
    (
        TARGET + "since = 2026-01-01",
        "targets.t.since",
        "found 2026-01-01 without quotes, expected a day in quotes",
    ),
    (TARGET + 'since = "2026-02-30"', "targets.t.since", 'found "2026-02-30", expected a day'),
    (TARGET + 'until = "LAST_N_DAYS:0"', "targets.t.until", "expected a day"),
    (
        '[storage]\nnames = "portabel"',
        "storage.names",
        'expected one of "portable", "linux", did you mean "portable"?',
    ),
    ("storage = 5", "storage", "found 5, expected a table: [storage]"),
    ("[routes]\nr = 5", "routes.r", "found 5, expected a table: [routes.r]"),
    ('[targets]\nid = "t"', "targets", "found a table, expected tables that each begin with [[targets]]"),
    (ROUTE + "headers = { A = 5 }", "routes.r.headers", 'expected a text in quotes as the value of "A"'),
    (ROUTE + 'headers = { "a b" = "x" }', "routes.r.headers", "expected header names"),
    (ROUTE + 'headers = { Content-Type = "x" }', "routes.r.headers", "Content-Type is set by PixivFlow"),
    (ROUTE + 'headers = { A = "x\\ny" }', "routes.r.headers", "expected plain ASCII on one line"),
    (ROUTE + 'method = "GET"', "routes.r.method", 'expected one of "POST", "PUT", "PATCH"'),
    # out of range
    (
        "[storage]\npage_concurrency = 0",
        "storage.page_concurrency",
        "found 0, expected a whole number, from 1 to 64",
    ),
    (
        "[accounts.main]\ncapacity = -1",
        "accounts.main.capacity",
        "found -1, expected a whole number, from 1 to 64",
    ),
    (
        TARGET + "min_bookmarks = -1",
        "targets.t.min_bookmarks",
        "found -1, expected a whole number, 0 or more",
    ),
    (TARGET + "scan_limit = 0", "targets.t.scan_limit", "found 0, expected a whole number, from 1 to 1000"),
    ('[pixiv]\ntimeout = "0s"', "pixiv.timeout", "longer than zero"),
    (
        ROUTE + 'retry_base = "2h"\nretry_cap = "1h"',
        "routes.r.retry_cap",
        "expected a duration not shorter than retry_base",
    ),
    (
        TARGET + "min_pages = 3\nmax_pages = 2",
        "targets.t.max_pages",
        "found 2, expected a number not below min_pages = 3",
    ),
    (
        TARGET + 'since = "2026-02-02"\nuntil = "2026-02-01"',
        "targets.t.until",
        "expected a day not before since",
    ),
    # texts with a grammar
    ('[storage]\nmin_free = "5 mb"', "storage.min_free", 'found "5 mb", expected a size such as "500MiB"'),
    ('[scheduler]\ngrace = "90 min"', "scheduler.grace", 'found "90 min", expected a duration such as "45s"'),
    ('[scheduler]\ntimezone = "Asia/Tokio"', "scheduler.timezone", 'did you mean "Asia/Tokyo"?'),
    ('[scheduler]\ntimezone = "JST"', "scheduler.timezone", "expected an IANA time zone"),
    ('[scheduler]\ntimezone = "../etc/passwd"', "scheduler.timezone", "expected an IANA time zone"),
    ('[pixiv]\napi_url = "ftp://x"', "pixiv.api_url", 'found "ftp://x", expected an address'),
    ('[pixiv]\napi_url = "http://"', "pixiv.api_url", "expected an address"),
    ('[pixiv]\napi_url = "http://x/?a=b"', "pixiv.api_url", "without ? and #"),
    ('[pixiv]\nproxy = "socks://127.0.0.1:1"', "pixiv.proxy", "expected a proxy such as socks5://"),
    ('[pixiv]\nproxy = "127.0.0.1:7890"', "pixiv.proxy", "expected a proxy such as socks5://"),
    ('[pixiv]\nlanguage = "english please"', "pixiv.language", "expected a language tag"),
    ('[storage]\npath = "{title}"', "storage.path", "with {id}"),
    ('[storage]\npath = "{id"', "storage.path", "expected a path template"),
    ('[storage]\npath = "../{id}"', "storage.path", "below download_dir"),
    ('[storage]\nstate_dir = ""', "storage.state_dir", "expected a path"),
    (
        '[storage]\nstate_dir = "a"\ndownload_dir = "a"',
        "storage.download_dir",
        "expected another folder than state_dir",
    ),
    # ids and names
    (TARGET.replace('"t"', '"-t"'), "targets.-t.id", "expected an id of letters"),
    (TARGET.replace('id = "t"\n', ""), "targets[0].id", '"id" is missing, expected an id'),
    (TARGET.replace('"t"', "5"), "targets[0].id", "found 5, expected an id"),
    (TARGET + TARGET, "targets.t.id", 'the id "t" is there twice in [[targets]], first on line 2'),
    (TARGET + SCHEDULE + SCHEDULE, "schedules.s.id", "there twice in [[schedules]], first on line 7"),
    ('[accounts."a b"]', "accounts.a b", 'found "a b" as a name, expected an id'),
    ('[defaults]\nid = "x"', "defaults.id", "an id belongs to one target"),
    # references
    (SCHEDULE, "schedules.s.targets", 'unknown target "t", there is none'),
    (
        TARGET.replace('"t"', '"tree"') + SCHEDULE.replace('"t"', '"tre"'),
        "schedules.s.targets",
        'did you mean "tree"?',
    ),
    (TARGET + 'account = "other"', "targets.t.account", 'unknown account "other", expected "main"'),
    ("[accounts.a]\n[accounts.b]\n" + TARGET, "targets.t.account", 'missing, expected one of "a", "b"'),
    (TARGET + 'routes = ["nowhere"]', "targets.t.routes", 'unknown route "nowhere", there is none'),
    (ROUTE + TARGET + 'routes = ["r", "r"]', "targets.t.routes", 'expected each id once, "r" is there twice'),
    # schedules
    (TARGET + SCHEDULE.replace('["t"]', "[]"), "schedules.s.targets", "found no target"),
    (TARGET + SCHEDULE.replace('targets = ["t"]', ""), "schedules.s.targets", '"targets" is missing'),
    (TARGET + SCHEDULE.replace("0 8 * * *", "0 0 30 2 *"), "schedules.s.cron", "can never occur"),
    (TARGET + SCHEDULE.replace("0 8 * * *", "0 0 31 2,4,6 *"), "schedules.s.cron", "can never occur"),
    (TARGET + SCHEDULE.replace("0 8 * * *", "60 8 * * *"), "schedules.s.cron", "out of range"),
    (TARGET + SCHEDULE.replace("0 8 * * *", "@daily"), "schedules.s.cron", "expected five cron fields"),
    (TARGET + SCHEDULE.replace("0 8 * * *", "0 8 * *"), "schedules.s.cron", "expected five cron fields"),
    (TARGET + SCHEDULE.replace("0 8 * * *", "H 8 * * *"), "schedules.s.cron", "expected five cron fields"),
    (
        TARGET + SCHEDULE.replace("0 8 * * *", "0 8 * * * 0 2030"),
        "schedules.s.cron",
        "expected five cron fields",
    ),
    (TARGET + SCHEDULE + 'timezone = "Mars/Base"', "schedules.s.timezone", "expected an IANA time zone"),
    (
        TARGET + SCHEDULE + 'catch_up = "newest"',
        "schedules.s.catch_up",
        'expected one of "latest", "all", "none"',
    ),
    # targets
    (
        _target("search", "limit = 1"),
        "targets.t.tags",
        'missing, expected a list such as ["風景"] with mode = "search"',
    ),
    (_target("artist", "limit = 1"), "targets.t.artist_id", "missing, expected the number of an artist"),
    (
        _target("artist", "limit = 1", "artist_id = 0"),
        "targets.t.artist_id",
        "found 0, expected a whole number, 1 or",
    ),
    (
        _target("artist", "limit = 1", 'artist_id = "7"'),
        "targets.t.artist_id",
        'found "7", expected a whole number',
    ),
    (_target("work"), "targets.t.work", "missing, expected the number of a work"),
    (_target("work", "work = 1", "limit = 2"), "targets.t.limit", "found 2, expected limit = 1 or none"),
    (_target("ranking"), "targets.t.limit", "found no limit, expected limit = 1; targets that take several"),
    (
        _target("ranking", "limit = 5"),
        "targets.t.limit",
        "found 5, expected limit = 1; targets that take several",
    ),
    (_target("ranking", "limit = 1", 'ranking = "daily"'), "targets.t.ranking", "expected a ranking"),
    (
        _target("ranking", "limit = 1", 'ranking_date = "LAST_N_DAYS:2"'),
        "targets.t.ranking_date",
        "expected a day",
    ),
    (
        _target("ranking", "limit = 1", 'tags = ["x"]'),
        "targets.t.tags",
        'has no effect with mode = "ranking"',
    ),
    (TARGET + 'storage = "cache"', "targets.t.storage", 'found "cache" without a route'),
    (
        TARGET.replace('mode = "search"\n', ""),
        "targets.t.mode",
        '"mode" is missing, expected one of "search"',
    ),
    # routes
    ("[routes.r]", "routes.r.type", '"type" is missing, expected one of "multipart", "folder"'),
    (
        '[routes.r]\ntype = "foldr"',
        "routes.r.type",
        'found "foldr", expected one of "multipart", "folder", did you',
    ),
    ('[routes.r]\ntype = "folder"', "routes.r.path", '"path" is missing, expected a path'),
    ('[routes.r]\ntype = "multipart"', "routes.r.url", '"url" is missing, expected an address'),
    # variables and files
    (
        ROUTE + 'headers = { A = "${NOT_SET}" }',
        "routes.r.headers.A",
        "the environment variable NOT_SET is not set",
    ),
    (
        '[accounts.main]\nrefresh_token = "${NOT_SET}"',
        "accounts.main.refresh_token",
        "variable NOT_SET is not set",
    ),
    ('[pixiv]\nproxy = "${}"', "pixiv.proxy", "expected a variable such as"),
    ('[pixiv]\nproxy = "http://${A-B}"', "pixiv.proxy", "expected a variable such as"),
    (
        '[accounts.main]\nrefresh_token_file = "gone"',
        "accounts.main.refresh_token_file",
        "gone cannot be read: No such",
    ),
    (
        '[accounts.main]\nrefresh_token_file = "."',
        "accounts.main.refresh_token_file",
        "cannot be read: Is a directory",
    ),
    (
        '[accounts.main]\nrefresh_token = "a"\nrefresh_token_file = "b"',
        "accounts.main.refresh_token_file",
        'found both "refresh_token" and "refresh_token_file"',
    ),
    ('[control]\ngroup_file = "x"', "control.group_file", 'unknown key "group_file", did you mean "group"?'),
]


@pytest.mark.parametrize(
    ("text", "key_path", "message"), BAD, ids=[f"{key}-{index}" for index, (_, key, _) in enumerate(BAD)]
)
def test_bad_input_is_refused_once_at_its_key(write, text, key_path, message):
    with pytest.raises(ConfigRefused) as caught:
        load_config(write(text), ENV)
    found = [problem for problem in caught.value.problems if problem.key_path == key_path]
    assert [message in problem.message for problem in found] == [True], caught.value.problems
    assert all(problem.severity == "error" for problem in caught.value.problems)


def test_all_errors_of_a_file_are_listed_at_once_each_with_its_line(write):
    path = write(
        '[pixiv]\npace = "x"\ntimeout = 3\n[[targets]]\nid = "t"\nmode = "search"\nlimit = 2\nrutes = []\n'
    )
    with pytest.raises(ConfigRefused) as caught:
        load_config(path, ENV)
    assert [(problem.line, problem.key_path) for problem in caught.value.problems] == [
        (2, "pixiv.pace"),
        (3, "pixiv.timeout"),
        (4, "targets.t.tags"),
        (7, "targets.t.limit"),
        (8, "targets.t.rutes"),
    ]


def test_the_text_of_a_refusal_has_a_line_for_each_error_beginning_with_file_and_line(write):
    path = write("[pixiv]\na = 1\nb = 2\n")
    with pytest.raises(ConfigRefused) as caught:
        load_config(path, ENV)
    lines = str(caught.value).split("\n")
    assert [line.split(" ")[:2] for line in lines] == [[f"{path}:2:", "pixiv.a:"], [f"{path}:3:", "pixiv.b:"]]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = 1\nb =\n", 2, "not valid TOML at column 4"),
        ('[pixiv]\npace = "1s"\npace = "2s"\n', 3, "the same key is there twice in one table"),
        ("[pixiv]\n[pixiv]\n", 2, "twice"),
        ('[pixiv]\npace = """\n', 3, "not valid TOML"),
        (b'[pixiv]\npace = "\xff"\n', 2, "not UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_with_the_place(write, text, line, message):
    with pytest.raises(ConfigRefused) as caught:
        load_config(write(text), ENV)
    (problem,) = caught.value.problems
    assert (problem.line, problem.key_path) == (line, "")
    assert message in problem.message


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigRefused, match=r"gone\.toml: cannot be read: No such file"):
        load_config(tmp_path / "gone.toml", ENV)


def test_a_secret_file_that_is_empty_or_binary_is_refused(write, tmp_path):
    (tmp_path / "token").write_text("\n")
    path = write('[accounts.main]\nrefresh_token_file = "token"')
    with pytest.raises(ConfigRefused, match="token is empty"):
        load_config(path, ENV)
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigRefused, match="token is not a text in UTF-8"):
        load_config(path, ENV)


def test_no_secret_is_in_the_messages(write):
    text = (
        '[pixiv]\nproxy = "socks://me:hunter22@h:1"\napi_url = "${URL}"\n'
        '[accounts.main]\nrefresh_token = ["hunter22"]\n'
        + ROUTE
        + 'headers = { A = "hunter22\\n" }\nreadiness_url = "x://y/?token=hunter22"\n'
    )
    _, problems = check_config(write(text), {**ENV, "URL": "hunter22"})
    assert len(problems) == 6
    assert "hunter22" not in "\n".join(map(str, problems))


WARNED = [
    ("", "", "there is no [[targets]]"),
    (TARGET + '[pixiv]\nlanguage = "${NOT_SET}"', "pixiv.language", "NOT_SET is not set"),
    (TARGET + '[accounts.main]\nrefresh_token = "${EMPTY}"', "accounts.main.refresh_token", "EMPTY is empty"),
    (
        TARGET + '[accounts.main]\nrefresh_token_file = "$CREDENTIALS_DIRECTORY/t"',
        "accounts.main.refresh_token_file",
        "CREDENTIALS_DIRECTORY is not set",
    ),
    (TARGET + "enabled = false\n" + SCHEDULE, "schedules.s.targets", 'the target "t" is not enabled'),
    (TARGET + 'fields = { a = "b" }', "targets.t.fields", "has no effect: the target has no routes"),
    (_target("ranking", "limit = 1", 'ranking = "day_r18"'), "targets.t.ranking", "nothing will be selected"),
    (TARGET + ROUTE + 'fields = { a = "${HOME}" }', "routes.r.fields.a", "kept in the ledger"),
    (
        TARGET + '[routes.a]\ntype = "folder"\npath = "x"\n[routes.b]\ntype = "folder"\npath = "./x"',
        "routes.b.path",
        'the route "a" writes into the same folder',
    ),
]


@pytest.mark.parametrize(("text", "key_path", "message"), WARNED)
def test_what_is_doubtful_is_a_warning_of_check(write, text, key_path, message):
    _, problems = check_config(write(text), {**ENV, "EMPTY": ""})
    assert [(problem.key_path, problem.severity) for problem in problems] == [(key_path, "warning")]
    assert message in problems[0].message


@pytest.mark.parametrize(
    ("text", "key_path"),
    [
        ('[accounts.main]\nrefresh_token = "hunter22"', "accounts.main.refresh_token"),
        ('[pixiv]\nproxy = "http://me:hunter22@h:1"', "pixiv.proxy"),
        (ROUTE + 'headers = { Authorization = "Bearer hunter22" }', "routes.r.headers.Authorization"),
        (ROUTE.replace("1/x", "1/x?token=hunter22"), "routes.r.url"),
    ],
)
def test_a_secret_written_into_a_file_that_everybody_may_read_is_warned_of(write, text, key_path):
    _, problems = check_config(write(TARGET + text, mode=0o644), ENV)
    assert [(problem.key_path, problem.severity) for problem in problems] == [(key_path, "warning")]
    assert "everybody on this host may read" in problems[0].message
    assert "hunter22" not in str(problems[0])


def test_a_secret_in_a_file_of_its_owner_alone_is_no_problem(write):
    text = TARGET + '[accounts.main]\nrefresh_token = "hunter22"'
    assert check_config(write(text, mode=0o640), ENV)[1] == ()
