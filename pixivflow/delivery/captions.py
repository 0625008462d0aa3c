"""Captions of works come as a little HTML; messages want plain text."""

from html.parser import HTMLParser

_BREAKS = frozenset({"br", "p", "div", "li"})


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - base class
        if tag in _BREAKS:
            self.parts.append("\n")


def plain_text(caption: str) -> str:
    """Return a caption without markup: line breaks kept, links as their text, entities resolved."""
    parser = _Text()
    parser.feed(caption)
    parser.close()
    return "".join(parser.parts).strip()
