"""A social network from the csv files of LDBC's generator, with the columns of `kpg.bench.data.social_network`.

    people(directory)    of person: id, first_name, last_name, gender, birthday, place, browser, ip, created
    posts(directory)     of post: id, created, browser, language, ip, content, place
    creators(directory)  of posts: their people
    tags(directory)      of post_hasTag_tag: int64[n, 2], post and tag

The files may have any of its layouts: person_0_0.csv or Person/part-0.csv, in any subdirectory, the places of people
and the creators of posts as columns or in files of their own. People and posts are numbered from 0 in the order of
their ids; values are numbered in the order of their first occurrence, and a missing value is a value, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.bench.data.readers import read_ldbc
from kpg.bench.data.social_network import Columns
from kpg.errors import InputError, Unavailable

Column = Any  # pa.ChunkedArray, of the type in the file

HEADINGS = {  # the names of columns in some layout
    "first_name": ("firstName",),
    "last_name": ("lastName",),
    "place": ("place", "LocationCityId", "LocationCountryId"),
    "browser": ("browserUsed",),
    "ip": ("locationIP",),
    "created": ("creationDate",),
    "creator": ("creator", "CreatorPersonId"),
}
OWN_FILES = {  # columns that may be files of their own
    ("person", "place"): ("person_islocatedin_place", "person_islocatedin_city"),
    ("post", "place"): ("post_islocatedin_place", "post_islocatedin_country"),
    ("post", "creator"): ("post_hascreator_person",),
}
PEOPLE = ("first_name", "last_name", "gender", "birthday", "place", "browser", "ip", "created")
POSTS = ("created", "browser", "language", "ip", "content", "place")


def people(directory: Path) -> Columns:
    """Read the people."""
    rows = table(directory, "person")
    names = ids(rows, directory)
    columns = {column: numbered(values(directory, "person", rows, names, column)) for column in PEOPLE}
    return {"id": np.arange(len(names), dtype=np.int64), **columns}


def posts(directory: Path) -> Columns:
    """Read the posts."""
    rows = table(directory, "post")
    names = ids(rows, directory)
    columns = {column: numbered(values(directory, "post", rows, names, column)) for column in POSTS}
    return {"id": np.arange(len(names), dtype=np.int64), **columns}


def creators(directory: Path) -> Ints:
    """Read the creator of each post, numbered as in `people` and `posts`; -1 for an unknown person."""
    rows = table(directory, "post")
    creators = values(directory, "post", rows, ids(rows, directory), "creator")
    return positions(ids(table(directory, "person"), directory), creators)


def tags(directory: Path) -> Ints:
    """Read the tags of posts."""
    pairs = table(directory, "post_hastag_tag")
    post_ids, tag_ids = (pairs.column(name) for name in id_columns(pairs))
    post = positions(ids(table(directory, "post"), directory), post_ids)
    rows = np.stack([post, numbered(tag_ids)], axis=1)
    return np.unique(rows[post >= 0], axis=0)


def files(directory: Path, *tables: str) -> list[Path]:
    """Return the files of some tables."""
    if not directory.is_dir():
        raise Unavailable(f"{directory} is not a directory", hint="LDBC's generator writes one, of csv files.")
    paths = sorted(path for path in directory.rglob("*") if path.name.endswith((".csv", ".csv.gz")))
    return [path for path in paths if table_of(path) in tables]


def table_of(path: Path) -> str:
    """Return the table that a file is a part of."""
    stem = path.name.partition(".")[0]
    return path.parent.name.lower() if stem.startswith("part-") else re.sub(r"(_\d+)+$", "", stem).lower()


def table(directory: Path, *tables: str) -> pa.Table:
    """Read all parts of the first of some tables that has files."""
    for name in tables:
        parts = [read_ldbc(path) for path in files(directory, name)]
        if parts:
            return joined(directory, name, parts)
    raise InputError(f"{directory} has no file of {' or '.join(tables)}", hint=f"As {tables[0]}_0_0.csv.")


def joined(directory: Path, name: str, parts: list[pa.Table]) -> pa.Table:
    """Concatenate the parts of a table."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the files of {name} in {directory} do not fit together", detail=str(error)) from error


def ids(rows: pa.Table, directory: Path) -> Ints:
    """Return the sorted ids of a table, which is the order of its columns here."""
    if "id" not in rows.column_names:
        raise InputError(f"a file of {directory} has no column id", detail=f"Columns: {', '.join(rows.column_names)}.")
    return np.unique(rows["id"].to_numpy())


def values(directory: Path, kind: str, rows: pa.Table, names: Ints, column: str) -> Column:
    """Return a column of a table, or of its own file, in the order of ids."""
    row_ids, headings = rows["id"].to_numpy(), HEADINGS.get(column, (column,))
    present = [heading for heading in headings if heading in rows.column_names]
    if present:
        return column_of(rows, present[0]).take(first_of(row_ids, names))
    if (kind, column) not in OWN_FILES:
        raise InputError(f"the files of {kind} in {directory} have no column {' or '.join(headings)}")
    pairs = table(directory, *OWN_FILES[kind, column])
    left, right = id_columns(pairs)
    position = positions(np.asarray(pairs[left].to_numpy()), names, ordered=False)
    return column_of(pairs, right).take(pa.array(position, pa.int64(), mask=position < 0))


def column_of(rows: pa.Table, name: str) -> Column:
    """Return a column by its name."""
    return rows.column(name)


def id_columns(rows: pa.Table) -> list[str]:
    """Return the two columns of ids in a relation."""
    names = [name for name in rows.column_names if name.lower().endswith("id")]
    if len(names) < 2:
        raise InputError("a relation of LDBC has two columns of ids", detail=f"Found {', '.join(rows.column_names)}.")
    return names[:2]


def first_of(rows: Ints, names: Ints) -> Ints:
    """Return the position of the first row of each name."""
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows[order], names)], np.int64)


def positions(known: Ints, wanted: Ints | Column, ordered: bool = True) -> Ints:
    """Return the position of each wanted id among the known ids; -1 if it is not among them."""
    asked = wanted if isinstance(wanted, np.ndarray) else wanted.fill_null(-1).to_numpy()
    order = np.arange(len(known)) if ordered else np.argsort(known, kind="stable")
    position = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
    return np.where(known[order][position] == asked, order[position], -1).astype(np.int64)


def numbered(column: Column) -> Ints:
    """Return each value as its number, in the order of first occurrence; a missing value is a value, too."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), np.int64)
