"""The binary format of COPY: a header, then each row as the number of its fields and the fields, then a trailer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from kpg.errors import KpgError, ProtocolError, SchemaMismatch
from kpg.pgwire.parameter_fields import read_parameter
from kpg.pgwire.wire_format import BINARY_FORMAT, MessageFields
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import SqlType

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
BINARY_HEADER: Final = SIGNATURE + struct.pack("!ii", 0, 0)
BINARY_TRAILER: Final = struct.pack("!h", -1)
BAD_COPY_FORMAT: Final = "22P04"


def read_binary(data: bytes, types: Sequence[SqlType]) -> list[tuple[Any, ...]]:
    """Return the rows of a file in the binary format."""
    try:
        return list(rows_in(MessageFields(data), types))
    except ProtocolError as error:
        raise malformed(error.what) from None


def rows_in(fields: MessageFields, types: Sequence[SqlType]) -> Any:
    """Yield the rows of a file."""
    if fields.take(len(SIGNATURE)) != SIGNATURE:
        raise malformed("COPY file signature not recognized")
    if fields.int32() >> 16:
        raise malformed("the file has flags that are not known")
    fields.take(fields.int32())
    while (count := fields.int16()) != -1:
        if count != len(types):
            raise malformed(f"a row has {count} fields, expected {len(types)}")
        yield tuple(read_parameter(fields.value(), BINARY_FORMAT, type_).value for type_ in types)


def malformed(what: str) -> KpgError:
    """Return the error of a file that is not in the binary format."""
    return with_sqlstate(BAD_COPY_FORMAT, SchemaMismatch(f"cannot read STDIN: {what}"))
