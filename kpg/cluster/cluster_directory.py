"""The directory of a durable cluster: a part for each rank, and a note of how many there are.

place/cluster.json     workers, written once; a lock while a client has it open
place/rank-0, rank-1   what each rank keeps (see kpg.storage)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kpg.errors import Corrupt, ProgramError, SchemaMismatch, Unavailable
from kpg.storage.lock import Lock
from kpg.storage.transaction_log import Durability

NOTE = "cluster.json"


class ClusterDirectory:
    """A place that ranks keep their rows in."""

    def __init__(self, place: str, durability: Durability, checkpoint_bytes: int) -> None:
        self.place = place
        self.durability = durability
        self.checkpoint_bytes = checkpoint_bytes
        self._lock: Lock | None = None

    def claim(self, workers: int, coordinates: int) -> None:
        """Make sure that this place is for so many workers, and that nobody else has it open."""
        if coordinates != 1:
            raise ProgramError("workers on a directory have times of one coordinate")
        root = Path(self.place)
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(str(root))
            note = root / NOTE
            if not note.exists():
                if any(each.name.startswith("manifest-") for each in root.iterdir()):
                    raise SchemaMismatch(
                        f"{self.place} is the directory of a db without workers", hint="Open it without workers=."
                    )
                temporary = root / f"{NOTE}.new"
                temporary.write_text(json.dumps({"format": "kpg cluster", "version": 1, "workers": workers}))
                os.replace(temporary, note)
            found = json.loads(note.read_text())
        except OSError as error:
            raise Unavailable(f"cannot open {self.place}", detail=str(error)) from None
        except ValueError as error:
            raise Corrupt(f"{self.place}/{NOTE} is damaged", detail=str(error)) from None
        if found.get("workers") != workers:
            raise SchemaMismatch(
                f"{self.place} belongs to {found.get('workers')} workers, not {workers}",
                hint=f"Open it with workers={found.get('workers')}.",
            )

    def leave(self) -> None:
        """Let others open it; may be repeated."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def home_of(place: Any, filesystem: Any, durability: Durability, checkpoint_bytes: int) -> ClusterDirectory | None:
    """The home that someone asked for; None for a cluster that keeps nothing."""
    if place is None:
        return None
    path = os.fspath(place)
    if filesystem is not None or "://" in path:
        raise ProgramError(
            "workers keep their rows in a directory that they all see, given by its path",
            hint="Mount it, or open the db without workers=.",
        )
    return ClusterDirectory(os.path.abspath(path), durability, checkpoint_bytes)
