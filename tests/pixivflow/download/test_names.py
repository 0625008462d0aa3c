import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pixivflow.download.cleaning import clusters, is_reserved
from pixivflow.download.names import TemplateRefused, check_template, file_path
from pixivflow.download.templates import FIELDS, NUMBERS
from protocol.payloads import WorkFacts
from protocol.works import WorkKind, WorkRef

DEFAULT = "{author_id}-{author_name}/{id}_{title}_p{page}"


def facts(**changes: object) -> WorkFacts:
    values: dict[str, object] = {
        "work": WorkRef(WorkKind.ILLUSTRATION, 101),
        "revision": "2026/10/05/18/30/12",
        "title": "灯台",
        "author_id": 17,
        "author_name": "雲野",
        "author_account": "kumono",
        "tags": ("オリジナル", "灯台"),
        "created_at": "2026-10-05T18:30:12+09:00",
    }
    return WorkFacts(**{**values, **changes})


def name(template: str = DEFAULT, page: int = 0, mode: str = "portable", **changes: object) -> str:
    return str(file_path(template, facts(**changes), page, "jpg", mode))


def test_the_default_template_gives_artist_folder_and_page():
    assert name() == "17-雲野/101_灯台_p0.jpg"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{id:08d}_p{page:03d}", "00000101_p000.jpg"),
        ("{date:%Y-%m}/{id}", "2026-10/101.jpg"),
        ("{date:%Y/%m}/{id}", "2026/10/101.jpg"),
        ("{date}/{id}", "2026-10-05/101.jpg"),
        ("{year}/{month}/{day}/{id}", "2026/10/05/101.jpg"),
        ("{type}/{r18}/{ai}/{id}", "illust/101.jpg"),
        ("{id} {tags}", "101 オリジナル 灯台.jpg"),
        ("{id}_{revision}", "101_20261005183012.jpg"),
        ("{id}_{{{width}x{height}}}", "101_{0x0}.jpg"),
        ("{author_account}/{page_count}/{id}", "kumono/1/101.jpg"),
    ],
)
def test_every_field_has_its_value(template, expected):
    assert name(template) == expected


def test_ratings_and_ai_have_words():
    assert name("{r18}/{ai}/{id}", x_restrict=1, ai_type=2) == "R-18/AI/101.jpg"
    assert name("{r18}/{id}", x_restrict=2) == "R-18G/101.jpg"


@pytest.mark.parametrize(
    ("created", "day"),
    [
        ("2026-10-05T18:30:12+00:00", "2026-10-06"),
        ("2026-10-05T23:30:12", "2026-10-05"),
        ("", ""),
        ("yesterday", ""),
        ("0001-01-01T00:00:00+23:59", ""),
    ],
)
def test_dates_are_days_in_japan_and_unknown_ones_drop_out(created, day):
    assert name("{date}/{id}", created_at=created) == "/".join(filter(None, (day, "101.jpg")))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{id}/{titel}", ["titel", "title"]),
        ("{id}_{series}", ["series", "author_id"]),
        ("{id}.{ext}", ["extension is added"]),
        ("{title}", ["{id} is missing"]),
        ("", ["{id} is missing"]),
        ("/{id}", ["begins with a slash"]),
        ("{id}/", ["ends with a slash"]),
        ("../{id}", ["would lead elsewhere"]),
        ("{id}/ .. /x", ["would lead elsewhere"]),
        ("{id", ["expected"]),
        ("{id}}", ["encountered"]),
        ("{}{id}", ["unknown field {}"]),
        ("{0}{id}", ["unknown field {0}"]),
        ("{id.real}", ["unknown field"]),
        ("{id!r}", ["conversions"]),
        ("{title:10}{id}", ["does not fit"]),
        ("{id:x}", ["does not fit"]),
        ("{id:5}", ["does not fit"]),
        ("{id:099}", ["does not fit"]),
        ("{page:{id}}{id}", ["does not fit"]),
        ("{date:%B}{id}", ["does not fit"]),
        ("{date:%}{id}", ["does not fit"]),
        ("{id}\n", ["control characters"]),
        ("{id}\ud800", ["control characters"]),
        ("{id}" + "x" * 300, ["can take"]),
        ("あ" * 86 + "/{id}", ["can take", "255"]),
        ("/".join(["{id}"] * 11), ["folders"]),
    ],
)
def test_a_template_that_can_not_name_works_is_refused_with_the_reason(template, words):
    with pytest.raises(TemplateRefused) as caught:
        check_template(template)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(TemplateRefused):
        name(template)


def test_the_longest_template_still_names_a_page():
    check_template("x" * 255 + "/" + "y" * 200 + "{id}"[:0] + "/{id}")


@pytest.mark.parametrize("template", ["{id}", "{id}_{title}", "{id}/{title}"])
def test_pages_of_a_template_without_page_are_numbered(template):
    names = {name(template, page=page, page_count=5, title="") for page in range(5)}
    assert len(names) == 5
    assert all(f"_p{page}.jpg" in "".join(names) for page in range(5))


def test_a_single_page_of_a_template_without_page_has_no_number():
    assert name("{id}") == "101.jpg"


def test_cutting_a_title_that_ends_in_digits_keeps_pages_apart():
    long = "1" * 300
    names = {name("{id}_{title}{page}", page=page, page_count=200, title=long) for page in range(200)}
    assert len(names) == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("..", "_"),
        ("...", "_"),
        ("../../etc/x", "_.._etc_x"),
        ("a/b\\c", "a_b_c"),
        ("~", "~"),
        ("a\0b", "ab"),
        ("/tmp/x", "_tmp_x"),
        ("．．／", "．．／"),
        ("Long Title / short / x？", "Long Title _ short _ x？"),
        ("Title...", "Title"),
        ("abc .", "abc"),
        (" .abc", "abc"),
        ('a:b*c?d"e<f>g|h', "a_b_c_d_e_f_g_h"),
        ("a\u200bb\u200fc\u202ed\ufeffe", "abcde"),
        ("a\u0085b\tc\nd  e\u2028f", "a b c d e f"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("a\u200db", "ab"),
        ("CON", "_CON"),
        ("com1", "_com1"),
        ("nul.txt", "_nul.txt"),
        ("CONSOLE", "CONSOLE"),
    ],
)
def test_a_value_is_cleaned_before_it_goes_in(text, expected):
    assert name("{title}/{id}", title=text) == f"{expected}/101.jpg"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a:b*c?d"e<f>g|h\\i', 'a:b*c?d"e<f>g|h\\i'),
        ("a/b\0c\x07", "a_bc"),
        ("CON", "CON"),
        ("..", ""),
        ("Title...", "Title"),
    ],
)
def test_on_linux_only_what_linux_forbids_is_replaced(text, expected):
    parts = filter(None, (expected, "101.jpg"))
    assert name("{title}/{id}", title=text, mode="linux") == "/".join(parts)


@pytest.mark.parametrize("blank", ["", " ", "\u3000", "\t\n", "\u200b"])
def test_blank_values_leave_no_empty_folder(blank):
    assert name("{title} /{author_name}/{id}", title=blank) == "雲野/101.jpg"


def test_an_empty_file_name_falls_back_to_the_id():
    assert name("{id}-{author_name}/{title}", title="", author_name="n" * 300).endswith("n/101.jpg")


def test_a_long_reserved_name_still_fits():
    folder = name("{title}/{id}", title="CON." + "a" * 300).partition("/")[0]
    assert folder.startswith("_CON.aaa")
    assert len(folder) == 255


def test_reserved_names_of_files_are_guarded():
    assert name("COM{id}", work=WorkRef(WorkKind.ILLUSTRATION, 1)) == "_COM1.jpg"


@pytest.mark.parametrize("letter", ["あ", "\U0001d5a0", "👨\u200d👩\u200d👧", "🇯🇵", "e\u0323\u0307", "a"])
@pytest.mark.parametrize("count", [10, 83, 84, 400])
def test_long_titles_are_cut_between_characters(letter, count):
    title = name("{id}_{title}_p{page}", title=letter * count).removeprefix("101_").removesuffix("_p0.jpg")
    whole = unicodedata.normalize("NFC", letter)
    assert len(title.encode()) <= 255
    assert title == whole * (len(title) // len(whole))
    assert title


def test_the_longest_text_shrinks_first_and_numbers_never():
    result = name("{author_name} {title} {id}_p{page}", page=199, page_count=200, title="t" * 900)
    assert result.startswith("雲野 ttt")
    assert result.endswith("t 101_p199.jpg")


def test_an_extension_must_be_one():
    for extension in ("", ".jpg", "JPG", "j/g", "toolong"):
        with pytest.raises(ValueError, match="not an extension"):
            file_path("{id}", facts(), 0, extension, "portable")


def test_normalised_twins_get_one_name():
    assert name(author_name="café") == name(author_name="cafe\u0301")


NASTY = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(
            ' ./\\:*?"<>|~\0\n\t\u200d\u200b\u202e\u3000\u0301\u0338あ👨👩🇯🇵👍🏽．／ﾊﾞ가\u0958\U0001d15e='
        ),
    ),
    max_size=300,
)
WORDS = st.sampled_from(
    ["CON", "..", ".", "nul", "a" * 300, "あ" * 200, "é" * 200, "", "", "CON." + "a" * 300]
)
TEXT = NASTY | WORDS


@st.composite
def works(draw: st.DrawFn) -> WorkFacts:
    return facts(
        work=WorkRef(WorkKind.ILLUSTRATION, draw(st.integers(1, 2**63))),
        revision=draw(st.sampled_from(["", "2026/10/05/18/30/12"]) | NASTY),
        title=draw(TEXT),
        author_id=draw(st.integers(0, 2**63)),
        author_name=draw(TEXT),
        author_account=draw(TEXT),
        type=draw(st.sampled_from(["illust", "manga"]) | NASTY),
        tags=tuple(draw(st.lists(TEXT, max_size=4))),
        created_at=draw(st.datetimes().map(str) | st.just("") | TEXT),
        page_count=draw(st.integers(1, 1200)),
        x_restrict=draw(st.integers(0, 3)),
        ai_type=draw(st.integers(0, 2)),
    )


def _field(field: str) -> st.SearchStrategy[str]:
    specs = {"date": ["", ":%Y-%m", ":%Y/%m", ":%H:%M", ":x%%/./%d"], "number": ["", ":03d", ":d", ":020"]}
    kind = "number" if field in NUMBERS else field
    return st.sampled_from(specs.get(kind, [""])).map(lambda spec: f"{{{field}{spec}}}")


LITERALS = st.sampled_from(
    ["/", "_", " ", ".", "..", "p", "CON", ":", "{{", "}}", "あ", "/./", "\u0301", "", "-"]
)
TEMPLATES = st.lists(st.sampled_from(FIELDS).flatmap(_field) | LITERALS | st.just("{id}"), max_size=9).map(
    "".join
)


@settings(deadline=None)
@given(
    template=TEMPLATES | st.just(DEFAULT),
    work=works(),
    mode=st.sampled_from(["portable", "linux"]),
    data=st.data(),
)
@example(template="{id}{title}{page}", work=facts(title="1" * 400, page_count=200), mode="linux", data=None)
def test_whatever_the_facts_say_the_name_is_legal_stable_and_its_own(template, work, mode, data):
    try:
        check_template(template)
    except TemplateRefused:
        assume(False)
    pages = st.integers(0, work.page_count - 1)
    page, other = data.draw(st.tuples(pages, pages)) if data else (9, 10)
    path = file_path(template, work, page, "jpeg", mode)
    assert path == file_path(template, work, page, "jpeg", mode)
    assert_legal(path, mode)
    assert path.suffix == ".jpeg"
    assert (page == other) == (
        str(path).casefold() == str(file_path(template, work, other, "jpeg", mode)).casefold()
    )


def assert_legal(path: PurePosixPath, mode: str) -> None:
    text = str(path)
    assert not path.is_absolute()
    assert unicodedata.is_normalized("NFC", text)
    for part in text.split("/"):
        assert part.strip(" .") == part
        assert part
        assert len(part.encode()) <= 255
        assert not {unicodedata.category(character) for character in part} & {"Cc", "Cs"}
        assert mode == "linux" or not (set('\\:*?"<>|') & set(part) or is_reserved(part))
    for suffix in (".part", ".foreign-9999"):
        assert len(f"{path.name}{suffix}".encode()) <= 255
    assert len(f"{path.stem}.json.part".encode()) <= 255


@given(TEXT)
def test_clusters_are_the_whole_text(text):
    assert "".join(clusters(text)) == text


@pytest.mark.parametrize(
    "whole", ["👨\u200d👩\u200d👧", "🇯🇵", "👍🏽", "e\u0301", "❤\ufe0f", "\u1100\u1161\u11a8"]
)
def test_what_a_person_sees_as_one_character_is_one_cluster(whole):
    assert list(clusters(whole * 2)) == [whole, whole]
