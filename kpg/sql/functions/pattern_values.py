"""LIKE, SIMILAR TO and regular expressions on Python values: called once for each distinct combination of values.

Patterns are translated to Python's and kept compiled. Regular expressions are PostgreSQL's advanced ones with two
differences: alternatives match the first that fits instead of the longest, and `\\m` and `\\M` are word boundaries.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

MAX_COMPILED: Final = 1000  # patterns kept compiled; a column of patterns may have more
_CLASSES: Final = {
    "alpha": "a-zA-Z\u00c0-\uffff", "digit": "0-9", "alnum": "0-9a-zA-Z\u00c0-\uffff",
    "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f",
    "print": r"\x20-\x7e", "graph": r"\x21-\x7e", "word": r"\w",
}  # fmt: skip
_ESCAPES: Final = {"m": r"\b(?=\w)", "M": r"\b(?<=\w)", "y": r"\b", "Y": r"\B", "A": r"\A", "Z": r"\Z"}


@lru_cache(MAX_COMPILED)
def like_pattern(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """Return the regular expression of a LIKE pattern; `\\` makes the next character literal."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError("LIKE pattern must not end with escape character")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def is_like_pattern(pattern: str | None) -> bool:
    """Return whether LIKE accepts a pattern; it answers null for null."""
    if pattern is None:
        return True
    try:
        like_pattern(pattern, False)
    except ValueError:
        return False
    return True


def like(
    ignore_case: bool, negated: bool, length: int, count: int, texts: list[str], patterns: list[str]
) -> list[bool]:
    """Return whether each text matches its LIKE pattern; text of type character is padded to its length.

    One pattern for many texts is the usual case, which Arrow computes several times faster than Python's patterns.
    """
    if length:
        texts = [text.ljust(length) for text in texts]
    if len(patterns) == 1 and len(texts) > 1:
        like_pattern(patterns[0], ignore_case)  # raises for a pattern that is none
        matched: Any = pc.match_like(pa.array(texts, pa.large_string()), patterns[0], ignore_case=ignore_case)
        results: list[bool] = (matched if not negated else pc.invert(matched)).to_pylist()
        return results
    pairs = zip(repeat_to(texts, count), repeat_to(patterns, count), strict=True)
    return [(like_pattern(pattern, ignore_case).fullmatch(text) is None) == negated for text, pattern in pairs]


def repeat_to(values: list[str], count: int) -> list[str]:
    """Return as many values as asked for; a single one is repeated."""
    return values * count if len(values) == 1 else values


def like_escape(pattern: str, escape: str) -> str:
    """Return a LIKE pattern with `\\` as its escape character, given one with another."""
    if len(escape) > 1:
        raise ValueError("invalid escape string")
    if not escape:
        return pattern.replace("\\", "\\\\")
    if escape == "\\":
        return pattern
    return re.sub(
        re.escape(escape) + r"(.?)|\\",
        lambda m: "\\\\" if m[0] == "\\" else "\\" + m[1],
        pattern,
        flags=re.DOTALL,
    )


def similar_pattern(pattern: str, escape: str = "\\") -> str:
    """Return the regular expression of a SIMILAR TO pattern."""
    if len(escape) > 1:
        raise ValueError("invalid escape string")
    parts, in_class, characters = ["^(?:"], False, iter(pattern)
    for character in characters:
        if character == escape:
            parts.append("\\" + next(characters, ""))
        elif in_class:
            parts.append("\\\\" if character == "\\" else character)
            in_class = character != "]"
        elif character == "[":
            parts.append(character)
            in_class = True
        elif character in "\\.^$":
            parts.append("\\" + character)
        else:
            parts.append({"%": ".*", "_": ".", "(": "(?:"}.get(character, character))
    return "".join(parts) + ")$"


@lru_cache(MAX_COMPILED)
def regular_expression(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Return a compiled regular expression; raise ValueError if it has none."""
    options = 0 if flags and set(flags) & set("np") else re.DOTALL
    for flag in flags:
        if flag not in "gicstnpmqxebw":
            raise ValueError(f'invalid regular expression option: "{flag}"')
        options |= {"i": re.IGNORECASE, "x": re.VERBOSE}.get(flag, 0)
        options |= re.MULTILINE if flag in "nwm" else 0
    if "q" in flags:
        return re.compile(re.escape(pattern), options)
    try:
        return re.compile(translated(pattern, bool(options & re.MULTILINE)), options)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"invalid regular expression: {error}") from None


def translated(pattern: str, multiline: bool = False) -> str:
    """Return a regular expression of PostgreSQL in Python's syntax."""
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and at + 1 < len(pattern):
            following = pattern[at + 1]
            parts.append(_ESCAPES.get(following, "\\" + following))
            at += 2
        elif character == "[":
            written, at = _character_class(pattern, at)
            parts.append(written)
        else:
            parts.append(r"\Z" if character == "$" and not multiline else character)
            at += 1
    return "".join(parts)


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    """Return a class in brackets in Python's syntax, and the place behind it."""
    at, written = start + 1, "["
    if pattern[at : at + 1] == "^":
        written, at = "[^", at + 1
    first = True
    while at < len(pattern) and (pattern[at] != "]" or first):
        named = re.compile(r"\[:(\w+):\]").match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                raise ValueError(f"invalid regular expression: invalid character class {named[1]}")
            written += _CLASSES[named[1]]
            at = named.end()
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            written += pattern[at : at + 2]
            at += 2
        else:
            written += "\\" + pattern[at] if pattern[at] in "[&~|" or (pattern[at] == "]" and first) else pattern[at]
            at += 1
        first = False
    if at >= len(pattern):
        raise ValueError("invalid regular expression: brackets [] not balanced")
    return written + "]", at + 1


def matches(ignore_case: bool, negated: bool, length: int, text: str, pattern: str) -> bool:
    """Return whether a regular expression matches a part of text."""
    match = regular_expression(pattern, "i" if ignore_case else "").search(text.ljust(length))
    return (match is None) == negated


def regexp_like(text: str, pattern: str, flags: str = "") -> bool:
    """Return whether a regular expression matches a part of text."""
    if "g" in flags:
        raise ValueError('invalid regular expression option: regexp_like() does not support "global", not recognized')
    return regular_expression(pattern, flags).search(text) is not None


def substring_matching(text: str, pattern: str) -> str | None:
    """Return the part of text that matches: that of the first group if there is one."""
    match = regular_expression(pattern).search(text)
    if match is None:
        return None
    return match[1] if match.re.groups else match[0]


def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    """Return the part of text between the marks `escape` and `"` of a SIMILAR TO pattern."""
    if len(escape) > 1:
        raise ValueError("invalid escape string")
    pieces = pattern.split(escape + '"') if escape else [pattern]
    if len(pieces) > 3:
        raise ValueError("SQL regular expression may not contain more than two escape-double-quote separators: 2200C")
    bodies = [similar_pattern(piece, escape)[4:-2] for piece in pieces]
    if len(pieces) == 1:
        written = f"^({bodies[0]})$"
    elif len(pieces) == 2:
        written = f"^(?:{bodies[0]}){{1,1}}?({bodies[1]})$"
    else:
        written = f"^(?:{bodies[0]}){{1,1}}?({bodies[1]}){{1,1}}(?:{bodies[2]})$"
    match = regular_expression(written).search(text)
    return None if match is None else match[1]


def regexp_replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    """Return text with the first match replaced, or all with the flag g; \\1 stands for a group, \\& for the match."""
    compiled = regular_expression(pattern, flags)

    def fill(match: re.Match[str]) -> str:
        def part(reference: re.Match[str]) -> str:
            if reference[1] == "\\":
                return "\\"
            number = 0 if reference[1] == "&" else int(reference[1])
            return match[number] or "" if number <= compiled.groups else ""

        return re.sub(r"\\([0-9&\\])", part, replacement)

    return compiled.sub(fill, text, count=0 if "g" in flags else 1)


def regexp_match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    """Return the groups of the first match, or the whole match if there are none."""
    if "g" in flags:
        raise ValueError('invalid regular expression option: regexp_match() does not support "global", not recognized')
    match = regular_expression(pattern, flags).search(text)
    return None if match is None else list(match.groups() if match.re.groups else (match[0],))


def regexp_count(text: str, pattern: str) -> int:
    """Return the number of matches."""
    return sum(1 for _ in regular_expression(pattern).finditer(text))


def regexp_substr(text: str, pattern: str) -> str | None:
    """Return the first match."""
    match = regular_expression(pattern).search(text)
    return None if match is None else match[0]


def regexp_split(text: str, pattern: str, flags: str = "") -> list[str]:
    """Return the parts of text between matches; an empty match at the ends or behind a match does not split."""
    parts, start = [], 0
    for match in regular_expression(pattern, flags).finditer(text):
        if match.start() == match.end() and match.start() in (start, len(text)):
            if match.start() == start and start < len(text) and start > 0:
                continue
            if match.start() in (0, len(text)):
                continue
        parts.append(text[start : match.start()])
        start = match.end()
    return [*parts, text[start:]]
