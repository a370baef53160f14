"""Records in files of facts and changes, in Soufflé's notation: `[1, [a b, nil]]` and `$Node(1, $Leaf)`.

    canonical_record("[1, [a, nil]]", "List", signatures) == '[1, ["a", nil]]'      for lists of a number and a symbol

Symbols need no quotes, so the declared type decides how each field is read. An unquoted symbol ends at a comma or a
closing bracket; in double quotes it may contain them. Nesting may be of any depth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kpg.columns import record_text
from kpg.columns.number_functions import parse_integer
from kpg.columns.schema import RECORD as RECORD_TYPE
from kpg.errors import SchemaMismatch
from kpg.query.ir.constructors import BRANCH, RECORD, Constructor, Signatures
from kpg.query.ir.program import Relation, RelationColumn
from kpg.query.ir.terms import KINDS, Kind
from kpg.query.lower.value_expressions import column_type

CLOSERS = {"[": "]", "(": ")"}
OPENERS = {closer: opener for opener, closer in CLOSERS.items()}


@dataclass(slots=True)
class OpenRecord:
    """A record of which some fields are read, and the bracket that ends it."""

    constructor: Constructor
    closer: str
    fields: list[str] = field(default_factory=list)


class RecordFactReader:
    """Reads one record from a text."""

    def __init__(self, text: str, signatures: Signatures) -> None:
        self.text = text
        self.position = 0
        self.signatures = signatures

    def read(self, kind: Kind) -> str:
        """Return the canonical text of the record; raise ValueError if the text is not one of this type."""
        open_records: list[OpenRecord] = []
        while True:
            value = self.value(kind, open_records)
            while value is not None and open_records:
                inner = open_records[-1]
                inner.fields.append(value)
                if len(inner.fields) < inner.constructor.arity:
                    self.expect(",")
                    break
                self.expect(inner.closer)
                value = record_text.make(inner.constructor.tag, inner.fields)
                open_records.pop()
            if value is not None and not open_records:
                if self.text[self.position :].strip():
                    raise ValueError(self.text)
                return value
            inner = open_records[-1]
            kind = inner.constructor.kinds[len(inner.fields)]

    def value(self, kind: Kind, open_records: list[OpenRecord]) -> str | None:
        """Read a value that is complete, and return its text; or begin a record, and return None."""
        self.skip_space()
        if kind in KINDS:
            return self.scalar(kind, in_branch=bool(open_records) and open_records[-1].closer == ")")
        if self.text.startswith(record_text.NIL, self.position) and self.constructors(kind, RECORD):
            self.position += len(record_text.NIL)
            return record_text.NIL
        constructor = self.begin(kind)
        if constructor.arity == 0:
            if constructor.functor == RECORD:
                self.expect("]")
            elif self.text.startswith("()", self.position):
                self.position += 2
            return record_text.make(constructor.tag, ())
        if constructor.functor != RECORD:
            self.expect("(")
        open_records.append(OpenRecord(constructor, "]" if constructor.functor == RECORD else ")"))
        return None

    def begin(self, kind: Kind) -> Constructor:
        """Read the bracket or the name of a branch with which a record begins."""
        if self.text.startswith("[", self.position):
            self.position += 1
            functor = RECORD
        else:
            self.expect(BRANCH)
            end = self.position
            while end < len(self.text) and (self.text[end].isalnum() or self.text[end] in "_?."):
                end += 1
            functor, self.position = BRANCH + self.text[self.position : end], end
        matching = self.constructors(kind, functor)
        if not matching:
            raise ValueError(self.text)
        return matching[0]

    def constructors(self, kind: Kind, functor: str) -> list[Constructor]:
        """Return the constructors of a type with this functor: one or none."""
        return [one for one in self.signatures.constructors if one.type == kind and one.functor == functor]

    def scalar(self, kind: Kind, in_branch: bool) -> str:
        """Read a number, bool or symbol."""
        if kind == "symbol" and self.text.startswith('"', self.position):
            end = self.position + 1
            while end < len(self.text) and self.text[end] != '"':
                end += 2 if self.text[end] == "\\" else 1
            quoted, self.position = self.text[self.position : end + 1], end + 1
            return record_text.quote(record_text.unquote(quoted))
        ends = [self.text.find(mark, self.position) for mark in (",", ")" if in_branch else "]")]
        end = min((end for end in ends if end >= 0), default=len(self.text))
        word, self.position = self.text[self.position : end].strip(), end
        match kind:
            case "symbol":
                return record_text.quote(word)
            case "float":
                return record_text.write_scalar(float(word) + 0.0)
            case "bool":
                return word if word in ("true", "false") else str(parse_integer(word))
        number = parse_integer(word)
        low, high = (0, 2**64) if kind == "unsigned" else (-(2**63), 2**63)
        if not low <= number < high:
            raise ValueError(word)
        return str(number)

    def expect(self, symbol: str) -> None:
        """Read a symbol, behind any white space."""
        self.skip_space()
        if not self.text.startswith(symbol, self.position):
            raise ValueError(self.text)
        self.position += len(symbol)

    def skip_space(self) -> None:
        """Advance to the next character that is not a space."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1


def canonical_record(text: str, kind: Kind, signatures: Signatures) -> str:
    """Return the canonical form of a record in Soufflé's notation; raise ValueError if it is not of this type."""
    return RecordFactReader(text, signatures).read(kind)


def is_record(kind: Kind, signatures: Signatures) -> bool:
    """Return whether a kind is a record or algebraic type."""
    return kind in signatures.records


def canonical_table(table: pa.Table, relation: Relation, signatures: Signatures, name: str, first: int) -> pa.Table:
    """Return a table as read from a file with canonical records; its first row is in line `first`."""
    for position, column in enumerate(relation.columns):
        if is_record(column.kind, signatures):
            records = canonical_column(table.column(position), column, signatures, name, first)
            table = table.set_column(position, column.name, records)
    return table


def canonical_column(texts: Any, column: RelationColumn, signatures: Signatures, name: str, first: int) -> Any:
    """Return a column of texts as canonical records; each distinct text is read once."""
    encoded = pa.chunked_array(texts.chunks, texts.type).combine_chunks().dictionary_encode()
    records: list[str] = []
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            records.append(canonical_record(str(text), column.kind, signatures))
        except ValueError:
            line = first + encoded.indices.to_pylist().index(number)
            raise not_a_record(str(text), column, f"{name}:{line}") from None
    return pa.array(records, pa.string()).take(encoded.indices)


def not_a_record(text: str, column: RelationColumn, where: str) -> SchemaMismatch:
    """Return the error for a text that is not a record of its column's type."""
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return SchemaMismatch(
        f"{where}: {shown!r} is not a value of type {column.type}", detail=f"It is in column {column.name}."
    )


def read_record(text: str, column: RelationColumn, signatures: Signatures, where: str) -> str:
    """Return one record in canonical form; raise SchemaMismatch if it is not of its column's type."""
    try:
        return canonical_record(text, column.kind, signatures)
    except ValueError:
        raise not_a_record(text, column, where) from None


def readable(table: pa.Table, relation: Relation) -> pa.Table:
    """Return a table of a relation's rows with records in Soufflé's notation."""
    for position, column in enumerate(relation.columns):
        if column_type(column.kind) == RECORD_TYPE:
            parts = [readable_column(chunk) for chunk in table.column(position).chunks]
            table = table.set_column(position, column.name, pa.chunked_array(parts, pa.string()))
    return table


def readable_column(column: Any) -> Any:
    """Return a column of canonical records in Soufflé's notation: symbols without quotes."""
    encoded = column.dictionary_encode()
    texts = [record_text.show_unquoted(str(text)) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def split_at_commas(text: str) -> list[str]:
    """Split `[1, [2, nil]],"a, b"` at the commas outside of brackets and quotes, and unquote whole values."""
    parts, start, depth, quoted = list[str](), 0, 0, False
    for position, character in enumerate(text):
        if character == '"' and text[position - 1 : position] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif character in CLOSERS:
            depth += 1
        elif character in OPENERS:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [unquoted(part) for part in parts]


def unquoted(part: str) -> str:
    """Return a value without the double quotes around it."""
    stripped = part.strip()
    is_quoted = len(stripped) > 1 and stripped[0] == stripped[-1] == '"'
    return stripped[1:-1].replace('""', '"') if is_quoted else part
