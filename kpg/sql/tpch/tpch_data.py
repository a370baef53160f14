"""The data of TPC-H, made by `tpchgen-cli` as Parquet files and kept by scale factor.

    load_tables(0.01)                                   all tables
    load_tables(1, {"orders": ["o_orderkey"]})          some columns of some tables

The files are in $KPG_CACHE_DIR, or in the user's cache directory. Scale factor 1 takes some seconds to make and 0.3 GB.
The rows are the same on every machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from kpg.errors import Unavailable
from kpg.sql.tpch.tpch_tables import COLUMNS


def load_tables(scale_factor: float, columns: Mapping[str, Iterable[str]] | None = None) -> dict[str, pa.Table]:
    """Return Arrow tables at a scale factor: all of them, or some columns of some."""
    from pyarrow import parquet

    directory = tpch_directory(scale_factor)
    wanted = columns if columns is not None else COLUMNS
    read = {name: parquet.read_table(directory / f"{name}.parquet", columns=list(wanted[name])) for name in wanted}
    return {name: with_plain_text(table) for name, table in read.items()}


def with_plain_text(table: pa.Table) -> pa.Table:
    """Return a table whose text columns have Arrow's usual type, which every reader knows."""
    text = [
        pa.field(field.name, pa.string() if field.type == pa.string_view() else field.type) for field in table.schema
    ]
    return table.cast(pa.schema(text))


def tpch_directory(scale_factor: float) -> Path:
    """Return the directory of the Parquet files at a scale factor; make them if they are not there."""
    directory = cache_directory() / f"tpch-{scale_factor:g}"
    if not directory.exists():
        generate(scale_factor, directory)
    return directory


def cache_directory() -> Path:
    """Return the directory that keeps generated data."""
    if chosen := os.environ.get("KPG_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kpg"


def generate(scale_factor: float, directory: Path) -> None:
    """Make the files in a temporary directory, then rename it, so that no reader meets half of them."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="tpch-", dir=directory.parent))
    try:
        words = [generator(), "parquet", "-s", f"{scale_factor:g}", "--output-dir", str(making), "--quiet"]
        subprocess.run(words, check=True, capture_output=True)
        making.rename(directory)
    except OSError:
        if not directory.exists():  # else another process was first
            raise
    except subprocess.CalledProcessError as error:
        raise Unavailable("tpchgen-cli could not make data", detail=error.stderr.decode(errors="replace")) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def generator() -> str:
    """Return the path of the program that makes the data."""
    for directory in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        if path := shutil.which("tpchgen-cli", path=directory):
            return path
    if path := shutil.which("tpchgen-cli"):
        return path
    raise Unavailable("data of TPC-H needs the program tpchgen-cli", hint="pip install 'kpg[bench]'")
