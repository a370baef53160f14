"""Pull patterns: which attributes of an entity to return, and of the entities that they refer to.

    [:name :age]                    two attributes            [*]              all attributes
    [:name {:friend [:name]}]       also the names of friends           [:_friend]      the entities that refer to it
    :db/id                          the entity itself

A pattern is a list of paths. The answer has a row for each value at the end of a path:

    (entity, path, value)      path is text: the attributes, with the entities between them, as in ":friend 7 :name"

If the attributes at the ends of the paths have values of several kinds, the values are text. `nest` turns such rows
into one dictionary for each entity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kpg.errors import ParseError, UndefinedName
from kpg.query.edn.edn_reader import Form
from kpg.query.source_text import Position, did_you_mean, failure

ENTITY = ":db/id"
MAX_PATHS = 1000  # each path is a rule; `*` inside `*` would multiply


@dataclass(frozen=True, slots=True)
class PullStep:
    """From an entity along an attribute to its values, or against it to the entities that have the entity as value."""

    attribute: str  # its name, or ENTITY as the last step
    reverse: bool = False

    @property
    def written(self) -> str:
        """The attribute as patterns write it."""
        if not self.reverse:
            return self.attribute
        prefix, slash, name = self.attribute.rpartition("/")
        return f"{prefix}/_{name}" if slash else f":_{name.removeprefix(':')}"


@dataclass(frozen=True, slots=True)
class PullPath:
    """The steps from an entity to the values to return."""

    steps: tuple[PullStep, ...]
    at: Position


def pull_paths(form: Form, attributes: list[str]) -> tuple[PullPath, ...]:
    """Return the paths of a pattern over these attributes."""
    paths = list(islice(dict.fromkeys(paths_of(form, attributes)), MAX_PATHS + 1))
    if len(paths) > MAX_PATHS:
        raise failure(ParseError, f"a pull of more than {MAX_PATHS:,} paths", form.at, hint="Name the attributes.")
    continued = {path[:length] for path in paths for length in range(1, len(path))}  # {:friend [...]} replaces :friend
    return tuple(PullPath(path, form.at) for path in paths if path not in continued)


def paths_of(form: Form, attributes: list[str]) -> Iterable[tuple[PullStep, ...]]:
    """Yield the paths of a pattern."""
    if form.kind != "vector" or not form.value:
        raise failure(ParseError, "not a pull pattern", form.at, hint="Write [:name {:friend [:name]}].")
    for item in form.value:
        if item.is_symbol("*") or (item.kind == "string" and item.value == "*"):
            yield from ((PullStep(attribute),) for attribute in attributes)
        elif item.kind == "keyword":
            yield (step_of(item, attributes),)
        elif item.kind == "map":
            yield from nested_paths(item, attributes)
        else:
            hint = "A pattern has attributes, * and maps from an attribute to a pattern."
            raise failure(ParseError, "not a part of a pull pattern", item.at, hint=hint)


def nested_paths(form: Form, attributes: list[str]) -> Iterable[tuple[PullStep, ...]]:
    """Yield the paths of `{:friend [:name]}`."""
    if len(form.value) % 2:
        raise failure(ParseError, "a map with a key and no value", form.at)
    for key, pattern in zip(form.value[::2], form.value[1::2], strict=True):
        if key.kind != "keyword" or key.value == ENTITY:
            raise failure(ParseError, "not an attribute", key.at, hint="Write {:friend [:name]}.")
        if pattern.kind != "vector":
            raise failure(ParseError, "a pull to any depth is not supported", pattern.at, hint="Write a rule.")
        for rest in paths_of(pattern, attributes):
            yield (step_of(key, attributes), *rest)


def step_of(form: Form, attributes: list[str]) -> PullStep:
    """Return the step along an attribute; an underscore before its name reverses it."""
    if form.value == ENTITY or form.value in attributes:
        return PullStep(form.value)
    prefix, slash, name = form.value.rpartition("/")
    forward = f"{prefix}/{name.removeprefix('_')}" if slash else f":{name.removeprefix(':_')}"
    if name.removeprefix(":").startswith("_") and forward in attributes:
        return PullStep(forward, reverse=True)
    raise failure(
        UndefinedName, f"no attribute is called {form.value}", form.at, hint=did_you_mean(form.value, attributes)
    )


def nest(rows: Iterable[tuple[Any, str, Any]]) -> dict[Any, dict[str, Any]]:
    """Return one dictionary for each entity, from the rows of a pull.

    Values of one attribute are a list. An attribute with a nested pattern has a dictionary for each entity that it
    refers to, by the text of that entity.
    """
    entities: dict[Any, dict[str, Any]] = {}
    for entity, path, value in rows:
        *steps, attribute = path.split(" ")
        level = entities.setdefault(entity, {})
        for step in steps:
            level = level.setdefault(step, {})
        level.setdefault(attribute, []).append(value)
    return entities
