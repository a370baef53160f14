"""The types that every program has without declaring them: the kind of their values, and the range of small integers.

number, unsigned, float, symbol     as in Soufflé; integers and floats have 64 bits
int8 ... int64, uint8 ... uint64    numbers and unsigned numbers of a range, which is checked
f32, f64, bool, string              float, float, the constants true and false, symbol
date, timestamp, time, interval, …  values of such columns: rules can compare and join them
"""

from __future__ import annotations

from kpg.query.ir.terms import KINDS, Kind

Range = tuple[int, int]

RANGES: dict[str, Range] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
}
PRIMITIVE_TYPES: dict[str, Kind] = {
    **{kind: kind for kind in KINDS},
    **{name: "unsigned" if name.startswith("u") else "number" for name in (*RANGES, "int64", "uint64")},
    "f32": "float", "f64": "float", "string": "symbol",
    **{name: name for name in ("date", "timestamp", "timestamp_ntz", "time", "interval", "binary", "uuid", "jsonb")},
}  # fmt: skip
