"""to_char for numbers: the template patterns 9 0 . D , G S MI PL SG PR FM TH V and text, on Python values.

Digits that do not fit become #. Without FM the result is padded with blanks to the width of the template, and a blank
stands for the sign of a number that is not negative.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kpg.sql.functions.text_input import EXACT

_TOKEN: Final = re.compile(r'"([^"]*)"?|(FM|MI|PL|SG|PR|TH|[90.,DGSVL])|(.)', re.IGNORECASE | re.DOTALL)


class NumberTemplate(NamedTuple):
    """A parsed template."""

    tokens: tuple[tuple[str, str], ...]  # ("digit", "9"), ("point", "."), ("group", ","), ("sign", "MI"), ("text", …)
    whole: int  # digits before the point
    fraction: int  # digits behind it
    first_zero: int  # the first position of a digit that is a zero at least, or `whole`
    trims: bool
    signs: frozenset[str]
    shift: int  # digits behind V


@lru_cache(1000)
def _parsed(template: str) -> NumberTemplate:
    tokens: list[tuple[str, str]] = []
    whole = fraction = shift = 0
    first_zero: int | None = None
    trims = behind_point = behind_shift = False
    signs = set()
    for quoted, name, other in _TOKEN.findall(template):
        key = name.upper()
        if key == "FM":
            trims = True
        elif key in ("9", "0"):
            if behind_point:
                fraction += 1
            else:
                if key == "0" and first_zero is None:
                    first_zero = whole
                whole += 1
                shift += behind_shift
            tokens.append(("fraction" if behind_point else "digit", key))
        elif key in (".", "D"):
            behind_point = True
            tokens.append(("point", "."))
        elif key in (",", "G"):
            tokens.append(("group", ","))
        elif key == "V":
            behind_shift = True
        elif key in ("S", "MI", "PL", "SG", "PR"):
            signs.add(key)
            tokens.append(("sign", key))
        elif key == "TH":
            tokens.append(("th", name))
        elif key == "L":
            tokens.append(("text", " "))
        else:
            tokens.append(("text", quoted or other))
    zero = whole if first_zero is None else first_zero
    return NumberTemplate(tuple(tokens), whole, fraction, zero, trims, frozenset(signs), shift)


def show_number(number: Any, template: str) -> str:
    """Return a number in the form of a template."""
    form = _parsed(template)
    if isinstance(number, float) and not math.isfinite(number):
        return _filled(form, "#" * form.whole, "#" * form.fraction, number < 0, False)
    exact = Decimal(number)
    scaled = exact.copy_abs().scaleb(form.shift, EXACT)
    rounding = ROUND_HALF_EVEN if isinstance(number, float) else ROUND_HALF_UP
    rounded = scaled.quantize(Decimal(1).scaleb(-form.fraction), rounding, EXACT)
    digits = f"{rounded:f}"
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0")
    is_negative = exact < 0
    if len(whole) > form.whole:
        return _filled(form, "#" * form.whole, "#" * form.fraction, is_negative, False)
    return _filled(form, whole, fraction, is_negative, rounded == 0)


def _filled(form: NumberTemplate, whole: str, fraction: str, is_negative: bool, is_zero: bool) -> str:
    if not whole and form.whole and (form.fraction == 0 or (is_zero and form.trims)):
        whole = "0"
    start = min(form.whole - len(whole), form.first_zero)  # the first position that shows a digit
    digits = whole.rjust(form.whole, "0")
    kept = fraction.rstrip("0") if form.trims else fraction
    least = _fraction_zeros(form)
    kept = fraction[: max(len(kept), least)] if form.trims else fraction
    return _assembled(form, digits, start, kept, is_negative)


def _fraction_zeros(form: NumberTemplate) -> int:
    """Return the number of digits behind the point that the template asks for as zeros."""
    last, seen = 0, 0
    for kind, key in form.tokens:
        if kind == "fraction":
            seen += 1
            last = seen if key == "0" else last
    return last


def _assembled(form: NumberTemplate, digits: str, start: int, fraction: str, is_negative: bool) -> str:
    out: list[str] = []
    at = behind = 0
    sign_shown = bool(form.signs & {"MI", "PL", "SG", "PR"})
    leading = "-" if is_negative else ("+" if "S" in form.signs else "" if form.trims else " ")
    trailing_sign = form.tokens and form.tokens[-1] == ("sign", "S")
    if sign_shown or trailing_sign:
        leading = ""
    if "PR" in form.signs:
        leading = "<" if is_negative else "" if form.trims else " "
    pending = leading
    blank = "" if form.trims else " "
    for kind, key in form.tokens:
        if kind == "digit":
            if at < start:
                out.append(blank)
            else:
                out.append(pending + digits[at])
                pending = ""
            at += 1
        elif kind == "point":
            out.append(pending + ".")
            pending = ""
        elif kind == "fraction":
            out.append(fraction[behind] if behind < len(fraction) else blank if not form.trims else "")
            behind += 1
        elif kind == "group":
            out.append("," if at > start else blank)
        elif kind == "sign":
            out.append(_sign_text(key, is_negative, form.trims, trailing_sign=bool(trailing_sign)))
        elif kind == "text":
            out.append(key)
    return "".join(out) if not pending else pending + "".join(out)


def _sign_text(key: str, is_negative: bool, trims: bool, trailing_sign: bool) -> str:
    blank = "" if trims else " "
    match key:
        case "MI":
            return "-" if is_negative else blank
        case "PL":
            return "+" if not is_negative else blank
        case "SG":
            return "-" if is_negative else "+"
        case "PR":
            return ">" if is_negative else blank
    return ("-" if is_negative else "+") if trailing_sign else ""
