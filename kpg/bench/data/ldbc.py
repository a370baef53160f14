"""A social network from the csv files of LDBC's generator, in the columns of `kpg.bench.data.social`.

    people(directory)    of person: id, first_name, last_name, gender, birthday, place, browser, ip, created
    posts(directory)     of post: id, created, browser, language, ip, content, place
    creators(directory)  of posts: their people
    tags(directory)      of post_hasTag_tag: int64[n, 2], post and tag

Files may be those of any of its layouts: person_0_0.csv or Person/part-0.csv, in any directory below, the places of
people and the creators of posts as columns or in files of their own. People and posts are numbers, from 0 in the order
of their ids; so are all values, in the order they come first, and one that is missing is a value too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.bench.data.readers import read_ldbc
from kpg.bench.data.social import Columns
from kpg.errors import InputError, Unavailable

Column = Any  # pa.ChunkedArray, of whatever type the file has

HEADINGS = {  # what columns are called in some layout
    "first_name": ("firstName",),
    "last_name": ("lastName",),
    "place": ("place", "LocationCityId", "LocationCountryId"),
    "browser": ("browserUsed",),
    "ip": ("locationIP",),
    "created": ("creationDate",),
    "creator": ("creator", "CreatorPersonId"),
}
BESIDE = {  # columns that may be files of their own
    ("person", "place"): ("person_islocatedin_place", "person_islocatedin_city"),
    ("post", "place"): ("post_islocatedin_place", "post_islocatedin_country"),
    ("post", "creator"): ("post_hascreator_person",),
}
PEOPLE = ("first_name", "last_name", "gender", "birthday", "place", "browser", "ip", "created")
POSTS = ("created", "browser", "language", "ip", "content", "place")


def people(directory: Path) -> Columns:
    """The people."""
    found = table(directory, "person")
    names = ids(found, directory)
    columns = {each: numbered(values(directory, "person", found, names, each)) for each in PEOPLE}
    return {"id": np.arange(len(names), dtype=np.int64), **columns}


def posts(directory: Path) -> Columns:
    """The posts."""
    found = table(directory, "post")
    names = ids(found, directory)
    columns = {each: numbered(values(directory, "post", found, names, each)) for each in POSTS}
    return {"id": np.arange(len(names), dtype=np.int64), **columns}


def creators(directory: Path) -> Ints:
    """The creator of each post, as `people` and `posts` number them; -1 if they are not there."""
    found = table(directory, "post")
    written = values(directory, "post", found, ids(found, directory), "creator")
    return positions(ids(table(directory, "person"), directory), written)


def tags(directory: Path) -> Ints:
    """The tags of posts."""
    found = table(directory, "post_hastag_tag")
    pair = [found.column(each) for each in ends(found)]
    at = positions(ids(table(directory, "post"), directory), pair[0])
    rows = np.stack([at, numbered(pair[1])], axis=1)
    return np.unique(rows[at >= 0], axis=0)


def files(directory: Path, *tables: str) -> list[Path]:
    """The files of some tables."""
    if not directory.is_dir():
        raise Unavailable(f"{directory} is not a directory", hint="LDBC's generator writes one, of csv files.")
    there = sorted(path for path in directory.rglob("*") if path.name.endswith((".csv", ".csv.gz")))
    return [path for path in there if table_of(path) in tables]


def table_of(path: Path) -> str:
    """Which table a file is a part of."""
    stem = path.name.partition(".")[0]
    return path.parent.name.lower() if stem.startswith("part-") else re.sub(r"(_\d+)+$", "", stem).lower()


def table(directory: Path, *tables: str) -> pa.Table:
    """All parts of the first of some tables that is there."""
    for name in tables:
        parts = [read_ldbc(path) for path in files(directory, name)]
        if parts:
            return joined(directory, name, parts)
    raise InputError(f"{directory} has no file of {' or '.join(tables)}", hint=f"As {tables[0]}_0_0.csv.")


def joined(directory: Path, name: str, parts: list[pa.Table]) -> pa.Table:
    """The parts of a table, one after the other."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the files of {name} in {directory} do not fit together", detail=str(error)) from error


def ids(found: pa.Table, directory: Path) -> Ints:
    """The sorted ids of a table; its rows are in that order from here on."""
    if "id" not in found.column_names:
        raise InputError(f"a file of {directory} has no column id", detail=f"Columns: {', '.join(found.column_names)}.")
    return np.unique(found["id"].to_numpy())


def values(directory: Path, kind: str, found: pa.Table, names: Ints, column: str) -> Column:
    """A column of a table, or of the file beside it, in the order of ids."""
    own, wanted = found["id"].to_numpy(), HEADINGS.get(column, (column,))
    at = [each for each in wanted if each in found.column_names]
    if at:
        return column_of(found, at[0]).take(first_of(own, names))
    if (kind, column) not in BESIDE:
        raise InputError(f"the files of {kind} in {directory} have no column {' or '.join(wanted)}")
    beside = table(directory, *BESIDE[kind, column])
    left, right = ends(beside)
    place = positions(np.asarray(beside[left].to_numpy()), names, ordered=False)
    return column_of(beside, right).take(pa.array(place, pa.int64(), mask=place < 0))


def column_of(found: pa.Table, name: str) -> Column:
    """A column by its name."""
    return found.column(name)


def ends(found: pa.Table) -> list[str]:
    """The two columns of a relation: those that are ids."""
    named = [each for each in found.column_names if each.lower().endswith("id")]
    if len(named) < 2:
        raise InputError("a relation of LDBC has two columns of ids", detail=f"Found {', '.join(found.column_names)}.")
    return named[:2]


def first_of(rows: Ints, names: Ints) -> Ints:
    """Where each name is first among some rows."""
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows[order], names)], np.int64)


def positions(known: Ints, wanted: Ints | Column, ordered: bool = True) -> Ints:
    """Where each of some ids is among those that are known; -1 if it is not."""
    asked = wanted if isinstance(wanted, np.ndarray) else wanted.fill_null(-1).to_numpy()
    order = np.arange(len(known)) if ordered else np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
    return np.where(known[order][at] == asked, order[at], -1).astype(np.int64)


def numbered(column: Column) -> Ints:
    """Each value as its number among the different ones, in the order they come first; none is a value too."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), np.int64)
