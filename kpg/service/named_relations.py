"""Relations by name, as programs name them; those that a text can name are found by the words of the text.

    named.put(relation)         add or replace a relation
    named.mentioned(words)      the relations whose names consist of words in a set
    words_of(text)              the words of a text of rules

In each language, a text that names a relation contains all words of its name. So the parser of a text needs only the
relations that the text mentions, and not all of a service. `mentioned` may find more than the text names.
Cost: `mentioned` visits the words of the text and the names that end with one of them.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import islice
from typing import Final

from kpg.columns.pause_points import pause
from kpg.query.ir.program import Relation

WORD: Final = re.compile(r"\w+")
ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")  # of a character, in JSON and in strings of EDN
WORDS_PER_PAUSE: Final = 5_000  # a millisecond of work


class NamedRelations:
    """Relations by name, and by the last word of their names."""

    def __init__(self) -> None:
        self.by_name: dict[str, Relation] = {}
        self.changed: OrderedDict[str, None] = OrderedDict()  # names that were put or removed, until they are described
        self._by_word: dict[str, dict[str, None]] = {}

    def put(self, relation: Relation, is_described: bool = True) -> None:
        """Add a relation, or replace the one with its name."""
        name = relation.name
        self.by_name[name] = relation
        if is_described:
            self.changed[name] = None
        self._by_word.setdefault(last_word(name), {})[name] = None

    def remove(self, name: str, is_described: bool = True) -> None:
        """Remove the relation with a name, if there is one."""
        if self.by_name.pop(name, None) is None:
            return
        if is_described:
            self.changed[name] = None
        names = self._by_word[last_word(name)]
        del names[name]
        if not names:
            del self._by_word[last_word(name)]

    def mentioned(self, words: set[str]) -> dict[str, Relation]:
        """Return the relations whose names consist of these words, and those whose names have no word."""
        endings = (self._by_word.keys() & words) | {""}
        names = (name for word in endings for name in self._by_word.get(word, ()))
        return {name: self.by_name[name] for name in sorted(names) if words.issuperset(WORD.findall(name))}


def last_word(name: str) -> str:
    """Return the last word of a name, or "" if it has none."""
    words: list[str] = WORD.findall(name)
    return words[-1] if words else ""


def words_of(text: str) -> set[str]:
    """Return the words of a text, also as they are behind escapes; pause between parts of a long one."""
    words: set[str] = set()
    matches = WORD.finditer(text)
    while part := [match[0] for match in islice(matches, WORDS_PER_PAUSE)]:
        words.update(part)
        pause()
    if ESCAPE.search(text):
        words |= words_of(unescaped(text))
    return words


def unescaped(text: str) -> str:
    """Return a text with the characters that its escapes stand for."""
    characters = ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
