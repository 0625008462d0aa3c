import json

import pytest

from pixivflow.download.errors import PathRefused, StorageFailed
from pixivflow.download.plan import PlannedFile
from pixivflow.download.sidecar import sidecar_path, write_sidecar
from pixivflow.download.store import StoredFile
from protocol.payloads import WorkFacts
from protocol.works import WorkKind, WorkRef

FACTS = WorkFacts(
    work=WorkRef(WorkKind.ILLUSTRATION, 101),
    revision="2026/10/05/18/30/12",
    title="灯台",
    author_id=17,
    author_name="雲野",
    author_account="kumono",
    type="manga",
    caption='Night.<br /><a href="pixiv://illusts/1">1</a>',
    tags=("風景", "夜", "海"),
    translated_tags=("scenery", None),
    created_at="2026-10-05T18:30:12+09:00",
    page_count=2,
    total_bookmarks=5,
)


def planned(page: int, path: str) -> PlannedFile:
    return PlannedFile(page, "original", f"https://i.pximg.net/101_p{page}.jpg", path)


FILES = [
    (planned(0, "17-雲野/101_灯台_p0.jpg"), StoredFile(10, "aa", "image/jpeg")),
    (planned(1, "17-雲野/101_灯台_p1.png"), StoredFile(20, "bb", "image/png")),
]
PATH = "17-雲野/101_灯台.json"


async def write(root, path=PATH, files=FILES, facts=FACTS):
    return await write_sidecar(root, facts, files, slot_id="morning@1", target_id="t", path=path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("17/101_a_p0.jpg", "17/101_a.json"),
        ("17/101_a_p000.jpg", "17/101_a.json"),
        ("101.jpg", "101.json"),
        ("101/0.jpg", "101/0.json"),
        ("101/_p0.jpg", "101/_p0.json"),
        ("101/CON_p0.jpg", "101/CON_p0.json"),
        ("x_p120.jpg", "x_p120.json"),
        ("a.b_p0.jpeg", "a.b.json"),
        ("101/a ._p0.jpg", "101/a.json"),
    ],
)
def test_the_sidecar_is_called_after_the_first_page(path, expected):
    assert sidecar_path([planned(0, path), planned(1, "other")]) == expected


async def test_the_document_says_everything(tmp_path):
    assert await write(tmp_path) == PATH
    document = json.loads((tmp_path / PATH).read_text())
    assert document["schema"] == 1
    assert document["url"] == "https://www.pixiv.net/artworks/101"
    assert document["author"] == {"id": 17, "name": "雲野", "account": "kumono"}
    assert document["caption"] == FACTS.caption
    assert document["tags"] == [
        {"name": "風景", "translated": "scenery"},
        {"name": "夜", "translated": None},
        {"name": "海", "translated": None},
    ]
    assert (document["slot_id"], document["target_id"]) == ("morning@1", "t")
    assert document["pages"][1] == {
        "page": 1,
        "file": "101_灯台_p1.png",
        "bytes": 20,
        "sha256": "bb",
        "media_type": "image/png",
        "url": "https://i.pximg.net/101_p1.jpg",
    }


async def test_the_keys_of_schema_1_stay(tmp_path):
    await write(tmp_path)
    assert list(json.loads((tmp_path / PATH).read_text())) == [
        *(
            "schema",
            "kind",
            "id",
            "url",
            "revision",
            "type",
            "title",
            "author",
            "caption",
            "tags",
            "created_at",
        ),
        *("page_count", "width", "height", "x_restrict", "ai_type", "total_view", "total_bookmarks"),
        *("slot_id", "target_id", "pages"),
    ]


async def test_text_is_readable_as_it_is(tmp_path):
    await write(tmp_path)
    text = (tmp_path / PATH).read_text()
    assert '  "title": "灯台",\n' in text
    assert text.endswith("}\n")


async def test_the_same_input_gives_the_same_bytes_and_an_older_one_is_replaced(tmp_path):
    await write(tmp_path)
    first = (tmp_path / PATH).read_bytes()
    (tmp_path / PATH).write_text("older")
    await write(tmp_path)
    assert (tmp_path / PATH).read_bytes() == first
    assert [found.name for found in (tmp_path / PATH).parent.iterdir()] == ["101_灯台.json"]


async def test_files_in_other_folders_are_named_from_the_sidecar(tmp_path):
    files = [(planned(0, "a/0/x.jpg"), FILES[0][1]), (planned(1, "a/1/x.jpg"), FILES[1][1])]
    await write(tmp_path, path="a/0/x.json", files=files)
    pages = json.loads((tmp_path / "a/0/x.json").read_text())["pages"]
    assert [page["file"] for page in pages] == ["x.jpg", "../1/x.jpg"]


async def test_a_path_out_of_the_root_is_refused(tmp_path):
    with pytest.raises(PathRefused):
        await write(tmp_path, path="../x.json")


async def test_a_folder_in_the_way_is_named_and_no_part_stays(tmp_path):
    (tmp_path / PATH).mkdir(parents=True)
    with pytest.raises(StorageFailed, match=r"101_灯台\.json"):
        await write(tmp_path)
    assert [found.name for found in (tmp_path / PATH).parent.iterdir()] == ["101_灯台.json"]
