"""Signposts of a batch: which few of its rows may have a key, told by the key's first lane.

    places   where values are spread evenly: places[p] is the first row whose value >> shift is at least base + p, and
             the last is the end, so that one look tells the rows of 2^shift values
    fences   otherwise: every `FENCE_SPACING`th value, to be searched before the rows between two of them

Values are shifted before they are subtracted, and brought between the first and the last: so nothing overflows, however
far apart they are. Cost to make: one pass over the lane. Twin: kpg.testing.kernels_locate.place.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit

FENCE_SPACING = 64
FENCES = -1  # in place of a shift


@jit
def place(lane, base, shift, places):
    """Fill the places of a sorted lane; returns how many values differ, and the sum over places of the square of it."""
    place = 0
    places[0] = 0
    differing = 0
    here = 0
    squares = 0
    for i in range(len(lane)):
        new = i == 0 or lane[i] != lane[i - 1]
        at = (lane[i] >> shift) - base
        if at != place:
            squares += here * here
            here = 0
            for passed in range(place + 1, at + 1):
                places[passed] = i
            place = at
        here += new
        differing += new
    for passed in range(place + 1, len(places)):
        places[passed] = len(lane)
    return differing, squares + here * here


@inlined
def place_of(value, base, shift, top):
    """The place of a value, where `top` is base and the last place; that of the nearest value if it is beyond these."""
    return min(max(value >> shift, base), top) - base


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield place, (COLUMN, NUMBER, NUMBER, COLUMN)
