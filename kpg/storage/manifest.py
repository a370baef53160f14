"""Manifests: what a directory holds as of a frontier, beside which only later frames of the log count.

A manifest is one line of JSON and one line with its checksum, in a file of its own number; the newest that can be read
counts. It names every file of batches with its checksum, so whatever it promises can be checked. Two are kept: should
the newest or a file of it be damaged, the one before and a longer stretch of the log give the same.
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

FORMAT, VERSION = "kpg storage", 1


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of updates: its name, size and checksum."""

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
    """A relation: its columns and key, the order of its lanes in files, its batches, and what waits for later times."""

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
    """What there is at a frontier; the log goes on with frame `log`."""

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
        """The names of all files it needs."""
        return {file.name for relation in self.relations.values() for file in relation.files}


def manifest_name(number: int) -> str:
    """What a manifest is called."""
    return f"manifest-{number:08d}.json"


def number_of(name: str) -> int | None:
    """The number of a manifest, by its name; None for other files."""
    digits = name.removeprefix("manifest-").removesuffix(".json")
    return int(digits) if name == f"manifest-{digits}.json" and digits.isdecimal() else None


def to_bytes(manifest: Manifest) -> bytes:
    """The file of a manifest."""
    body = json.dumps(_to_json(manifest), separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (body, crc32(body))


def from_bytes(data: bytes, name: str) -> Manifest:
    """The manifest of a file, if it is whole."""
    body, _, rest = data.partition(b"\n")
    if rest != b"%08x\n" % crc32(body):
        raise Corrupt(f"{name} is damaged or half written", detail="Its checksum does not fit.")
    found = json.loads(body)
    if found.get("format") != FORMAT or found.get("version") != VERSION:
        known = f"{found.get('format')!r}, version {found.get('version')}"
        raise Corrupt(f"{name} is of another version", detail=f"Found {known}; expected {FORMAT!r}, version {VERSION}.")
    return _from_json(found)


def schema_to_json(schema: Schema) -> list[list[str]]:
    """Names and types."""
    return [[name, str(type_)] for name, type_ in zip(schema.names, schema.types, strict=True)]


def schema_from_json(columns: Sequence[Sequence[str]]) -> Schema:
    """The schema of names and types."""
    return Schema(tuple(name for name, _ in columns), tuple(parse_type(type_) for _, type_ in columns))


def frontier_to_json(frontier: Frontier) -> list[list[int]]:
    """Its elements."""
    return [list(time) for time in frontier]


def frontier_from_json(elements: Sequence[Sequence[int]]) -> Frontier:
    """The frontier of some elements."""
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


def _from_json(found: dict[str, Any]) -> Manifest:
    return Manifest(
        found["number"],
        found["coordinates"],
        frontier_from_json(found["frontier"]),
        found["log"],
        found["generation"],
        found["next_relation"],
        {name: _relation_from_json(relation) for name, relation in found["relations"].items()},
        found["applied"],
        found["declarations"],
        found["readers"],
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


def _relation_from_json(found: dict[str, Any]) -> StoredRelation:
    return StoredRelation(
        found["id"],
        schema_from_json(found["schema"]),
        tuple(found["key"]),
        tuple(found["order"]),
        tuple(_batch_from_json(batch) for batch in found["batches"]),
        tuple(_file_from_json(file) for file in found["later"]),
    )


def _batch_to_json(batch: StoredBatch) -> dict[str, Any]:
    bounds = {name: frontier_to_json(getattr(batch, name)) for name in ("lower", "upper", "since")}
    return {"file": _file_to_json(batch.file), **bounds}


def _batch_from_json(found: dict[str, Any]) -> StoredBatch:
    lower, upper, since = (frontier_from_json(found[name]) for name in ("lower", "upper", "since"))
    return StoredBatch(_file_from_json(found["file"]), lower, upper, since)


def _file_to_json(file: StoredFile) -> list[Any]:
    return [file.name, file.bytes, f"{file.checksum:08x}", file.rows]


def _file_from_json(found: list[Any]) -> StoredFile:
    return StoredFile(found[0], found[1], int(found[2], 16), found[3])
