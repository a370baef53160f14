"""Compute reductions in parts of some keys each, with pauses between the parts.

    correct_in_parts(tactic, task)  ==  tactic.correct(task)
    concatenate(parts_by_key(u))    ==  u, and all updates of a key are in one part

Keys do not affect each other. Only a computation that may pause is cut (kpg.columns.pause_points).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kpg.columns.pause_points import aside, part_of, pause
from kpg.columns.selection import slice_updates
from kpg.columns.updates import Updates, spread
from kpg.operators.correction_columns import Corrections
from kpg.operators.tactic import ReduceResult, ReduceTask, Tactic
from kpg.trace.batch import may_leave_64_bits

KEYS_PER_PAUSE = 1 << 13  # a millisecond of work or two; keys with long histories take longer
KEYS_PER_INTERRUPT = 1 << 18  # where only Ctrl-C ends the computation: some ten milliseconds
ROWS_PER_PART = 1 << 15
ROWS_PER_INTERRUPT = 1 << 20  # the same; the corrections of the parts are copied together, so they are few


def correct_in_parts(tactic: Tactic, task: ReduceTask) -> ReduceResult:
    """Return the corrections of a task."""
    count = task.keys.shape[1]
    size = part_of(count, KEYS_PER_PAUSE, KEYS_PER_INTERRUPT)
    if count <= size:
        return tactic.correct(task)
    if may_leave_64_bits(task.inputs) or may_leave_64_bits(task.outputs):  # diffs of parts may differ in their form
        return tactic.correct(task)
    results: list[tuple[int, ReduceResult]] = []
    for start in range(0, count, size):
        part = keys_between(task, start, min(start + size, count))
        results.append((start, tactic.correct(part)))
        pause()
    return aside(len(task.keys) * count, joined_results, results)


def keys_between(task: ReduceTask, start: int, stop: int) -> ReduceTask:
    """Return the task restricted to a range of its keys."""
    offsets = task.offsets[start : stop + 1]
    seeds = task.seeds
    if seeds.shape[1] > 1:
        seeds = np.ascontiguousarray(seeds[:, int(offsets[0]) : int(offsets[-1])])
    keys = np.ascontiguousarray(task.keys[:, start:stop])
    return replace(task, keys=keys, offsets=offsets - offsets[0], seeds=seeds)


def joined_results(results: list[tuple[int, ReduceResult]]) -> ReduceResult:
    """Return the results of consecutive ranges of keys as one, given the first key of each range."""
    corrections = [(start, result.corrections) for start, result in results]
    joined = Corrections(
        np.concatenate([start + part.key_index for start, part in corrections]),
        np.concatenate([part.data for _, part in corrections], axis=1),
        np.concatenate([spread(part.times, len(part)) for _, part in corrections], axis=1),
        np.concatenate([spread(part.diffs, len(part)) for _, part in corrections], axis=1),
    )
    pending_keys = np.concatenate([start + result.pending_keys for start, result in results])
    pending_times = np.concatenate([result.pending_times for _, result in results], axis=1)
    return ReduceResult(joined, pending_keys, np.ascontiguousarray(pending_times))


def parts_by_key(updates: Updates, key_lanes: int) -> Iterator[Updates]:
    """Yield sorted updates in parts of a bounded number of rows that end with a key; pause after each."""
    start, rows = 0, len(updates)
    size = part_of(rows, ROWS_PER_PART, ROWS_PER_INTERRUPT)
    if rows <= size:
        yield updates
        return
    while start < rows:
        stop = key_end(updates, key_lanes, min(start + size, rows))
        yield slice_updates(updates, start, stop)
        start = stop
        pause()


def key_end(updates: Updates, key_lanes: int, stop: int) -> int:
    """Return the first row at or after `stop` that begins a key."""
    keys, rows, window = updates.data[:key_lanes], len(updates), 1
    while stop < rows:
        end = min(rows, stop + window)
        differs = (keys[:, stop:end] != keys[:, stop - 1 : stop]).any(axis=0)
        if differs.any():
            return stop + int(np.argmax(differs))
        stop, window = end, 2 * window
    return rows
