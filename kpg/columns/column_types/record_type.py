"""record: a value made of other values, as Datalog programs construct them. The lane is the id of its text.

Records are strings of one canonical form (kpg.columns.record_text) with a type of their own, so that no string is
taken for a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.columns import record_text
from kpg.columns.column_types.column_type import SymbolicType, register
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


class RecordType(SymbolicType):
    """Records and branches of algebraic types."""

    name = "record"
    large_arrow = pa.large_string()

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if not isinstance(value, (str, tuple, list)):
            raise wrong_class(type_, value)
        try:
            return symbols.intern_one(record_text.canonical(value))
        except ValueError as error:
            raise UnfitValue(str(error), 'Write it as in [1, ["a", nil]] or $Node(1, $Leaf).') from None

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return None  # each value is brought into its canonical form

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.string()

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return is_arrow_text(source)

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        texts = [None if text is None else record_text.canonical(text) for text in encoded.dictionary.to_pylist()]
        ids = np.append(symbols.intern(texts), symbols.intern([None]))
        indices = encoded.indices.cast(pa.int64()).fill_null(len(texts))
        mapped: Ints = ids[indices.to_numpy(zero_copy_only=False)]
        return mapped


register(RecordType())
