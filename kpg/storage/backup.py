"""Copies of a db's directory, also while a process uses it: `kpg backup` makes one, `kpg restore` copies it back.

    copy_db(source, target)     every transaction acknowledged before the call is in the copy, and none in part

A copy is what a crash at some moment would leave, checked file by file. Batch files and manifests never change, and the
log only grows, so a copy needs no lock and delays no client: the manifests, the files that they name, then the log from
there on. The note of the log's end comes first, because it is never ahead of the log. If a checkpoint removes a file
meanwhile, the copy starts again from the newer manifest. The end of the log may be read while it is written; a frame
that is not whole is cut off, as at recovery. The parts of several workers are copied one after the other; recovery then
agrees on the transactions that all of them have, as after a loss.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from shutil import rmtree
from typing import Final, TypeVar
from zlib import crc32

from kpg.algebra.frontier import Frontier
from kpg.errors import Corrupt, InputError, Unavailable
from kpg.storage import log_end
from kpg.storage.directory import Directory
from kpg.storage.file_store import unavailable_on_error
from kpg.storage.framing import scan_segment
from kpg.storage.local_files import CLUSTER_NOTE, LocalFiles, make_private_directory, open_private
from kpg.storage.lock import Lock
from kpg.storage.manifest import Manifest, StoredFile, from_bytes, manifest_name, manifest_number
from kpg.storage.transaction_log import first_frame_of, segment_name

Result = TypeVar("Result")
MAX_ATTEMPTS: Final = 20  # a checkpoint that ends while files are copied costs one


@dataclass(frozen=True, slots=True)
class DirectoryCopy:
    """A finished copy: the frontier that it is complete up to, its files and bytes, and its manifests' frontiers."""

    frontier: Frontier
    files: int
    bytes: int
    checkpoints: frozenset[Frontier]


class FileGone(Exception):
    """Raised when a checkpoint has removed a file that was to be copied."""


def copy_db(source: Path, target: Path) -> DirectoryCopy:
    """Copy the directory of a db, of one worker or of several, to a new or empty directory."""
    if not source.is_dir():
        raise Unavailable(f"there is no directory {source}")
    if target.exists() and any(target.iterdir()):
        raise InputError(f"{target} is not empty", hint="Choose a new directory.")
    ranks = sorted(path for path in source.glob("rank-*") if path.is_dir())
    if not (source / CLUSTER_NOTE).exists():
        return retried(lambda: copy_directory(source, target))
    root = Path(make_private_directory(str(target)))
    copy = retried(lambda: copy_ranks(ranks, root))
    note = (source / CLUSTER_NOTE).read_bytes()
    with unavailable_on_error(f"cannot write {root}"), open(root / CLUSTER_NOTE, "wb", opener=open_private) as file:
        file.write(note)  # last: without it, the copy is not a db
        os.fsync(file.fileno())
    return copy


def retried(copy: Callable[[], Result]) -> Result:
    """Call a function again while files vanish that it copies."""
    for _ in range(MAX_ATTEMPTS):
        try:
            return copy()
        except FileGone as error:
            last = error
    raise Unavailable("checkpoints removed files faster than they could be copied", detail=str(last))


def copy_ranks(ranks: list[Path], root: Path) -> DirectoryCopy:
    """Copy the parts of all workers, such that they have a checkpoint in common that all can recover from."""
    copies = [copy_directory(rank, root / rank.name) for rank in ranks]
    if not copies:
        raise Corrupt(f"{root} would have no part of a worker")
    frontier = reduce(Frontier.meet, [copy.frontier for copy in copies])
    shared = frozenset.intersection(*[copy.checkpoints for copy in copies])
    if not any(checkpoint.precedes(frontier) for checkpoint in shared):
        raise FileGone("the workers' last common checkpoint")
    return DirectoryCopy(frontier, sum(copy.files for copy in copies), sum(copy.bytes for copy in copies), shared)


def copy_directory(source: Path, target: Path) -> DirectoryCopy:
    """Copy the directory of one worker."""
    if target.exists():
        rmtree(target)  # of an earlier attempt
    end = read_if_present(source / log_end.NAME)
    manifests = read_manifests(source)
    files = {file.name: file for manifest in manifests for file in files_of(manifest)}
    copied: dict[str, bytes] = {} if end is None else {log_end.NAME: end}
    copied |= copied_log(source, min(manifest.log for manifest in manifests))
    store = LocalFiles(str(target))
    try:
        for name, file in files.items():
            data = read_checked(source / name, file)
            store.write(name, [data])
        for name, data in copied.items():
            store.write(name, [data])
        for manifest in manifests:
            store.write(manifest_name(manifest.number), [read(source / manifest_name(manifest.number))])
        directory = Directory(store, manifests[0].coordinates)
        frontier, checkpoints = directory.durable_frontier(), frozenset(directory.checkpoints())
    finally:
        store.close()
        (target / Lock.NAME).unlink(missing_ok=True)
    total = sum(file.bytes for file in files.values()) + sum(map(len, copied.values()))
    return DirectoryCopy(frontier, len(files) + len(copied) + len(manifests), total, checkpoints)


def read_manifests(source: Path) -> list[Manifest]:
    """Return the readable manifests of a directory, newest first; raise if there is none."""
    numbers = sorted((number for name in names(source) if (number := manifest_number(name)) is not None), reverse=True)
    manifests: list[Manifest] = []
    errors: list[Corrupt] = []
    for number in numbers:
        path = source / manifest_name(number)
        try:
            manifests.append(from_bytes(read(path), str(path)))
        except Corrupt as error:
            errors.append(error)
    if not manifests:
        raise errors[0] if errors else Unavailable(f"{source} is not a db", hint="Name the directory of kpg.open().")
    return manifests


def files_of(manifest: Manifest) -> list[StoredFile]:
    """Return all batch files that a manifest names."""
    return [file for relation in manifest.relations.values() for file in relation.files]


def copied_log(source: Path, first: int) -> dict[str, bytes]:
    """Return the segments from frame `first` on, by name, without what is not whole at the end."""
    numbers = sorted(number for name in names(source) if (number := first_frame_of(name)) is not None)
    older = [number for number in numbers if number <= first]
    needed = numbers[max(0, len(older) - 1) :]
    return {segment_name(number): read_segment(source, number, last=number == needed[-1]) for number in needed}


def read_segment(source: Path, number: int, last: bool) -> bytes:
    """Return the whole frames of a segment. The last one may grow while it is read: then it is read again."""
    path = source / segment_name(number)
    for attempt in range(MAX_ATTEMPTS):
        data = read(path)
        try:
            return data[: scan_segment(data, str(path), number, last).end]
        except Corrupt:
            if not last or attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def read_checked(path: Path, file: StoredFile) -> bytes:
    """Return the content of a batch file; raise if it is not what the manifest says."""
    data = read(path)
    if len(data) != file.bytes or crc32(data) != file.checksum:
        raise Corrupt(f"{path} is damaged", detail="Its size or checksum does not fit the manifest.")
    return data


def names(source: Path) -> list[str]:
    """Return the names of the files in a directory."""
    with unavailable_on_error(f"cannot list {source}"):
        return os.listdir(source)


def read(path: Path) -> bytes:
    """Return the content of a file; raise FileGone if it does not exist."""
    with unavailable_on_error(f"cannot read {path}"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise FileGone(str(path)) from None


def read_if_present(path: Path) -> bytes | None:
    """Return the content of a file, None if there is no such file."""
    try:
        return read(path)
    except FileGone:
        return None
