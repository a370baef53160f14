"""JSON, looked at with care: what is not as it should be is refused with the path to it.

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
    """A value and where it stands."""

    value: Any
    path: str = "$"

    @property
    def at(self) -> Position:
        """The path as a place."""
        return Position(SourceText(self.path, ""), 1, 1)

    def wrong(self, what: str, hint: str | None = None) -> ParseError:
        """The error for what stands here."""
        return failure(ParseError, what, self.at, hint=hint)

    def member(self, *names: str) -> Json:
        """A member that must be there, by one of its names."""
        found = self.optional(*names)
        if found is None:
            raise self.wrong(f"{names[0]!r} is missing", did_you_mean(names[0], map(str, self.value)))
        return found

    def optional(self, *names: str) -> Json | None:
        """A member that may be there, by one of its names."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"found {shown(self.value)}, expected an object")
        for name in names:
            if self.value.get(name) is not None:
                return Json(self.value[name], f"{self.path}.{name}")
        return None

    def items(self) -> list[Json]:
        """The items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"found {shown(self.value)}, expected a list")
        return [Json(value, f"{self.path}[{place}]") for place, value in enumerate(self.value)]

    def tagged(self) -> tuple[str, Json]:
        """An object of one member: its name and what it holds."""
        if not isinstance(self.value, dict) or len(self.value) != 1:
            hint = 'As in {"MatchA": [0, ":knows", 1]}.'
            raise self.wrong(f"found {shown(self.value)}, expected an object with one member", hint)
        ((name, value),) = self.value.items()
        return str(name), Json(value, f"{self.path}.{name}")

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"found {shown(self.value)}, expected a name")
        return self.value

    def variable(self) -> str:
        """A variable: a number or a name."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, str)):
            raise self.wrong(f"found {shown(self.value)}, expected a variable", "A variable is a number or a name.")
        return str(self.value).removeprefix("?") or "?"

    def variables(self) -> list[str]:
        """A list of variables."""
        return [each.variable() for each in self.items()]

    def constant(self) -> ConstantTerm:
        """A value, bare or tagged with its type."""
        value: Any = self.value
        if isinstance(value, dict):
            tag, inner = self.tagged()
            value = inner.value
            if not isinstance(value, TAGS.get(tag, ())) or isinstance(value, bool) != (tag == "Bool"):
                raise self.wrong(f"{shown(self.value)} is no value", did_you_mean(tag, TAGS))
            value = float(inner.value) if tag in ("Float", "Real") else inner.value
        if not isinstance(value, (bool, int, float, str)):
            raise self.wrong(f"found {shown(value)}, expected a value")
        kind: Kind | None = "bool" if isinstance(value, bool) else "symbol" if isinstance(value, str) else None
        return ConstantTerm(value, "float" if isinstance(value, float) else kind, self.at)


def shown(value: Any) -> str:
    """A value, cut short."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
