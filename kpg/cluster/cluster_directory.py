"""The directory of a durable cluster: a part for each rank, and a note of the number of workers.

path/cluster.json     the number of workers, written once; locked while a coordinator has the directory open
path/rank-0, rank-1   the storage of each rank (see kpg.storage)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kpg.errors import Corrupt, ProgramError, SchemaMismatch, Unavailable
from kpg.storage.local_files import CLUSTER_NOTE, make_private_directory, open_private
from kpg.storage.lock import Lock
from kpg.storage.transaction_log import Durability


class ClusterDirectory:
    """The directory in which ranks keep their rows."""

    def __init__(self, path: str, durability: Durability, checkpoint_bytes: int) -> None:
        self.path = path
        self.durability = durability
        self.checkpoint_bytes = checkpoint_bytes
        self._lock: Lock | None = None

    def claim(self, workers: int, coordinates: int) -> None:
        """Lock the directory and check that it belongs to this number of workers; create it if needed."""
        if coordinates != 1:
            raise ProgramError("workers on a directory have times of one coordinate")
        root = Path(make_private_directory(self.path))
        try:
            self._lock = Lock(str(root))
            note = root / CLUSTER_NOTE
            if not note.exists():
                if any(file.name.startswith("manifest-") for file in root.iterdir()):
                    raise SchemaMismatch(
                        f"{self.path} is the directory of a db without workers",
                        hint="Open it without workers=, or without kpg serve --workers.",
                    )
                temporary = root / f"{CLUSTER_NOTE}.new"
                with open(temporary, "w", opener=open_private) as file:
                    file.write(json.dumps({"format": "kpg cluster", "version": 1, "workers": workers}))
                os.replace(temporary, note)
            written = json.loads(note.read_text())
        except OSError as error:
            raise Unavailable(f"cannot open {self.path}", detail=str(error)) from None
        except ValueError as error:
            raise Corrupt(f"{self.path}/{CLUSTER_NOTE} is damaged", detail=str(error)) from None
        if written.get("workers") != workers:
            raise SchemaMismatch(
                f"{self.path} belongs to {written.get('workers')} workers, not {workers}",
                hint=f"Open it with workers={written.get('workers')}, or kpg serve --workers {written.get('workers')}.",
            )

    def release(self) -> None:
        """Release the lock; may be repeated."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def directory_of(
    directory: Any, filesystem: Any, durability: Durability, checkpoint_bytes: int
) -> ClusterDirectory | None:
    """Return the directory that a caller of `kpg.open` names; None for a cluster in memory."""
    if directory is None:
        return None
    path = os.fspath(directory)
    if filesystem is not None or "://" in path:
        raise ProgramError(
            "workers keep their rows in a directory that they all see, given by its path",
            hint="Mount it, or open the db without workers=.",
        )
    return ClusterDirectory(os.path.abspath(path), durability, checkpoint_bytes)
