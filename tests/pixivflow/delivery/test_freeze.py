import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.delivery.captions import plain_text
from pixivflow.delivery.freeze import effective_fields, freeze
from pixivflow.delivery.keys import header_value, idempotency_key, key_digest
from pixivflow.delivery.settings import FolderSettings, MultipartSettings
from pixivflow.delivery.templates import (
    DEFAULT_FIELDS,
    FIELDS,
    Setting,
    TemplateRefused,
    check_template,
    render,
)
from protocol.payloads import Payload
from protocol.works import WorkKind, WorkRef

from .conftest import WORK

SLOT = "morning@20261130T230000Z"


def frozen(facts, fields, array_format="comma", files=(), slot_id=SLOT):
    route = MultipartSettings(name="channel", url="http://host/", headers={}, array_format=array_format)
    return freeze(route, fields, facts, files, slot_id=slot_id, target_id="landscape")


def test_the_key_names_route_work_slot_and_target():
    assert idempotency_key("channel", WORK, SLOT, "landscape") == (
        "pixivflow:channel:illustration:123:morning@20261130T230000Z:landscape"
    )


def test_the_key_of_a_work_without_a_slot_is_adhoc():
    assert idempotency_key("tg", WorkRef(WorkKind.NOVEL, 5), None, "get") == "pixivflow:tg:novel:5:adhoc"


@given(st.text(st.characters(codec="utf-8")))
def test_a_key_always_fits_into_a_header_and_a_file_name(key):
    assert header_value(key).isascii()
    assert header_value(key).isprintable()
    assert len(key_digest(key)) == 32


def test_an_ordinary_key_goes_on_the_wire_as_it_is():
    key = idempotency_key("channel", WORK, SLOT, "landscape")

    assert header_value(key) == key


def test_the_payload_carries_everything_but_addresses_and_secrets(facts, store):
    files = [store("b.png", b"b"), store("a.png", b"a")]

    payload = frozen(facts, {"title": "{{title}}"}, files=files)

    assert payload.key == idempotency_key("channel", WORK, SLOT, "landscape")
    assert (payload.route, payload.work, payload.slot_id, payload.target_id) == (
        "channel",
        WORK,
        SLOT,
        "landscape",
    )
    assert payload.fields == (("title", "Évening 夕焼け"),)
    assert [file.name for file in payload.files] == ["b.png", "a.png"]


def test_a_payload_survives_storing(facts, store):
    payload = frozen(facts, {}, files=[store("a.png", b"a")])

    assert msgspec.json.decode(msgspec.json.encode(payload), type=Payload) == payload


def test_freezing_twice_gives_the_same_bytes(facts, store):
    files = [store("a.png", b"a")]

    assert msgspec.json.encode(frozen(facts, {}, files=files)) == msgspec.json.encode(
        frozen(facts, {}, files=files)
    )


def test_a_route_without_fields_sends_the_default_ones(facts):
    fields = dict(frozen(facts, {}).fields)

    assert list(fields) == list(DEFAULT_FIELDS)
    assert fields["work"] == "illustration:123"
    assert fields["link"] == "https://www.pixiv.net/artworks/123"
    assert fields["tags"] == "風景,sky"
    assert (fields["r18"], fields["ai"], fields["slot"]) == ("true", "true", SLOT)


@pytest.mark.parametrize(
    ("array_format", "expected"),
    [
        ("comma", (("tags", "風景,sky"),)),
        ("repeat", (("tags", "風景"), ("tags", "sky"))),
        ("json", (("tags", '["風景", "sky"]'),)),
    ],
)
def test_a_list_alone_takes_the_form_of_the_route(facts, array_format, expected):
    assert frozen(facts, {"tags": " {{ tags }}"}, array_format).fields == expected


@pytest.mark.parametrize("array_format", ["comma", "repeat", "json"])
def test_a_list_within_a_text_is_written_out(facts, array_format):
    assert frozen(facts, {"text": "Tags: {{tags}}"}, array_format).fields == (("text", "Tags: 風景, sky"),)


def test_an_empty_list_repeated_sends_no_field(facts):
    bare = msgspec.structs.replace(facts, tags=())

    assert frozen(bare, {"tags": "{{tags}}"}, "repeat").fields == ()
    assert json.loads(frozen(bare, {"tags": "{{tags}}"}, "json").fields[0][1]) == []


def test_a_folder_keeps_lists_as_lists(facts):
    route = FolderSettings("inbox", Path("/srv/inbox"))

    payload = freeze(route, {"tags": "{{tags}}"}, facts, (), slot_id=None, target_id="t")

    assert payload.fields == (("tags", "風景"), ("tags", "sky"))
    assert payload.key == "pixivflow:inbox:illustration:123:adhoc"


def test_the_fields_of_a_target_lie_over_those_of_the_route():
    assert effective_fields({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == {"a": "1", "b": "3", "c": "4"}
    assert effective_fields({}, {"title": "x"}) == {**DEFAULT_FIELDS, "title": "x"}


def test_an_empty_template_of_a_target_takes_a_field_away():
    assert effective_fields({"a": "1", "b": ""}, {"a": ""}) == {"b": ""}


def test_every_field_can_be_rendered(facts):
    for name in FIELDS:
        render(f"{{{{{name}}}}}", facts)


def test_a_template_is_filled_in(facts):
    text = render("{{title}} / {{ author }}\n{{link}} {x} }}", facts)

    assert text == "Évening 夕焼け / あき\nhttps://www.pixiv.net/artworks/123 {x} }}"


def test_what_is_filled_in_is_no_template(facts):
    nasty = msgspec.structs.replace(facts, title="{{author}} {{nope}}")

    assert render("{{title}}", nasty) == "{{author}} {{nope}}"


def test_unknown_counts_are_empty(facts):
    assert render("{{views}}|{{bookmarks}}", facts) == "|500"


def test_where_a_message_goes_can_be_named(facts):
    assert render("{{route}} {{target}} {{slot}} {{files}}", facts, Setting("r", None, "t", 2)) == "r t  2"


def test_translated_tags_fall_back_to_the_tag(facts):
    short = msgspec.structs.replace(facts, tags=("風景", "sky", "雲"))

    assert render("{{translated_tags}}", short) == "scenery, sky, 雲"


@pytest.mark.parametrize(("x_restrict", "rating"), [(0, "general"), (1, "r18"), (2, "r18g"), (9, "r18g")])
def test_the_rating_is_a_word(facts, x_restrict, rating):
    assert render("{{rating}}", msgspec.structs.replace(facts, x_restrict=x_restrict)) == rating


def test_an_unknown_field_is_refused_with_the_nearest_known_one():
    with pytest.raises(TemplateRefused, match="unknown field 'titel'; did you mean 'title'") as caught:
        check_template("{{author}} {{titel}}")
    assert (caught.value.field, caught.value.nearest) == ("titel", "title")


def test_a_field_like_no_other_is_refused_with_the_known_ones():
    with pytest.raises(TemplateRefused, match="known are: ai, author"):
        check_template("{{qqqqqqqq}}")


@pytest.mark.parametrize("text", ["{{title}", "{{", "{{title\n}}", "{{{title}}}", "{{}}"])
def test_a_placeholder_that_is_none_is_refused(text):
    with pytest.raises(TemplateRefused):
        check_template(text)


@given(st.text())
def test_a_caption_without_markup_characters_stays_as_it_is(text):
    plain = "".join(letter for letter in text if letter not in "<>&\r")

    assert plain_text(plain) == plain.strip()


def test_a_caption_loses_its_markup(facts):
    assert render("{{caption}}", facts) == "one\ntwo & link"
    assert "<br />" in render("{{caption_html}}", facts)
