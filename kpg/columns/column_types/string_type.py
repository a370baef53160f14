"""string: Unicode text of any length. The lane is the id of the text in the symbol table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.column_types.column_type import NO_PARAMETERS, Parameters, SymbolicType, register
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.errors import SchemaMismatch

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


def is_arrow_text(source: pa.DataType) -> bool:
    """Return whether an Arrow type is one of Arrow's three types of text."""
    return pa.types.is_string(source) or pa.types.is_large_string(source) or pa.types.is_string_view(source)


class StringType(SymbolicType):
    """Unicode text of any length."""

    name = "string"
    aliases = ("str",)
    python_class = str
    literal_classes = (str,)
    plain_class = str
    large_arrow = pa.large_string()

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if not isinstance(value, str):
            raise wrong_class(type_, value)
        try:
            return symbols.intern_one(value if type(value) is str else str.__str__(value))
        except SchemaMismatch as error:
            raise UnfitValue(f"{error.what}: {error.detail}", error.hint) from None

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.string()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if is_arrow_text(source) else None


register(StringType())
