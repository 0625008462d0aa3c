"""How a work is frozen into a message: text, files and key, equal in every attempt."""

from collections.abc import Mapping, Sequence

from pixivflow.delivery.keys import idempotency_key
from pixivflow.delivery.settings import ArrayFormat, FolderSettings, MultipartSettings, RouteSettings
from pixivflow.delivery.templates import DEFAULT_FIELDS, Setting, render_field
from protocol.payloads import Payload, PayloadFile, WorkFacts


def effective_fields(configured: Mapping[str, str], of_target: Mapping[str, str]) -> dict[str, str]:
    """Return a route's templates (the default ones if it has none) overlaid by the target's.

    A target takes a field away by giving it an empty template.
    """
    merged = {**(configured or DEFAULT_FIELDS), **of_target}
    return {name: text for name, text in merged.items() if text or name not in of_target}


def freeze(
    route: RouteSettings,
    fields: Mapping[str, str],
    facts: WorkFacts,
    files: Sequence[PayloadFile],
    *,
    slot_id: str | None,
    target_id: str,
) -> Payload:
    """Freeze a message for ``route``; ``fields`` are name -> template, the default ones if there are none.

    Raises `TemplateRefused` for a template that `check_template` refuses.
    """
    setting = Setting(route.name, slot_id, target_id, len(files))
    shape = _array_format(route)
    rendered = tuple(
        pair
        for name, text in (fields or DEFAULT_FIELDS).items()
        for pair in render_field(name, text, facts, setting, shape)
    )
    return Payload(
        key=idempotency_key(route.name, facts.work, slot_id, target_id),
        route=route.name,
        work=facts.work,
        target_id=target_id,
        slot_id=slot_id,
        fields=rendered,
        files=tuple(files),
    )


def _array_format(route: RouteSettings) -> ArrayFormat:
    match route:
        case MultipartSettings():
            return route.array_format
        case FolderSettings():
            return "repeat"
