"""Values as text, as psql shows them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any


def show_value(value: Any, null: str = "") -> str:
    """Return a Python value of a result as PostgreSQL writes it; `null` stands for None."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return show_float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        return show_timestamp(value)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(show_element(element) for element in value) + "}"
    return str(value)


def show_float(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def show_timestamp(value: datetime.datetime) -> str:
    """Return a timestamp with a fraction only if it has one, and with its offset if it has a zone."""
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    if "." in text:
        text = text.rstrip("0")
    return text if value.tzinfo is None else text + "+00"


def show_element(value: Any) -> str:
    """Return an element of an array: null as NULL, text with special characters in quotes."""
    if value is None:
        return "NULL"
    text = show_value(value)
    special = not text or text.upper() == "NULL" or any(character in text for character in '{},"\\ \t\n')
    if isinstance(value, str) and special:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text
