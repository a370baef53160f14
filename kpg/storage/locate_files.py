"""Which files a place has: those of this machine, or of another filesystem that Arrow knows."""

from __future__ import annotations

import os
from typing import Any

from pyarrow import fs

from kpg.errors import Unavailable
from kpg.storage.arrow_files import ArrowFiles
from kpg.storage.file_store import Files
from kpg.storage.local_files import LocalFiles


def open_files(place: str | os.PathLike[str], filesystem: Any = None) -> Files:
    """The files of a directory: a path of this machine, a URI that Arrow knows, or a path of the given filesystem."""
    where = os.fspath(place)
    if filesystem is not None:
        return ArrowFiles(filesystem, where)
    if "://" in where:
        try:
            filesystem, where = fs.FileSystem.from_uri(where)
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot open {os.fspath(place)}", detail=str(error)) from None
        return LocalFiles(where) if isinstance(filesystem, fs.LocalFileSystem) else ArrowFiles(filesystem, where)
    return LocalFiles(where)
