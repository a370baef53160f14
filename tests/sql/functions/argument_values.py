"""Arguments for every type and for parameters with a meaning: typical values, limits, and random ones, with nulls."""

from __future__ import annotations

import random

from kpg.sql.sql_types import SqlType

TEXTS = ["", "a", "abc", "Hello World", "ÄÖÜ straße", "  padded  ", "a,b,,c", "100", "-7", "x_y%z", "日本語",
         "foo.bar\nbaz", "The quick brown fox", "aaa", "A-b_c d", "'quoted'", "o'neil"]  # fmt: skip
PLAIN = {
    "boolean": ["true", "false"],
    "smallint": ["0", "1", "-1", "7", "-32768", "32767", "12", "-13"],
    "integer": ["0", "1", "-1", "2", "3", "5", "-4", "100", "2147483647", "-2147483648"],
    "bigint": ["0", "1", "-1", "3", "-10", "40", "9223372036854775807", "-9223372036854775807", "123456789012"],
    "real": ["0", "1", "-1.5", "2.5", "0.5", "3.4e38", "1e-37", "100000", "1234567", "0.1"],
    "double precision": ["0", "1", "-1", "0.5", "-0.5", "2.5", "3.5", "1e300", "1e-300", "123.456", "-2", "1e15", "10",
                         "Infinity", "NaN"],
    "text": TEXTS,
    "bytea": ["", "\\x00ff", "abc", "\\xdeadbeef", "hello"],
    "date": ["2024-02-29", "2000-01-01", "1999-12-31", "1970-01-01", "2024-05-15", "0004-03-01", "2023-01-01"],
    "time without time zone": ["00:00:00", "12:34:56.789", "23:59:59.999999", "06:00:00"],
    "timestamp without time zone": ["2024-02-29 12:34:56.789", "2000-01-01 00:00:00", "1969-12-31 23:59:59.999999",
                                    "2023-12-31 10:00:00", "2024-01-31 01:02:03", "1850-06-15 05:05:05"],
    "timestamp with time zone": ["2024-02-29 12:34:56.789+00", "2000-01-01 00:00:00+00", "1999-07-04 17:30:00+02",
                                 "2024-03-31 01:30:00+00", "2024-11-03 06:30:00+00"],
    "interval": ["0", "1 day", "1 month", "30 days", "-1 mon +2 days -03:04:05", "1 year 2 mons 3 days 04:05:06.5",
                 "24:00:00", "-00:00:01", "15 minutes", "1 week"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"],
    "jsonb": ['{"a": 1, "b": [1, 2, {"c": null}], "bb": "x"}', "[1, 2.5, \"t\", null, true]", '"text"', "12.5", "null",
              "{}", "[]", '{"a": {"b": {"c": "deep"}}}', "true", '["a", "b"]'],
}  # fmt: skip
FIELDS = ["year", "month", "day", "hour", "minute", "second", "quarter", "week", "dow", "isodow", "doy", "isoyear",
          "epoch", "decade", "century", "millennium", "microseconds", "milliseconds", "julian", "nonsense"]  # fmt: skip
NUMERICS = ["0", "1", "-1", "2.5", "-2.5", "0.01", "99.99", "1234.5", "-0.05", "3", "10"]


def number_of(type_: SqlType, rng: random.Random) -> str:
    """Return a number that fits a numeric type."""
    digits = (type_.precision or 1) - (type_.scale or 0)
    fitting = [text for text in NUMERICS if len(text.lstrip("-").split(".")[0]) <= digits]
    if rng.random() < 0.6:
        return rng.choice(fitting)
    whole = rng.randrange(10 ** rng.randint(1, max(1, digits)))
    fraction = f".{rng.randrange(10**type_.scale):0{type_.scale}d}" if type_.scale else ""
    return f"{rng.choice(['', '-'])}{whole if digits else 0}{fraction}"


def value_of(type_: SqlType, rng: random.Random) -> str | None:
    """Return a random value of a type, null one time in eight."""
    if rng.random() < 0.125:
        return None
    if type_.name == "numeric":
        return number_of(type_, rng)
    if type_.element is not None:
        members = [value_of(type_.element, rng) for _ in range(rng.randrange(4))]
        return (
            "{"
            + ",".join(
                "NULL" if m is None else '"' + m.replace("\\", "\\\\").replace('"', '\\"') + '"' for m in members
            )
            + "}"
        )
    if type_.is_text:
        text = rng.choice(TEXTS)
        return text if type_.length is None else text[: type_.length]
    if type_.is_integer and rng.random() < 0.3:
        return str(rng.randint(-50, 50))
    if type_.name == "date" and rng.random() < 0.4:
        return f"{rng.randint(1, 3000):04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
    return rng.choice(PLAIN[type_.name])
