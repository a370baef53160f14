"""The rows that a run of kpg.kernels.run_levels has touched, their levels, and the queue of rows to examine.

A record int64[RECORD_FIELDS] stands for one row of a derived relation:

    RELATION, CODE     the row
    BEFORE, NOW        its level before the run, and now; -1 for none
    SUSPECT_AT         the level at which it was last queued as a suspect, or -1
    CANDIDATE_AT       the level at which it is queued as a candidate, or -1
    FOLLOWING          the next record of its bucket in the index by row, `heads`

Rows without a record have the level that a table says, one row of `levels` int64[n, LEVEL_FIELDS] for each relation:

    LEVELS_BY_CODE     an array of levels indexed by code
    HASHED_LEVELS      a hash table of codes, with a level for each slot (kpg.kernels.code_sets)
    BITMAP, HASHED     a set of codes: each has level 0

The queue is a heap of (level, kind). Nothing outside these arrays changes. `state` has the counters, of which HEAP_SIZE
is that of kpg.kernels.loop_rows. Links are an index of touched rows: `links` int64[n, LINK_FIELDS] are rows of an index
(kpg.kernels.walk_rule), in buckets by index and key.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import peek, prefetch
from kpg.kernels.code_sets import WORD_SHIFT, slot_of
from kpg.kernels.example import COLUMN, Example
from kpg.kernels.example import TABLE as EXAMPLE_TABLE
from kpg.kernels.jit import inlined_in_place, jit_in_place
from kpg.kernels.loop_rows import COUNTERS as LOOP_COUNTERS
from kpg.kernels.loop_rows import push_heap

RELATION, CODE, BEFORE, NOW, SUSPECT_AT, CANDIDATE_AT, FOLLOWING = range(7)  # fields of a record
RECORD_FIELDS = 7

LEVELS_BY_CODE, HASHED_LEVELS, BITMAP, HASHED = range(4)  # kinds of tables of levels
TABLE_KIND, TABLE, MASK, LEVELS = range(4)
LEVEL_FIELDS = 4

LINK_NAME, LINK_CODE, LINK_FOLLOWING = range(3)
LINK_FIELDS = 3

ACTIVE, MOVES, MOVES_END, NAME_BITS = range(4)  # fields of the name of an index: see kpg.kernels.run_levels
NAME_FIELDS = 4

SUSPECT, CANDIDATE = 0, 1  # kinds of queue entries: of one level, suspects come first

RECORDS = LOOP_COUNTERS  # the number of records
LINKS = LOOP_COUNTERS + 1  # the number of links
RECORD_COUNTERS = LOOP_COUNTERS + 2

NONE = -1


@inlined_in_place
def stored_level(levels, relation, code):
    """Return the level of a row before the run."""
    kind, table, mask = levels[relation, TABLE_KIND], levels[relation, TABLE], levels[relation, MASK]
    if kind == LEVELS_BY_CODE:
        return peek(levels[relation, LEVELS], code)
    if kind == BITMAP:
        return ((peek(table, code >> WORD_SHIFT) >> (code & 63)) & 1) - 1
    slot = slot_of(code, mask)
    held = peek(table, slot)
    while held != code and held >= 0:
        slot = (slot + 1) & mask
        held = peek(table, slot)
    if held < 0:
        return NONE
    return peek(levels[relation, LEVELS], slot) if kind == HASHED_LEVELS else 0


@inlined_in_place
def request_level(levels, relation, code):
    """Request the memory that `stored_level` will read."""
    kind = levels[relation, TABLE_KIND]
    if kind == HASHED_LEVELS or kind == HASHED:
        slot = slot_of(code, levels[relation, MASK])
        prefetch(levels[relation, TABLE], slot)
        if kind == HASHED_LEVELS:
            prefetch(levels[relation, LEVELS], slot)


@inlined_in_place
def bucket_of_row(relation, code, heads):
    """Return the bucket of a row."""
    return (slot_of(code, heads.shape[0] - 1) + relation) & (heads.shape[0] - 1)


@inlined_in_place
def find_record(records, heads, relation, code):
    """Return the record of a row, or NONE."""
    record = heads[bucket_of_row(relation, code, heads)]
    while record >= 0 and (records[record, CODE] != code or records[record, RELATION] != relation):
        record = records[record, FOLLOWING]
    return record


@inlined_in_place
def level_of(levels, records, heads, relation, code):
    """Return the present level of a row."""
    record = find_record(records, heads, relation, code)
    return records[record, NOW] if record >= 0 else stored_level(levels, relation, code)


@inlined_in_place
def record_of(records, heads, state, relation, code, now):
    """Return the record of a row. Without one, make one: the row has level `now`."""
    record = find_record(records, heads, relation, code)
    if record >= 0:
        return record
    record = state[RECORDS]
    state[RECORDS] = record + 1
    bucket = bucket_of_row(relation, code, heads)
    records[record, RELATION] = relation
    records[record, CODE] = code
    records[record, BEFORE] = now
    records[record, NOW] = now
    records[record, SUSPECT_AT] = NONE
    records[record, CANDIDATE_AT] = NONE
    records[record, FOLLOWING] = heads[bucket]
    heads[bucket] = record
    return record


@jit_in_place
def queue_suspect(records, heap_keys, heap_slots, state, record):
    """Queue a row at its level, unless it is there."""
    level = records[record, NOW]
    if records[record, SUSPECT_AT] != level:
        records[record, SUSPECT_AT] = level
        push_heap(heap_keys, heap_slots, state, 2 * level + SUSPECT, record)


@jit_in_place
def queue_candidate(records, heap_keys, heap_slots, state, record, level):
    """Queue a row at a level, unless it is queued at that level or at a lower one."""
    queued = records[record, CANDIDATE_AT]
    if queued < 0 or queued > level:
        records[record, CANDIDATE_AT] = level
        push_heap(heap_keys, heap_slots, state, 2 * level + CANDIDATE, record)


@jit_in_place
def index_records(records, heads, state):
    """Fill an empty index by row with all records."""
    for record in range(state[RECORDS]):
        bucket = bucket_of_row(records[record, RELATION], records[record, CODE], heads)
        records[record, FOLLOWING] = heads[bucket]
        heads[bucket] = record


@inlined_in_place
def bucket_of_link(name, key, link_heads):
    """Return the bucket of the links of a key."""
    return (slot_of(key, link_heads.shape[0] - 1) + name) & (link_heads.shape[0] - 1)


@jit_in_place
def add_link(links, link_heads, state, name, code, value_bits):
    """Link a row of an index."""
    link = state[LINKS]
    state[LINKS] = link + 1
    bucket = bucket_of_link(name, code >> value_bits, link_heads)
    links[link, LINK_NAME] = name
    links[link, LINK_CODE] = code
    links[link, LINK_FOLLOWING] = link_heads[bucket]
    link_heads[bucket] = link


@jit_in_place
def index_links(names, links, link_heads, state):
    """Fill empty buckets with all links, oldest first, so that the rest of each chain stays the same."""
    for link in range(state[LINKS]):
        name = links[link, LINK_NAME]
        bucket = bucket_of_link(name, links[link, LINK_CODE] >> names[name, NAME_BITS], link_heads)
        links[link, LINK_FOLLOWING] = link_heads[bucket]
        link_heads[bucket] = link


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield index_records, (EXAMPLE_TABLE, COLUMN, COLUMN)
    yield index_links, (EXAMPLE_TABLE, EXAMPLE_TABLE, COLUMN, COLUMN)
