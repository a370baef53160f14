"""docs/sql-reference.md lists every type, operator, function and aggregate of the tables, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from kpg.sql.functions.function_tables import AGGREGATES, SCALAR_FUNCTIONS, TABLE_FUNCTIONS
from kpg.sql.functions.resolve import is_operator
from kpg.sql.lower.engine_types import FIXED_TYPES

PAGE = (Path(__file__).parents[3] / "docs" / "sql-reference.md").read_text()
SYNTAX = {"array", "subscript"}  # ARRAY[…] and a[i]
COMPARED_WITH_ARRAYS = re.compile(r".* (any|all)")


def section(title: str) -> str:
    """Return the text of a section."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def code(text: str) -> set[str]:
    """Return what the tables of a section have in code spans."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return {span.replace("\\|", "|") for row in rows for span in re.findall(r"`([^`]+)`", row)}


def test_every_function_is_listed_once():
    names = {name for name in SCALAR_FUNCTIONS if not is_operator(name) and not COMPARED_WITH_ARRAYS.fullmatch(name)}
    expected = (names | AGGREGATES.keys() | TABLE_FUNCTIONS.keys()) - SYNTAX
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", section("Functions"), re.MULTILINE)
    listed = re.findall(r"`([a-z_0-9]+)`", "\n".join(rows))
    assert sorted(listed) == sorted(expected)


def test_every_operator_is_listed():
    operators = {name for name in SCALAR_FUNCTIONS if is_operator(name) and not COMPARED_WITH_ARRAYS.fullmatch(name)}
    assert operators <= code(section("Operators"))


def test_every_type_is_listed():
    listed = {name.split("(")[0].strip() for name in code(section("Types"))}
    assert set(FIXED_TYPES) - {"name", "unknown"} | {"numeric"} <= listed
