"""Templates of a route's fields: ``{{title}}`` and its like, with a closed list of names."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from pixivflow.delivery.captions import plain_text
from pixivflow.delivery.settings import ArrayFormat
from protocol.payloads import WorkFacts

AI_GENERATED = 2
R18G = 2
_OPENING = re.compile(r"\{\{(?:([^{}\n]*)\}\})?")
_RATINGS = ("general", "r18", "r18g")

DEFAULT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "title": "{{title}}",
        "author": "{{author}}",
        "author_id": "{{author_id}}",
        "work": "{{work}}",
        "link": "{{link}}",
        "tags": "{{tags}}",
        "caption": "{{caption}}",
        "type": "{{type}}",
        "pages": "{{pages}}",
        "created": "{{created}}",
        "r18": "{{r18}}",
        "ai": "{{ai}}",
        "slot": "{{slot}}",
        "target": "{{target}}",
    }
)
"""What a route sends that configures no fields of its own."""


class TemplateRefused(ValueError):
    """A template names a field that does not exist, or is not closed."""

    def __init__(self, message: str, field: str = "", nearest: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.nearest = nearest


class Setting(msgspec.Struct, frozen=True):
    """Where a message comes from and goes to, beside the work itself."""

    route: str = ""
    slot_id: str | None = None
    target_id: str = ""
    files: int = 0


Value = str | tuple[str, ...]
Source = Callable[[WorkFacts, Setting], Value]


def _yes(fact: bool) -> str:
    return "true" if fact else "false"


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def _translated(facts: WorkFacts) -> tuple[str, ...]:
    names = (*facts.translated_tags, *(None,) * len(facts.tags))
    return tuple(translated or tag for tag, translated in zip(facts.tags, names, strict=False))


FIELDS: Mapping[str, Source] = MappingProxyType(
    {
        "title": lambda facts, _: facts.title,
        "author": lambda facts, _: facts.author_name,
        "author_id": lambda facts, _: str(facts.author_id),
        "author_account": lambda facts, _: facts.author_account,
        "id": lambda facts, _: str(facts.work.id),
        "kind": lambda facts, _: str(facts.work.kind),
        "work": lambda facts, _: str(facts.work),
        "revision": lambda facts, _: facts.revision,
        "link": lambda facts, _: facts.work.url,
        "tags": lambda facts, _: facts.tags,
        "translated_tags": lambda facts, _: _translated(facts),
        "caption": lambda facts, _: plain_text(facts.caption),
        "caption_html": lambda facts, _: facts.caption,
        "pages": lambda facts, _: str(facts.page_count),
        "type": lambda facts, _: facts.type,
        "created": lambda facts, _: facts.created_at,
        "width": lambda facts, _: str(facts.width),
        "height": lambda facts, _: str(facts.height),
        "r18": lambda facts, _: _yes(facts.x_restrict > 0),
        "rating": lambda facts, _: _RATINGS[min(max(facts.x_restrict, 0), R18G)],
        "ai": lambda facts, _: _yes(facts.ai_type == AI_GENERATED),
        "views": lambda facts, _: _count(facts.total_view),
        "bookmarks": lambda facts, _: _count(facts.total_bookmarks),
        "slot": lambda _, setting: setting.slot_id or "",
        "target": lambda _, setting: setting.target_id,
        "route": lambda _, setting: setting.route,
        "files": lambda _, setting: str(setting.files),
    }
)
"""Every name a template may use."""


def check_template(text: str) -> None:
    """Raise `TemplateRefused`, with the nearest known name, if ``text`` could not be rendered."""
    for match in _OPENING.finditer(text):
        if match[1] is None:
            raise TemplateRefused(
                f"the template {text!r} has '{{{{' without '}}}}' behind a name; write {{{{title}}}}"
            )
        name = match[1].strip()
        if name in FIELDS:
            continue
        near = next(iter(difflib.get_close_matches(name, FIELDS, n=1)), None)
        hint = f"did you mean {near!r}?" if near else f"known are: {', '.join(sorted(FIELDS))}"
        raise TemplateRefused(f"the template {text!r} names the unknown field {name!r}; {hint}", name, near)


def render(text: str, facts: WorkFacts, setting: Setting | None = None) -> str:
    """Fill in a template; lists become ``a, b``. Raises `TemplateRefused`.

    What is filled in is never read as a template again.
    """
    check_template(text)
    where = setting or Setting()

    def fill(match: re.Match[str]) -> str:
        value = FIELDS[match[1].strip()](facts, where)
        return value if isinstance(value, str) else ", ".join(value)

    return _OPENING.sub(fill, text)


def render_field(
    name: str, text: str, facts: WorkFacts, setting: Setting, array_format: ArrayFormat
) -> tuple[tuple[str, str], ...]:
    """Render one field of a form; a template that is nothing but a list becomes what ``array_format`` says.

    With ``repeat`` that is one pair for each member, none for an empty list. Raises `TemplateRefused`.
    """
    check_template(text)
    whole = _OPENING.fullmatch(text.strip())
    value = FIELDS[whole[1].strip()](facts, setting) if whole else ""
    if isinstance(value, str):
        return ((name, render(text, facts, setting)),)
    match array_format:
        case "repeat":
            return tuple((name, member) for member in value)
        case "json":
            return ((name, json.dumps(value, ensure_ascii=False)),)
        case "comma":
            return ((name, ",".join(value)),)
