"""to_char, to_date and to_timestamp: the common patterns of PostgreSQL's templates, on Python values."""

from __future__ import annotations

import datetime
from typing import Any


def show_moment(type_name: str, moment: datetime.datetime, template: str) -> str:
    """Return a moment in the form of a template."""
    raise ValueError("to_char is not supported")


def show_interval(interval: Any, template: str) -> str:
    """Return an interval in the form of a template."""
    raise ValueError("to_char is not supported")


def show_number(number: Any, template: str) -> str:
    """Return a number in the form of a template."""
    raise ValueError("to_char is not supported")


def read_moment(text: str, template: str) -> datetime.datetime:
    """Return the moment that a text in the form of a template stands for."""
    raise ValueError("to_timestamp is not supported")


def read_day(text: str, template: str) -> datetime.date:
    """Return the date that a text in the form of a template stands for."""
    raise ValueError("to_date is not supported")
