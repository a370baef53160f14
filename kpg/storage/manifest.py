"""Manifests: the content of a directory as of a frontier. Later frames of the log complete it.

A manifest is one line of JSON and one line with its checksum, in a numbered file; recovery uses the newest readable
one. It names every batch file with its checksum, so a reader can verify them. The directory keeps two manifests: if the
newest or one of its files is damaged, the one before it and more frames of the log give the same content. All member
names are literals: they never change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema, parse_type
from kpg.errors import Corrupt

FORMAT, VERSION = "kpg storage", 1  # literals on disk


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of updates: its name, size, checksum and row count."""

    name: str
    bytes: int
    checksum: int
    rows: int


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch: its file, and its description."""

    file: StoredFile
    lower: Frontier
    upper: Frontier
    since: Frontier


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation: its columns and key, the column order of its files, its batches, and its updates at later times."""

    id: int
    schema: Schema
    key: tuple[str, ...]
    order: tuple[str, ...]
    batches: tuple[StoredBatch, ...] = ()
    later: tuple[StoredFile, ...] = ()

    @property
    def files(self) -> list[StoredFile]:
        """All files of the relation."""
        return [batch.file for batch in self.batches] + list(self.later)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a directory at a frontier; later transactions are in the log, from frame `log` on."""

    number: int
    coordinates: int
    frontier: Frontier
    log: int
    generation: int = 0
    next_relation: int = 1
    relations: dict[str, StoredRelation] = field(default_factory=dict)
    applied: dict[str, list[list[int]]] = field(default_factory=dict)
    declarations: dict[str, Any] = field(default_factory=dict)
    readers: dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """The names of all batch files it needs."""
        return {file.name for relation in self.relations.values() for file in relation.files}


def manifest_name(number: int) -> str:
    """Return the file name of a manifest."""
    return f"manifest-{number:08d}.json"


def manifest_number(name: str) -> int | None:
    """Return the number of a manifest by its file name, None for other files."""
    digits = name.removeprefix("manifest-").removesuffix(".json")
    return int(digits) if name == f"manifest-{digits}.json" and digits.isdecimal() else None


def to_bytes(manifest: Manifest) -> bytes:
    """Return the content of a manifest's file."""
    body = json.dumps(_to_json(manifest), separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (body, crc32(body))


def from_bytes(data: bytes, name: str) -> Manifest:
    """Return the manifest of a file's content; raise Corrupt if it is damaged or of another version."""
    body, _, rest = data.partition(b"\n")
    if rest != b"%08x\n" % crc32(body):
        raise Corrupt(f"{name} is damaged or half written", detail="Its checksum does not fit.")
    written = json.loads(body)
    if written.get("format") != FORMAT or written.get("version") != VERSION:
        actual = f"{written.get('format')!r}, version {written.get('version')}"
        raise Corrupt(
            f"{name} is of another version", detail=f"Found {actual}; expected {FORMAT!r}, version {VERSION}."
        )
    return _from_json(written)


def schema_to_json(schema: Schema) -> list[list[str]]:
    """Return the names and types of a schema's columns."""
    return [[name, str(type_)] for name, type_ in zip(schema.names, schema.types, strict=True)]


def schema_from_json(columns: Sequence[Sequence[str]]) -> Schema:
    """Return the schema of column names and types."""
    return Schema(tuple(name for name, _ in columns), tuple(parse_type(type_) for _, type_ in columns))


def frontier_to_json(frontier: Frontier) -> list[list[int]]:
    """Return the elements of a frontier."""
    return [list(time) for time in frontier]


def frontier_from_json(elements: Sequence[Sequence[int]]) -> Frontier:
    """Return the frontier of some elements."""
    return Frontier(tuple(time) for time in elements)


def _to_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "number": manifest.number,
        "coordinates": manifest.coordinates,
        "frontier": frontier_to_json(manifest.frontier),
        "log": manifest.log,
        "generation": manifest.generation,
        "next_relation": manifest.next_relation,
        "relations": {name: _relation_to_json(relation) for name, relation in manifest.relations.items()},
        "applied": manifest.applied,
        "declarations": manifest.declarations,
        "readers": manifest.readers,
    }


def _from_json(written: dict[str, Any]) -> Manifest:
    return Manifest(
        number=written["number"],
        coordinates=written["coordinates"],
        frontier=frontier_from_json(written["frontier"]),
        log=written["log"],
        generation=written["generation"],
        next_relation=written["next_relation"],
        relations={name: _relation_from_json(relation) for name, relation in written["relations"].items()},
        applied=written["applied"],
        declarations=written["declarations"],
        readers=written["readers"],
    )


def _relation_to_json(relation: StoredRelation) -> dict[str, Any]:
    return {
        "id": relation.id,
        "schema": schema_to_json(relation.schema),
        "key": relation.key,
        "order": relation.order,
        "batches": [_batch_to_json(batch) for batch in relation.batches],
        "later": [_file_to_json(file) for file in relation.later],
    }


def _relation_from_json(written: dict[str, Any]) -> StoredRelation:
    return StoredRelation(
        id=written["id"],
        schema=schema_from_json(written["schema"]),
        key=tuple(written["key"]),
        order=tuple(written["order"]),
        batches=tuple(_batch_from_json(batch) for batch in written["batches"]),
        later=tuple(_file_from_json(file) for file in written["later"]),
    )


def _batch_to_json(batch: StoredBatch) -> dict[str, Any]:
    return {
        "file": _file_to_json(batch.file),
        "lower": frontier_to_json(batch.lower),
        "upper": frontier_to_json(batch.upper),
        "since": frontier_to_json(batch.since),
    }


def _batch_from_json(written: dict[str, Any]) -> StoredBatch:
    return StoredBatch(
        file=_file_from_json(written["file"]),
        lower=frontier_from_json(written["lower"]),
        upper=frontier_from_json(written["upper"]),
        since=frontier_from_json(written["since"]),
    )


def _file_to_json(file: StoredFile) -> list[Any]:
    return [file.name, file.bytes, f"{file.checksum:08x}", file.rows]


def _file_from_json(written: list[Any]) -> StoredFile:
    return StoredFile(written[0], written[1], int(written[2], 16), written[3])
