"""Read decoded JSON with checks: every error has the path to the wrong value, as in

$.rules[0].plan.Join.left_plan: no stage is called 'MatchX'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kpg.errors import ParseError
from kpg.query.ir.terms import ConstantTerm, Kind
from kpg.query.source_text import Position, SourceText, did_you_mean, failure

TAGS: dict[str, tuple[type, ...]] = {
    "String": (str,), "Aid": (str,), "Number": (int,), "Eid": (int,), "Instant": (int,), "Bool": (bool,),
    "Float": (int, float), "Real": (int, float),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value and its path."""

    value: Any
    path: str = "$"

    @property
    def at(self) -> Position:
        """The path as a position."""
        return Position(SourceText(self.path, ""), 1, 1)

    def wrong(self, what: str, hint: str | None = None) -> ParseError:
        """Return an error for this value."""
        return failure(ParseError, what, self.at, hint=hint)

    def member(self, *names: str) -> Json:
        """Return a required member, by one of its names."""
        value = self.optional(*names)
        if value is None:
            raise self.wrong(f"{names[0]!r} is missing", did_you_mean(names[0], map(str, self.value)))
        return value

    def optional(self, *names: str) -> Json | None:
        """Return an optional member, by one of its names, or None."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"found {shortened(self.value)}, expected an object")
        for name in names:
            if self.value.get(name) is not None:
                return Json(self.value[name], f"{self.path}.{name}")
        return None

    def items(self) -> list[Json]:
        """Return the items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"found {shortened(self.value)}, expected a list")
        return [Json(value, f"{self.path}[{number}]") for number, value in enumerate(self.value)]

    def tagged(self) -> tuple[str, Json]:
        """Return the name and value of an object with one member."""
        if not isinstance(self.value, dict) or len(self.value) != 1:
            hint = 'As in {"MatchA": [0, ":knows", 1]}.'
            raise self.wrong(f"found {shortened(self.value)}, expected an object with one member", hint)
        ((name, value),) = self.value.items()
        return str(name), Json(value, f"{self.path}.{name}")

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"found {shortened(self.value)}, expected a name")
        return self.value

    def variable(self) -> str:
        """Return a variable: a number or a name."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, str)):
            raise self.wrong(f"found {shortened(self.value)}, expected a variable", "A variable is a number or a name.")
        return str(self.value).removeprefix("?") or "?"

    def variables(self) -> list[str]:
        """Return a list of variables."""
        return [item.variable() for item in self.items()]

    def constant(self) -> ConstantTerm:
        """Return a constant, plain or tagged with its type."""
        value: Any = self.value
        if isinstance(value, dict):
            tag, inner = self.tagged()
            value = inner.value
            if not isinstance(value, TAGS.get(tag, ())) or isinstance(value, bool) != (tag == "Bool"):
                types = " or ".join(type_.__name__ for type_ in TAGS.get(tag, ()))
                hint = f"{tag} takes a value of type {types}." if types else did_you_mean(tag, TAGS)
                raise self.wrong(f"{shortened(self.value)} is not a value", hint)
            value = float(inner.value) if tag in ("Float", "Real") else inner.value
        if not isinstance(value, (bool, int, float, str)):
            raise self.wrong(f"found {shortened(value)}, expected a value")
        kind: Kind | None = "bool" if isinstance(value, bool) else "symbol" if isinstance(value, str) else None
        return ConstantTerm(value, "float" if isinstance(value, float) else kind, self.at)


def shortened(value: Any) -> str:
    """Return a value as text of at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
