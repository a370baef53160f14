"""Exchange: which worker an update belongs to.

    owner(row)  =  hash of the key's values, modulo the number of workers

Equal keys meet on one worker. The hash is of values, not of symbol ids, so that it is the same in every process.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.schema import SYMBOLIC, Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, concatenate
from kpg.dataflow.channel import Split
from kpg.operators.linear import keep
from kpg.operators.payload import Payload, updates_of


def split_by_key(schema: Schema, key_lanes: int, symbols: Symbols) -> Split:
    """A function that cuts a payload into one part per worker, by its first lanes."""
    symbolic = tuple(schema.types[lane].kind in SYMBOLIC for lane in range(key_lanes))

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        parts: list[list[Updates]] = [[] for _ in range(peers)]
        for updates in updates_of(payload):
            owners = owners_of(updates.data, symbolic, symbols, peers)
            for peer in np.unique(owners).tolist():
                parts[peer].append(keep(updates, owners == peer))
        return [concatenate(mine) if mine else None for mine in parts]

    return split


def owners_of(data: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> Ints:
    """The worker of each row."""
    mixed = np.zeros(data.shape[1], np.uint64)
    for lane, is_symbol in enumerate(symbolic):
        values = symbols.hash_of(data[lane]) if is_symbol else data[lane]
        mixed = mix(mixed ^ values.view(np.uint64))
    return (mixed % np.uint64(peers)).astype(np.int64)


def mix(values: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Scatter bits so that near keys go to far workers (the finaliser of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
