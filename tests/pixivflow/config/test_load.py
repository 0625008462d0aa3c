from pathlib import Path

import pytest

from pixivflow.config import (
    Checks,
    ConfigRefused,
    FolderRoute,
    MultipartRoute,
    check_config,
    load_base,
    load_config,
)

ENV = {"HOME": "/home/somebody"}
FULL = """
[pixiv]
api_url = "http://127.0.0.1:1/"
oauth_url = "http://127.0.0.1:2"
image_url = "http://127.0.0.1:3"
proxy = "socks5h://127.0.0.1:4"
timeout = "10s"
pace = "0s"
language = "zh-cn"

[accounts.main]
refresh_token = "${TOKEN}"
capacity = 2

[storage]
state_dir = "state"
download_dir = "~/pictures"
path = "{id}_p{page}"
page_concurrency = 3
min_free = "1GiB"
names = "linux"

[defaults]
exclude_tags = ["a", "b"]
min_bookmarks = 10
tags_match = "any"
limit = 1

[scheduler]
timezone = "Asia/Tokyo"
grace = "1h"
lead = "1m"
retry_for = "2h"

[[schedules]]
id = "s"
cron = "0 8 * * * 30"
timezone = "Europe/Berlin"
targets = ["t", "r"]
enabled = false
timeout = "5m"
catch_up = "all"
catch_up_window = "2d"
overlap = "skip"

[[schedules]]
id = "s2"
cron = "0 0 29 2 *"
targets = ["r"]

[[targets]]
id = "t"
mode = "search"
tags = ["x"]
exclude_tags = ["b", "c"]
min_bookmarks = 20
routes = ["m", "f"]

[[targets]]
id = "r"
mode = "ranking"

[routes.m]
type = "multipart"
url = "http://${HOST}/x"
headers = { Authorization = "Bearer ${TOKEN}", Cost = "$${5}" }
fields = { title = "{{title}}" }
proxy = ""
retry_base = "1s"
expire_after = "1d"

[routes.f]
type = "folder"
path = "out"
min_interval = "500ms"

[control]
group = "operators"

[logging]
format = "json"
level = "debug"

[retention]
payloads = "1d"
events = "2d"
failed_cache = "3d"
"""
FULL_ENV = {**ENV, "TOKEN": "secret-token", "HOST": "127.0.0.1:5"}
TARGET = '[[targets]]\nid = "t"\nmode = "work"\nwork = 1\n'


def test_durations_and_sizes_become_numbers(write):
    config = load_config(write(FULL), FULL_ENV)
    assert (config.pixiv.timeout_s, config.pixiv.pace_s) == (10.0, 0.0)
    assert config.storage.min_free == 2**30
    assert (config.scheduler.grace_s, config.scheduler.lead_s, config.scheduler.retry_for_s) == (
        3600.0,
        60.0,
        7200.0,
    )
    assert config.retention.failed_cache_s == 259_200.0


def test_relative_paths_begin_beside_the_file_and_a_tilde_is_the_home_folder(write, tmp_path):
    config = load_config(write(FULL), FULL_ENV)
    assert config.storage.state_dir == tmp_path / "state"
    assert config.storage.download_dir == Path("/home/somebody/pictures")
    assert isinstance(config.routes["f"], FolderRoute)
    assert config.routes["f"].path == tmp_path / "out"


def test_variables_are_replaced_in_every_text_and_a_doubled_dollar_is_one(write):
    config = load_config(write(FULL), FULL_ENV)
    route = config.routes["m"]
    assert isinstance(route, MultipartRoute)
    assert route.url == "http://127.0.0.1:5/x"
    assert route.headers == {"Authorization": "Bearer secret-token", "Cost": "${5}"}
    assert config.accounts["main"].refresh_token == "secret-token"


def test_the_proxy_of_images_is_that_of_the_api_unless_given(write):
    assert load_config(write(FULL), FULL_ENV).pixiv.image_proxy == "socks5h://127.0.0.1:4"
    own = FULL.replace('timeout = "10s"', 'image_proxy = ""', 1)
    assert load_config(write(own), FULL_ENV).pixiv.image_proxy is None


def test_an_address_that_paths_are_appended_to_has_no_ending_slash(write):
    assert load_config(write(FULL), FULL_ENV).pixiv.api_url == "http://127.0.0.1:1"


def test_defaults_hold_for_every_target_and_block_lists_add_up(write):
    config = load_config(write(FULL), FULL_ENV)
    assert config.target("t").exclude_tags == ("a", "b", "c")
    assert config.target("r").exclude_tags == ("a", "b")
    assert (config.target("t").min_bookmarks, config.target("r").min_bookmarks) == (20, 10)


def test_a_schedule_without_a_zone_has_that_of_the_scheduler(write):
    config = load_config(write(FULL), FULL_ENV)
    assert (config.schedule("s").timezone, config.schedule("s2").timezone) == ("Europe/Berlin", "Asia/Tokyo")


def test_without_any_zone_it_is_utc(write):
    text = TARGET + '[[schedules]]\nid = "s"\ncron = "0 8 * * *"\ntargets = ["t"]'
    assert load_config(write(text), ENV).schedule("s").timezone == "UTC"


def test_an_unknown_id_is_a_key_error(write):
    config = load_config(write(TARGET), ENV)
    with pytest.raises(KeyError):
        config.target("nobody")
    with pytest.raises(KeyError):
        config.schedule("nobody")


def test_without_accounts_there_is_one_named_main(write):
    config = load_config(write(TARGET), ENV)
    assert list(config.accounts) == ["main"]
    assert config.target("t").account == "main"


def test_the_only_account_is_that_of_every_target(write):
    assert load_config(write(TARGET + "[accounts.alice]"), ENV).target("t").account == "alice"


def test_a_work_needs_no_limit(write):
    assert load_config(write(TARGET), ENV).target("t").limit is None


def test_keys_of_defaults_that_a_mode_does_not_know_are_no_error(write):
    assert load_config(write('[defaults]\ntags = ["x"]\n' + TARGET), ENV).target("t").mode == "work"


def test_an_error_in_defaults_is_told_once(write):
    text = "[defaults]\nlimit = 0\n" + TARGET + TARGET.replace('"t"', '"u"')
    with pytest.raises(ConfigRefused) as caught:
        load_config(write(text), ENV)
    assert [problem.key_path for problem in caught.value.problems] == ["defaults.limit"]


def test_state_and_downloads_have_a_place_of_their_own_by_default(write):
    storage = load_config(write(TARGET), ENV).storage
    assert storage.state_dir == Path("/home/somebody/.local/state/pixivflow")
    assert storage.download_dir == storage.state_dir / "downloads"


@pytest.mark.parametrize(
    "written", ["token", "${CREDENTIALS_DIRECTORY}/token", "$CREDENTIALS_DIRECTORY/token"]
)
def test_a_secret_may_come_from_a_file(write, tmp_path, written):
    (tmp_path / "token").write_text(" from-file\n")
    text = TARGET + f'[accounts.main]\nrefresh_token_file = "{written}"'
    config = load_config(write(text), {**ENV, "CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert config.accounts["main"].refresh_token == "from-file"


def test_a_file_with_a_byte_order_mark_is_read(write):
    assert load_config(write(b"\xef\xbb\xbf" + TARGET.encode()), ENV).target("t").work == 1


def test_the_path_of_the_configuration_is_absolute(write, monkeypatch):
    path = write(TARGET)
    monkeypatch.chdir(path.parent)
    assert load_config(Path(path.name), ENV).path == path


def test_check_gives_the_configuration_although_variables_are_missing(write):
    config, problems = check_config(write(FULL.replace("http://${HOST}/x", "http://h/x")), ENV)
    assert {problem.severity for problem in problems} == {"warning"}
    assert config is not None
    assert config.accounts["main"].refresh_token is None


def test_check_gives_no_configuration_when_it_can_not_be_without_the_variable(write):
    text = TARGET + '[routes.m]\ntype = "multipart"\nurl = "${URL}"\n'
    config, problems = check_config(write(text), ENV)
    assert config is None
    assert [problem.severity for problem in problems] == ["warning"]


def test_check_gives_no_configuration_with_errors(write):
    config, problems = check_config(write(TARGET + "x = 1"), ENV)
    assert config is None
    assert [problem.severity for problem in problems] == ["error"]


def test_other_parts_can_check_their_templates(write):
    def refuse(text: str) -> None:
        if "bad" in text:
            raise ValueError(f"no: {text}")

    def refuse_all(text: str) -> None:
        raise ValueError(text)

    text = (
        '[storage]\npath = "bad{id}"\n'
        + TARGET
        + 'path = "worse-bad{id}"\nroutes = ["m"]\nfields = { a = "{{bad}}" }\n'
        + '[routes.m]\ntype = "multipart"\nurl = "http://h"\nfields = { b = "{{bad}}" }\n'
        + '[[schedules]]\nid = "s"\ncron = "0 8 * * *"\ntargets = ["t"]\n'
    )
    with pytest.raises(ConfigRefused) as caught:
        load_config(write(text), ENV, checks=Checks(path=refuse, field=refuse, cron=refuse_all))
    assert [problem.key_path for problem in caught.value.problems] == [
        "storage.path",
        "targets.t.path",
        "targets.t.fields.a",
        "routes.m.fields.b",
        "schedules.s.cron",
    ]


def test_other_parts_are_not_asked_about_what_is_refused_already(write):
    def refuse(text: str) -> None:
        raise AssertionError(text)

    text = '[storage]\npath = "${NOT_SET}/{id}"\n' + TARGET + '[[schedules]]\nid = "s"\ntargets = ["t"]\n'
    with pytest.raises(ConfigRefused) as caught:
        load_config(write(text), ENV, checks=Checks(path=refuse, cron=refuse))
    assert [problem.key_path for problem in caught.value.problems] == ["storage.path", "schedules.s.cron"]


def test_a_day_that_never_comes_is_no_fault_beside_a_weekday(write):
    text = TARGET + '[[schedules]]\nid = "s"\ncron = "0 0 30 2 mon"\ntargets = ["t"]\n'
    assert load_config(write(text), ENV).schedule("s").cron == "0 0 30 2 mon"


def test_the_base_needs_no_secret_and_does_not_look_at_the_rest(write, tmp_path):
    text = '[storage]\nstate_dir = "state"\n[control]\ngroup = "g"\n[accounts.main]\nrefresh_token = "${NOT_SET}"\n[x]\n'
    base = load_base(write(text), ENV)
    assert base.storage.control_socket == tmp_path / "state/control.sock"
    assert base.control.group == "g"


def test_the_base_refuses_errors_of_its_own(write):
    with pytest.raises(ConfigRefused) as caught:
        load_base(write('[storage]\nstate_dri = "x"\n[control]\ngroup = 5\n'), ENV)
    assert [problem.key_path for problem in caught.value.problems] == ["storage.state_dri", "control.group"]


def test_no_secret_is_in_the_representation(write):
    text = FULL.replace('proxy = ""', 'proxy = "http://me:secret-token@h"')
    config = load_config(write(text), FULL_ENV)
    assert "secret-token" not in repr(config)
