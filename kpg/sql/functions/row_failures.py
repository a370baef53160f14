"""The SQLSTATE of a row that fails, by the reason that its function gives."""

from __future__ import annotations

from typing import Final

DATA_EXCEPTION: Final = "22000"
_STATES: Final = (  # the first phrase that occurs in the reason decides
    ("division by zero", "22012"),
    ("more than one row", "21000"),
    ("several rows", "21000"),
    ("invalid input syntax for type date", "22007"),
    ("invalid input syntax for type time", "22007"),  # also timestamp
    ("invalid input syntax for type interval", "22007"),
    ("invalid value", "22007"),
    ("invalid input syntax", "22P02"),
    ("malformed array literal", "22P02"),
    ("interval field value out of range", "22015"),
    ("field value out of range", "22008"),
    ("date out of range", "22008"),
    ("timestamp out of range", "22008"),
    ("interval out of range", "22008"),
    ("stride must be greater than zero", "22008"),
    ("not supported", "0A000"),
    ("time zone displacement", "22009"),
    ("time zone", "22023"),
    ("not recognized", "22023"),
    ("too long for type", "22001"),
    ("negative substring length", "22011"),
    ("field position must not be zero", "22023"),
    ("hexadecimal", "22023"),
    ("unrecognized encoding", "22023"),
    ("unrecognized format", "22023"),
    ("invalid symbol", "22023"),
    ("invalid base64", "22023"),
    ("too few arguments", "22023"),
    ("step size cannot", "22023"),
    ("of a non-array", "22023"),
    ("of a scalar", "22023"),
    ("cannot cast jsonb", "22023"),
    ("cannot delete", "22023"),
    ("argument list must have even", "22023"),
    ("null value not allowed for object key", "22023"),
    ("key value must be scalar", "22023"),
    ("cannot be null", "22004"),
    ("regular expression option", "22023"),
    ("invalid regular expression", "2201B"),
    ("invalid escape string", "22025"),
    ("LIKE pattern must not end", "22025"),
    ("logarithm", "2201E"),
    ("square root of a negative", "2201F"),
    ("zero raised to", "2201F"),
    ("a negative number raised", "2201F"),
    ("count must be greater", "2201G"),
    ("lower bound", "2201G"),
    ("bounds must be finite", "2201G"),
    ("cannot convert infinity", "0A000"),
    ("requested character", "54000"),
    ("null character", "54000"),
    ("requested length too large", "54000"),
    ("not a valid binary digit", "22P02"),
    ("out of range", "22003"),
    ("overflow", "22003"),
)


def state_of_reason(reason: str) -> str:
    """Return the SQLSTATE for the reason of a failure."""
    return next((state for phrase, state in _STATES if phrase in reason), DATA_EXCEPTION)
