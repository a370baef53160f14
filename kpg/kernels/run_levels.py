"""Run a change of a recursion level by level, or the last rounds of a first load, row by row.

    run_levels(tables, records, state)   processes suspects and candidates in ascending order of levels

This is `kpg.seminaive.level_update` for few rows, and keeps its definitions. A suspect of level k keeps its level if
its insertion from outside or a body supports it. Else the rows that follow from it become suspects, and it becomes a
candidate for the next level with a support. A candidate for level k gets that level if a support exists, and the rows
that follow from it become candidates. When the kernel reaches a level, all lower levels are final.

With DERIVES = 1, candidates get their level unseen, as in a first load: nothing is ever lost.

The rows to begin with are `starts` int64[n, START_FIELDS]. A start with ACTION

    LOSE       is a row of a relation that rules read, with a path: what follows from it may be lost
    GAIN       the same: what follows from it may be added
    DOUBT      is a derived row with a level: a suspect, if it has that level
    PROPOSE    is a derived row with a level: a candidate, unless it has a lower one
    BEGIN      is a derived row that is in the set already, but that no rule has seen: it gets that level

Rules are tables (kpg.kernels.walk_rule). `relations` int64[derived, RELATION_FIELDS] has the paths of each derived
relation and its indexes, rows of `names` int64[n, NAME_FIELDS]: whether they are ACTIVE, and as terms the columns of a
row: its lowest bit in the row, its mask, and (as REGISTER) its lowest bit in the index.

The heads of solutions are `held` until there are MAX_HELD of them or the level ends, so that the waits for the memory
of their levels overlap.

Outcomes: DONE; PAUSED, GROW and NEEDS_INDEX, after which the caller may go on; LARGE at the beginning of a level with
too many rows, TOO_MANY_ROUNDS. Nothing but the arrays of the run has changed then, so the caller may also forget it.
Cost: a few tens of nanoseconds for each row that a join tries. Twin: `kpg.seminaive.level_update.LevelUpdate`.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import inlined_in_place, jit_in_place
from kpg.kernels.level_records import (
    ACTIVE,
    BEFORE,
    CANDIDATE,
    CANDIDATE_AT,
    CODE,
    LINKS,
    MOVES,
    MOVES_END,
    NAME_BITS,
    NONE,
    NOW,
    RECORDS,
    RELATION,
    SUSPECT,
    add_link,
    find_record,
    level_of,
    queue_candidate,
    queue_suspect,
    record_of,
    request_level,
    stored_level,
)
from kpg.kernels.loop_rows import HEAP_SIZE, pop_heap
from kpg.kernels.walk_rule import (
    EXHAUSTED,
    FOUND,
    HEAD,
    HEAD_END,
    HEAD_RELATION,
    LEVEL,
    LIMIT,
    NEEDS_INDEX,
    PATH,
    PAUSED,
    REGISTER,
    SHIFT,
    STEP,
    STEP_END,
    VISITED,
    WALK_COUNTERS,
    WIDTH_MASK,
    begin_walk,
    code_of,
    next_solution,
    request_support,
)

assert (FOUND, EXHAUSTED, PAUSED, NEEDS_INDEX) == (0, 1, 2, 3)
DONE, GROW, LARGE, TOO_MANY_ROUNDS = range(4, 8)  # outcomes, beside PAUSED and NEEDS_INDEX

ACTION, START_PATH, START_CODE, START_LEVEL = range(4)  # START_PATH is the relation if the row is derived
START_FIELDS = 4
LOSE, GAIN, DOUBT, PROPOSE, BEGIN, SUPPORT = range(6)  # actions; SUPPORT only while the kernel examines a row

FORWARD, FORWARD_END, BACKWARD, BACKWARD_END, NAMES, NAMES_END = range(6)  # fields of a relation
RELATION_FIELDS = 6

STAGE = WALK_COUNTERS
MODE, RECORD, ROW_KIND, LEVEL_NOW, BEST, NEXT_PATH, END_PATH, NEXT_START, AFTER = range(STAGE + 1, STAGE + 10)
DERIVES, ONLY_STARTS, ROUNDS, MAX_ROUNDS, HAS_ROUND, CHANGED, MAX_QUEUED, MAX_RECORDS = range(STAGE + 10, STAGE + 18)
HELD, LEVELS_SEEN = STAGE + 18, STAGE + 19
COUNTERS = STAGE + 20

HELD_MODE, HELD_RELATION, HELD_CODE, HELD_LEVEL = range(4)  # fields of a head that is held
HELD_FIELDS = 4
MAX_HELD = 32  # heads of which the memory is requested before the first of them is taken

STARTS, NEXT_ROW, BACK, FORTH, WALK = range(5)  # stages
NEVER = 1 << 62  # a level above all others
SPARE = MAX_HELD + 2  # records and queue entries that a step may add


@jit_in_place
def link_row(relations, names, terms, links, link_heads, state, relation, code, only):
    """Link a row in the active indexes of its relation, or in `only` one."""
    for name in range(relations[relation, NAMES], relations[relation, NAMES_END]):
        if names[name, ACTIVE] == 0 or (only >= 0 and only != name):
            continue
        moved = 0
        for term in range(names[name, MOVES], names[name, MOVES_END]):
            moved |= ((code >> terms[term, SHIFT]) & terms[term, WIDTH_MASK]) << terms[term, REGISTER]
        add_link(links, link_heads, state, name, moved, names[name, NAME_BITS])


@jit_in_place
def link_rows(relations, names, terms, records, links, link_heads, state, name):
    """Link all rows that the run has added in an index that has become active."""
    for record in range(state[RECORDS]):
        if records[record, BEFORE] < 0 and records[record, NOW] >= 0:
            link_row(
                relations, names, terms, links, link_heads, state, records[record, RELATION], records[record, CODE],
                name,
            )  # fmt: skip


@jit_in_place
def take_start(levels, records, heads, heap_keys, heap_slots, state, action, relation, code, level):
    """Queue a derived row."""
    if action == BEGIN:
        now = NONE
    else:
        now = level_of(levels, records, heads, relation, code)
        if (action == DOUBT and now != level) or (action == PROPOSE and 0 <= now <= level):
            return
    record = record_of(records, heads, state, relation, code, now)
    if action == DOUBT:
        queue_suspect(records, heap_keys, heap_slots, state, record)
    else:
        queue_candidate(records, heap_keys, heap_slots, state, record, level)


@inlined_in_place
def hold_head(paths, terms, levels, held, registers, state, level):
    """Hold the head of a solution, which has at most a level by it, until the memory of its level has arrived."""
    path = state[PATH]
    relation = paths[path, HEAD_RELATION]
    code = code_of(terms, paths[path, HEAD], paths[path, HEAD_END], registers)
    request_level(levels, relation, code)
    place = state[HELD]
    state[HELD] = place + 1
    held[place, HELD_MODE], held[place, HELD_RELATION] = state[MODE], relation
    held[place, HELD_CODE], held[place, HELD_LEVEL] = code, level


@jit_in_place
def take_heads(levels, records, heads, heap_keys, heap_slots, held, state):
    """Queue all heads that are held."""
    for place in range(state[HELD]):
        take_head(
            levels, records, heads, heap_keys, heap_slots, state, held[place, HELD_MODE], held[place, HELD_RELATION],
            held[place, HELD_CODE], held[place, HELD_LEVEL],
        )  # fmt: skip
    state[HELD] = 0


@inlined_in_place
def take_head(levels, records, heads, heap_keys, heap_slots, state, mode, relation, code, level):
    """Queue the head of a solution, which has at most a level by it."""
    record = find_record(records, heads, relation, code)
    now = records[record, NOW] if record >= 0 else stored_level(levels, relation, code)
    if mode == LOSE:
        # The head has a higher level than its body gives if other rows of the body got lower levels in this run, and
        # the head, which waits for its own, still has the level that it had by them.
        if now >= level:
            record = record_of(records, heads, state, relation, code, now)
            queue_suspect(records, heap_keys, heap_slots, state, record)
    elif now < 0 or now > level:
        record = record_of(records, heads, state, relation, code, now)
        queue_candidate(records, heap_keys, heap_slots, state, record, level)


@jit_in_place
def next_start(paths, terms, levels, records, heads, heap_keys, heap_slots, registers, cursor, starts, state):
    """Process the next start: queue a derived row, or begin to walk from a row that rules read."""
    at = state[NEXT_START]
    state[NEXT_START] = at + 1
    action, code = starts[at, ACTION], starts[at, START_CODE]
    if action > GAIN:
        take_start(
            levels, records, heads, heap_keys, heap_slots, state, action, starts[at, START_PATH], code,
            starts[at, START_LEVEL],
        )  # fmt: skip
    elif begin_walk(paths, terms, registers, cursor, state, starts[at, START_PATH], code, NONE):
        state[MODE], state[LIMIT] = action, NEVER
        state[STAGE], state[AFTER] = WALK, STARTS


@jit_in_place
def begin_forward(relations, state, relation, mode):
    """Let all paths forward from the row that is examined follow."""
    state[NEXT_PATH], state[END_PATH] = relations[relation, FORWARD], relations[relation, FORWARD_END]
    state[MODE], state[STAGE] = mode, FORTH


@jit_in_place
def set_level(relations, names, terms, records, links, link_heads, state, record):
    """Give a row the level of the queue, and let the rows that follow from it become candidates."""
    relation = records[record, RELATION]
    if records[record, NOW] < 0 and records[record, BEFORE] < 0:
        link_row(relations, names, terms, links, link_heads, state, relation, records[record, CODE], NONE)
    records[record, NOW] = state[LEVEL_NOW]
    state[CHANGED] += 1
    begin_forward(relations, state, relation, GAIN)


@jit_in_place
def next_row_of_queue(
    paths, steps, terms, relations, names, levels, indexes, runs, records, links, link_heads, heap_keys, heap_slots,
    registers, state,
):  # fmt: skip
    """Take the next row of the queue. Return FOUND, or an outcome if there is none, or it must not be taken."""
    if state[HEAP_SIZE] == 0:
        return DONE
    level, kind = heap_keys[0] >> 1, heap_keys[0] & 1
    if level != state[LEVEL_NOW]:
        if state[HEAP_SIZE] > state[MAX_QUEUED] or state[RECORDS] > state[MAX_RECORDS]:
            return LARGE
        if state[DERIVES] == 0 and level > state[MAX_ROUNDS]:
            return TOO_MANY_ROUNDS
        state[LEVEL_NOW], state[HAS_ROUND] = level, 0
        state[LEVELS_SEEN] += 1
    if state[DERIVES] == 1 and state[HAS_ROUND] == 0:
        relation = records[heap_slots[0], RELATION]
        if relations[relation, FORWARD] < relations[relation, FORWARD_END]:
            if state[ROUNDS] == state[MAX_ROUNDS]:
                return TOO_MANY_ROUNDS
            state[ROUNDS] += 1
            state[HAS_ROUND] = 1
    record = pop_heap(heap_keys, heap_slots, state)
    relation, now = records[record, RELATION], records[record, NOW]
    if state[DERIVES] == 0 and not is_level_done(heap_keys, state):
        following = heap_slots[0]
        path = relations[records[following, RELATION], BACKWARD]
        if path < relations[records[following, RELATION], BACKWARD_END]:
            request_support(paths, steps, terms, levels, indexes, runs, registers, path, records[following, CODE])
    if kind == CANDIDATE:
        if records[record, CANDIDATE_AT] != level:
            return FOUND
        records[record, CANDIDATE_AT] = NONE
        if 0 <= now <= level:
            return FOUND
    elif now != level:
        return FOUND
    state[RECORD], state[ROW_KIND] = record, kind
    if state[DERIVES] == 1:
        set_level(relations, names, terms, records, links, link_heads, state, record)
        return FOUND
    is_inserted = stored_level(levels, relations.shape[0] + relation, records[record, CODE]) >= 0
    state[BEST] = 0 if is_inserted else NEVER
    state[NEXT_PATH], state[END_PATH] = relations[relation, BACKWARD], relations[relation, BACKWARD_END]
    state[STAGE] = BACK
    return FOUND


@inlined_in_place
def is_level_done(heap_keys, state):
    """Return whether the queue has no more rows of the present level."""
    return state[HEAP_SIZE] == 0 or heap_keys[0] >> 1 != state[LEVEL_NOW]


@jit_in_place
def judge(relations, names, terms, records, links, link_heads, heap_keys, heap_slots, state):
    """Decide on the row that is examined, whose least possible level is known."""
    record, best, level = state[RECORD], state[BEST], state[LEVEL_NOW]
    state[STAGE] = NEXT_ROW
    if state[ROW_KIND] == SUSPECT:
        if best <= level:
            return
        if best < NEVER:
            queue_candidate(records, heap_keys, heap_slots, state, record, best)
        begin_forward(relations, state, records[record, RELATION], LOSE)  # by bodies of which no row is lost yet
    elif best <= level:
        set_level(relations, names, terms, records, links, link_heads, state, record)
    elif best < NEVER and (records[record, NOW] < 0 or records[record, NOW] > best):
        queue_candidate(records, heap_keys, heap_slots, state, record, best)


@jit_in_place
def run_levels(
    paths, steps, terms, relations, names, levels, indexes, runs, values, records, heads, links, link_heads, heap_keys,
    heap_slots, held, registers, cursor, starts, state,
):  # fmt: skip
    """Process starts, then suspects and candidates level by level."""
    while True:
        if (
            state[RECORDS] + SPARE > records.shape[0]
            or state[HEAP_SIZE] + SPARE > heap_keys.shape[0]
            or state[LINKS] + names.shape[0] > links.shape[0]
        ):
            return GROW
        stage = state[STAGE]
        if state[HELD] == MAX_HELD or (state[HELD] > 0 and stage == NEXT_ROW and is_level_done(heap_keys, state)):
            take_heads(levels, records, heads, heap_keys, heap_slots, held, state)
        if stage == WALK:
            outcome = next_solution(
                paths, steps, terms, levels, indexes, runs, values, records, heads, links, link_heads, registers,
                cursor, state,
            )  # fmt: skip
            if outcome == EXHAUSTED:
                state[STAGE] = state[AFTER]
            elif outcome != FOUND:
                return outcome
            else:
                path = state[PATH]
                level = cursor[paths[path, STEP_END] - paths[path, STEP], LEVEL] + 1
                if state[MODE] == SUPPORT:
                    state[BEST], state[LIMIT] = level, level
                    if level <= state[LEVEL_NOW]:
                        state[STAGE] = BACK
                else:
                    hold_head(paths, terms, levels, held, registers, state, level)
        elif stage == STARTS:
            if state[NEXT_START] < starts.shape[0]:
                next_start(
                    paths, terms, levels, records, heads, heap_keys, heap_slots, registers, cursor, starts, state
                )
            elif state[ONLY_STARTS] == 1:
                take_heads(levels, records, heads, heap_keys, heap_slots, held, state)
                return DONE
            else:
                state[STAGE] = NEXT_ROW
        elif stage == NEXT_ROW:
            state[VISITED] += 1
            outcome = next_row_of_queue(
                paths, steps, terms, relations, names, levels, indexes, runs, records, links, link_heads, heap_keys,
                heap_slots, registers, state,
            )  # fmt: skip
            if outcome != FOUND:
                return outcome
        elif state[NEXT_PATH] == state[END_PATH] or (stage == BACK and state[BEST] <= state[LEVEL_NOW]):
            if stage == BACK:
                judge(relations, names, terms, records, links, link_heads, heap_keys, heap_slots, state)
            else:
                if state[MODE] == LOSE:
                    records[state[RECORD], NOW] = NONE
                    state[CHANGED] += 1
                state[STAGE] = NEXT_ROW
        else:
            path = state[NEXT_PATH]
            state[NEXT_PATH] = path + 1
            is_backward = stage == BACK
            from_level = NONE if is_backward else state[LEVEL_NOW]
            code = records[state[RECORD], CODE]
            if begin_walk(paths, terms, registers, cursor, state, path, code, from_level):
                if is_backward:
                    state[MODE] = SUPPORT
                state[LIMIT] = state[BEST] if is_backward else NEVER
                state[AFTER] = stage
                state[STAGE] = WALK


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield run_levels, (
        TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, COLUMN, TABLE, COLUMN, COLUMN, COLUMN,
        TABLE, COLUMN, TABLE, TABLE, COLUMN,
    )  # fmt: skip
    yield link_rows, (TABLE, TABLE, TABLE, TABLE, TABLE, COLUMN, COLUMN, 0)
