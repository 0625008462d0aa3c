"""The words of a search: space is AND, ``OR`` joins neighbours, ``-`` excludes, parentheses group."""

import re
from collections.abc import Callable
from itertools import pairwise

from pixivflow.simulator.catalogue import SimWork
from pixivflow.simulator.vocabulary import TRANSLATIONS

TARGETS = ("partial_match_for_tags", "exact_match_for_tags", "title_and_caption", "keyword")
_TOKEN = re.compile(r"-?\(|\)|[^\s()]+")

Matcher = Callable[[SimWork], bool]


def matcher(word: str, target: str) -> Matcher:
    """Give what decides whether a work matches the words under a search target."""
    return _Words(_tokens(word), target).everything()


def _tokens(word: str) -> list[str]:
    if _balanced(word):
        return _TOKEN.findall(word)
    return word.split()


def _balanced(word: str) -> bool:
    depth = 0
    for before, char in pairwise(f" {word}"):
        # a bracket glued to a word belongs to a name such as 名前(作品)
        if char == "(" and not (before.isspace() or before in "-("):
            return False
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


class _Words:
    """A reader of the tokens, by recursive descent."""

    def __init__(self, tokens: list[str], target: str) -> None:
        self._tokens = tokens[::-1]
        self._target = target

    def everything(self) -> Matcher:
        parts: list[Matcher] = []
        while self._tokens and self._tokens[-1] != ")":
            parts.append(self._either())
        return lambda work: all(part(work) for part in parts)

    def _either(self) -> Matcher:
        parts = [self._one()]
        while len(self._tokens) > 1 and self._tokens[-1] == "OR":
            self._tokens.pop()
            parts.append(self._one())
        return lambda work: any(part(work) for part in parts)

    def _one(self) -> Matcher:
        part = self._tokens.pop()
        if part in ("(", "-("):
            inner = self.everything()
            if self._tokens:
                self._tokens.pop()
            return _not(inner) if part == "-(" else inner
        if part.startswith("-") and len(part) > 1:
            return _not(_term(part[1:].casefold(), self._target))
        return _term(part.casefold(), self._target)


def _not(inner: Matcher) -> Matcher:
    return lambda work: not inner(work)


def _term(term: str, target: str) -> Matcher:
    match target:
        case "exact_match_for_tags":
            return lambda work: any(term == tag.casefold() for tag in work.tags)
        case "title_and_caption":
            return lambda work: term in f"{work.title}\n{work.caption}".casefold()
        case "keyword":
            return lambda work: _in_tags(term, work) or term in f"{work.title}\n{work.caption}".casefold()
        case _:
            return lambda work: _in_tags(term, work)


def _in_tags(term: str, work: SimWork) -> bool:
    return any(
        term in tag.casefold() or term in (TRANSLATIONS.get(tag) or "").casefold() for tag in work.tags
    )
