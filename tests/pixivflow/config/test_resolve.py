import pytest

from pixivflow.config import FolderRoute, MultipartRoute, cell_spec, load_config, redirected
from protocol.specs import CellSpec, Filters, Source

ENV = {"HOME": "/home/somebody"}
TEXT = """
[pixiv]
proxy = "http://me:secret@proxy.example:1"
[accounts.a]
refresh_token = "secret"
[storage]
names = "linux"
path = "{id}"
[scheduler]
retry_for = "1h"
[defaults]
tags = ["for searches only"]
ai = "exclude"
limit = 1
[[targets]]
id = "search"
mode = "search"
tags = ["x", "y"]
tags_match = "any"
match = "exact"
sort = "popular"
scan_limit = 9
min_bookmarks = 1
max_bookmarks = 2
min_views = 3
r18 = "include"
r18g = "only"
min_pages = 4
max_pages = 5
since = "LAST_N_DAYS:3"
until = "TODAY"
exclude_tags = ["z"]
storage = "cache"
path = "{author_id}/{id}"
sidecar = false
routes = ["m", "f"]
fields = { note = "n" }
[[targets]]
id = "ranking"
mode = "ranking"
ranking = "week"
ranking_date = "YESTERDAY"
[[targets]]
id = "artist"
mode = "artist"
artist_id = 7
[[targets]]
id = "work"
mode = "work"
work = 8
[routes.m]
type = "multipart"
url = "https://real.example/x"
readiness_url = "https://real.example/ready"
headers = { Authorization = "secret" }
proxy = "http://me:secret@proxy.example:2"
[routes.n]
type = "multipart"
url = "https://real.example/y"
[routes.f]
type = "folder"
path = "/srv/real"
[control]
group = "operators"
"""


@pytest.fixture
def config(write):
    return load_config(write(TEXT), ENV)


def test_a_spec_holds_all_that_the_target_says(config):
    assert cell_spec(config, "search") == CellSpec(
        target_id="search",
        account="a",
        source=Source("search", tags=("x", "y"), tags_match="any", match="exact", sort="popular"),
        filters=Filters(
            exclude_tags=("z",),
            min_bookmarks=1,
            max_bookmarks=2,
            min_views=3,
            ai="exclude",
            r18="include",
            r18g="only",
            min_pages=4,
            max_pages=5,
            since="LAST_N_DAYS:3",
            until="TODAY",
        ),
        scan_limit=9,
        storage="cache",
        path="{author_id}/{id}",
        names="linux",
        sidecar=False,
        routes=("m", "f"),
        fields={"note": "n"},
        retry_for_s=3600.0,
    )


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("ranking", Source("ranking", ranking="week", ranking_date="YESTERDAY")),
        ("artist", Source("artist", artist_id=7)),
        ("work", Source("work", work=8)),
    ],
)
def test_a_source_holds_what_belongs_to_its_mode_alone(config, target, source):
    assert cell_spec(config, target).source == source


def test_a_target_without_a_path_has_that_of_the_storage(config):
    assert cell_spec(config, "work").path == "{id}"


def test_the_timeout_of_a_spec_is_that_of_its_schedule(config):
    assert cell_spec(config, "work", timeout_s=5.0).timeout_s == 5.0


def test_a_spec_of_an_unknown_target_is_a_key_error(config):
    with pytest.raises(KeyError):
        cell_spec(config, "nobody")


@pytest.fixture
def simulated(config, tmp_path):
    return redirected(
        config,
        api_url="http://127.0.0.1:1",
        oauth_url="http://127.0.0.1:2",
        image_url="http://127.0.0.1:3",
        receiver_url="http://127.0.0.1:4",
        refresh_token="simulated",
        folder=tmp_path / "simulation",
    )


def test_a_simulation_has_no_real_address_credential_or_directory(simulated, tmp_path):
    route = simulated.routes["m"]
    assert isinstance(route, MultipartRoute)
    told = [
        simulated.pixiv,
        route,
        route.url,
        route.headers,
        route.proxy,
        simulated.accounts,
        simulated.control,
    ]
    assert not [
        real for real in ("secret", "example", "/srv/real", "pximg", "operators") if real in repr(told)
    ]
    folders = (simulated.storage.state_dir, simulated.storage.download_dir, simulated.routes["f"].path)
    assert all(folder.is_relative_to(tmp_path / "simulation") for folder in folders)
    assert simulated.accounts["a"].refresh_token == "simulated"


def test_a_simulation_goes_to_the_local_hosts(simulated):
    pixiv, route = simulated.pixiv, simulated.routes["m"]
    assert (pixiv.api_url, pixiv.oauth_url, pixiv.image_url) == tuple(
        f"http://127.0.0.1:{port}" for port in (1, 2, 3)
    )
    assert (pixiv.proxy, pixiv.image_proxy, pixiv.pace_s) == (None, None, 0.05)
    assert (route.url, route.readiness_url) == ("http://127.0.0.1:4/submissions", "http://127.0.0.1:4/ready")


def test_a_route_without_a_readiness_address_gets_none(simulated):
    assert simulated.routes["n"].readiness_url is None


def test_a_folder_route_gets_a_folder_of_its_own(simulated, tmp_path):
    assert isinstance(simulated.routes["f"], FolderRoute)
    assert simulated.routes["f"].path == tmp_path / "simulation/routes/f"


def test_a_simulation_keeps_plan_and_targets(config, simulated):
    assert (simulated.schedules, simulated.targets) == (config.schedules, config.targets)
