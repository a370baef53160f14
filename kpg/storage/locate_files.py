"""Open the directory that a path or URI names: on this machine, or on another filesystem that Arrow supports."""

from __future__ import annotations

import os
from typing import Any

from pyarrow import fs

from kpg.errors import Unavailable
from kpg.storage.arrow_files import ArrowFiles
from kpg.storage.file_store import Files
from kpg.storage.local_files import LocalFiles


def open_files(location: str | os.PathLike[str], filesystem: Any = None) -> Files:
    """Open a directory: a path on this machine, a URI that Arrow supports, or a path on the given filesystem."""
    path = os.fspath(location)
    if filesystem is not None:
        return ArrowFiles(filesystem, path)
    if "://" in path:
        try:
            filesystem, path = fs.FileSystem.from_uri(path)
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot open {os.fspath(location)}", detail=str(error)) from None
        return LocalFiles(path) if isinstance(filesystem, fs.LocalFileSystem) else ArrowFiles(filesystem, path)
    return LocalFiles(path)
