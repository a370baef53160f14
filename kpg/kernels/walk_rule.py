"""Walk through the solutions of a rule one by one, depth first, from one row to the heads or to its support.

A rule system is a table of integers (kpg.seminaive.level_table makes it). Variables and constants are `registers`,
which hold ids. A path int64[PATH_FIELDS] starts with a row, whose columns are terms [START, START_END), follows the
steps [STEP, STEP_END), and ends with a head made of terms [HEAD, HEAD_END). A step int64[STEP_FIELDS] is

    JOIN       find the rows of INDEX whose key is terms [KEYS, KEYS_END), bind terms [BINDS, BINDS_END). If RELATION
               is not NONE, the derived row made of terms [CODES, CODES_END) needs a level: the row that was found, or
               one that it determines. NEXT_RELATION (or NONE) and terms [NEXT_CODES, NEXT_CODES_END) are the row of
               which the level is read next
    PRESENT    the row made of terms [CODES, CODES_END) of a derived RELATION has a level
    ABSENT     INDEX has no row with the key
    COMPARE    RELATION is the operator, terms [KEYS, KEYS_END) are its two sides

and a term int64[TERM_FIELDS] is a register, with the bits that it has in a code: SHIFT and WIDTH_MASK. A term of a
start with CHECKED = 1 is compared instead of bound. The sides of a comparison of values have in SHIFT the domain of the
values, or NONE where the register itself is a value.

An index int64[INDEX_FIELDS] is of one KIND:

    MISSING    the caller must provide it
    RUNS       sorted runs [FIRST, LAST): rows of `runs`, each with the address of its codes and of its removed codes,
               and perhaps that of the start of each key
    CHAINS     chains: FIRST is their row of `runs`
    TRIED      none: all values of terms [FIRST, LAST) of `terms` are tried, of which SHIFT has the bits in the code,
               and WIDTH_MASK the domain; TRIES bounds their number

and rows that the present run has added are in links, under the NAME of the index (kpg.kernels.level_records). Each step
has its own row of `indexes`; steps that share an index share the NAME.

The walk is in `cursor` int64[depth, CURSOR_FIELDS] and `state`; it can be left after any number of visits. LIMIT in
`state` cuts it off: solutions whose head would have at least that level are left out.
Twin: `kpg.seminaive.maintained.MaintainedFixpoint.solutions`, by the tests of kpg.kernels.run_levels.
"""

from kpg.kernels.array_address import peek, peek_narrow
from kpg.kernels.jit import inlined_in_place, jit_in_place
from kpg.kernels.level_records import (
    LINK_CODE,
    LINK_FOLLOWING,
    LINK_NAME,
    NONE,
    RECORD_COUNTERS,
    bucket_of_link,
    level_of,
    request_level,
)

START, START_END, STEP, STEP_END, HEAD, HEAD_END, START_RELATION, HEAD_RELATION = range(8)  # fields of a path
PATH_FIELDS = 8

OPERATION, INDEX, RELATION, KEYS, KEYS_END, BINDS, BINDS_END, CODES, CODES_END = range(9)  # fields of a step
NEXT_RELATION, NEXT_CODES, NEXT_CODES_END = range(9, 12)
STEP_FIELDS = 12
JOIN, PRESENT, ABSENT, COMPARE = range(4)  # operations
SAME, DIFFERENT, EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST = range(8)  # operators; the first two compare ids

REGISTER, SHIFT, WIDTH_MASK, CHECKED = range(4)  # fields of a term
TERM_FIELDS = 4

KIND, FIRST, LAST, VALUE_BITS, TRIES, NAME = range(6)  # fields of an index
INDEX_FIELDS = 6
MISSING, RUNS, CHAINS, TRIED = range(4)

RUN_CODES, RUN_ROWS, RUN_STARTS, RUN_REMOVED, RUN_REMOVED_ROWS = range(5)  # fields of a run
CHAIN_CODES, CHAIN_FOLLOWING, CHAIN_HEADS, CHAIN_KEYS = range(4)  # of chains
RUN_FIELDS = 5

ENTERED, RUN, PLACE, END, KEY, LEVEL, REQUESTED = range(7)  # fields of a cursor; LEVEL is the greatest level so far
CURSOR_FIELDS = 7

DEPTH = RECORD_COUNTERS
PATH, VISITED, PAUSE_AT, LIMIT, NEEDED = range(DEPTH + 1, DEPTH + 6)  # NEEDED is the index that the caller must provide
WALK_COUNTERS = DEPTH + 6

FOUND, EXHAUSTED, PAUSED, NEEDS_INDEX = range(4)  # outcomes

UNLIMITED_TRIES = 1 << 62
TRIES_PER_VISIT = 4  # rows that can be tried in the time of one match
AHEAD = 16  # rows that are requested before they are tried


@inlined_in_place
def code_of(terms, first, end, registers):
    """Return the code that some terms make."""
    code = 0
    for term in range(first, end):
        code |= registers[terms[term, REGISTER]] << terms[term, SHIFT]
    return code


@inlined_in_place
def bind(terms, first, end, registers, code):
    """Bind terms to the columns of a code."""
    for term in range(first, end):
        registers[terms[term, REGISTER]] = (code >> terms[term, SHIFT]) & terms[term, WIDTH_MASK]


@jit_in_place
def begin_walk(paths, terms, registers, cursor, state, path, code, level):
    """Start a walk from a row with a level, or NONE. Return whether the row matches the start of the path."""
    for term in range(paths[path, START], paths[path, START_END]):
        value = (code >> terms[term, SHIFT]) & terms[term, WIDTH_MASK]
        if terms[term, CHECKED] == 0:
            registers[terms[term, REGISTER]] = value
        elif registers[terms[term, REGISTER]] != value:
            return False
    state[PATH] = path
    state[DEPTH] = 0
    cursor[0, ENTERED] = 0
    cursor[0, LEVEL] = level
    return True


@inlined_in_place
def first_at_least(address, low, high, code):
    """Return the first position of sorted codes that holds at least a code."""
    while low < high:
        middle = (low + high) >> 1
        if peek(address, middle) < code:
            low = middle + 1
        else:
            high = middle
    return low


@jit_in_place
def is_removed(runs, run, code):
    """Return whether a code was removed from a run after it was built."""
    rows = runs[run, RUN_REMOVED_ROWS]
    if rows == 0:
        return False
    place = first_at_least(runs[run, RUN_REMOVED], 0, rows, code)
    return place < rows and peek(runs[run, RUN_REMOVED], place) == code


@inlined_in_place
def key_range(runs, run, key, value_bits):
    """Return the range of the rows of a key in a run, removed ones included."""
    starts = runs[run, RUN_STARTS]
    if starts != 0:
        return peek(starts, key), peek(starts, key + 1)
    rows = runs[run, RUN_ROWS]
    low = first_at_least(runs[run, RUN_CODES], 0, rows, key << value_bits)
    return low, first_at_least(runs[run, RUN_CODES], low, rows, (key + 1) << value_bits)


@jit_in_place
def first_link(links, link, name, key, value_bits):
    """Return the first link from one on that belongs to the key of an index."""
    while link >= 0 and (links[link, LINK_NAME] != name or links[link, LINK_CODE] >> value_bits != key):
        link = links[link, LINK_FOLLOWING]
    return link


@jit_in_place
def request_rows(steps, terms, levels, runs, registers, cursor, depth, step, run):
    """Request the memory of the levels that the next rows of a join need, so that the waits for it overlap."""
    place, end = cursor[depth, PLACE], cursor[depth, END]
    end = min(end, place + AHEAD)
    cursor[depth, REQUESTED] = end
    for row in range(place, end):
        bind(terms, steps[step, BINDS], steps[step, BINDS_END], registers, peek(runs[run, RUN_CODES], row))
        code = code_of(terms, steps[step, NEXT_CODES], steps[step, NEXT_CODES_END], registers)
        request_level(levels, steps[step, NEXT_RELATION], code)


@jit_in_place
def request_support(paths, steps, terms, levels, indexes, runs, registers, path, code):
    """Request the memory of the levels that the first step of a path backward needs for a row."""
    step = paths[path, STEP]
    index = steps[step, INDEX]
    if step == paths[path, STEP_END] or steps[step, NEXT_RELATION] < 0 or indexes[index, KIND] != RUNS:
        return
    for term in range(paths[path, START], paths[path, START_END]):
        if terms[term, CHECKED] == 0:
            registers[terms[term, REGISTER]] = (code >> terms[term, SHIFT]) & terms[term, WIDTH_MASK]
    key = code_of(terms, steps[step, KEYS], steps[step, KEYS_END], registers)
    for run in range(indexes[index, FIRST], indexes[index, LAST]):
        place, end = key_range(runs, run, key, indexes[index, VALUE_BITS])
        for row in range(place, min(end, place + AHEAD)):
            bind(terms, steps[step, BINDS], steps[step, BINDS_END], registers, peek(runs[run, RUN_CODES], row))
            needed = code_of(terms, steps[step, NEXT_CODES], steps[step, NEXT_CODES_END], registers)
            request_level(levels, steps[step, NEXT_RELATION], needed)


@inlined_in_place
def next_row(steps, terms, levels, indexes, runs, links, link_heads, registers, cursor, depth, step, index):
    """Advance a join to its next row. Return its code in the index, or NONE if there is none."""
    value_bits, key = indexes[index, VALUE_BITS], cursor[depth, KEY]
    is_chain = indexes[index, KIND] == CHAINS
    last = 1 if is_chain else indexes[index, LAST] - indexes[index, FIRST]
    code = NONE
    while code < 0:
        run, place = cursor[depth, RUN], cursor[depth, PLACE]
        at = indexes[index, FIRST] + run
        if run == last:  # rows of this run of the kernel
            if place < 0:
                break
            following = links[place, LINK_FOLLOWING]
            cursor[depth, PLACE] = first_link(links, following, indexes[index, NAME], key, value_bits)
            code = links[place, LINK_CODE]
        elif run >= 0 and is_chain and place >= 0:
            cursor[depth, PLACE] = peek_narrow(runs[at, CHAIN_FOLLOWING], place)
            code = peek(runs[at, CHAIN_CODES], place)
        elif run >= 0 and not is_chain and place < cursor[depth, END]:
            if place == cursor[depth, REQUESTED]:
                request_rows(steps, terms, levels, runs, registers, cursor, depth, step, at)
            cursor[depth, PLACE] = place + 1
            code = peek(runs[at, RUN_CODES], place)
            if runs[at, RUN_REMOVED_ROWS] > 0 and is_removed(runs, at, code):
                code = NONE
        else:
            run += 1
            cursor[depth, RUN] = run
            if run == last:
                link = link_heads[bucket_of_link(indexes[index, NAME], key, link_heads)]
                cursor[depth, PLACE] = first_link(links, link, indexes[index, NAME], key, value_bits)
            elif is_chain:
                cursor[depth, PLACE] = peek_narrow(runs[at + 1, CHAIN_HEADS], key)
            else:
                cursor[depth, PLACE], cursor[depth, END] = key_range(runs, at + 1, key, value_bits)
                cursor[depth, REQUESTED] = cursor[depth, PLACE] if steps[step, NEXT_RELATION] >= 0 else NONE
    return code


@inlined_in_place
def next_joined(
    steps, terms, levels, indexes, runs, records, heads, links, link_heads, registers, cursor, state, depth, step, index
):
    """Advance a join to the next row that has a level, if it needs one. Return FOUND, EXHAUSTED or PAUSED."""
    relation, limit, level = steps[step, RELATION], state[LIMIT], cursor[depth, LEVEL]
    visited, outcome = 0, EXHAUSTED
    while outcome == EXHAUSTED:
        if state[VISITED] + visited >= state[PAUSE_AT]:
            outcome = PAUSED
            break
        code = next_row(steps, terms, levels, indexes, runs, links, link_heads, registers, cursor, depth, step, index)
        if code < 0:
            break
        visited += 1
        bind(terms, steps[step, BINDS], steps[step, BINDS_END], registers, code)
        if relation < 0:
            cursor[depth + 1, LEVEL] = level
            outcome = FOUND
        else:
            row = code_of(terms, steps[step, CODES], steps[step, CODES_END], registers)
            found = level_of(levels, records, heads, relation, row)
            if found >= 0 and max(found, level) + 1 < limit:
                cursor[depth + 1, LEVEL] = max(found, level)
                outcome = FOUND
    state[VISITED] += visited
    return outcome


@jit_in_place
def has_row(steps, terms, levels, indexes, runs, links, link_heads, registers, cursor, depth, step, index):
    """Return whether a key has a row."""
    code = next_row(steps, terms, levels, indexes, runs, links, link_heads, registers, cursor, depth, step, index)
    return code >= 0


@inlined_in_place
def next_tried(steps, terms, levels, indexes, values, records, heads, registers, cursor, state, depth, step, index):
    """Advance a join without an index to the next row with a level. Return FOUND or EXHAUSTED."""
    relation = steps[step, RELATION]
    first, last = indexes[index, FIRST], indexes[index, LAST]
    outcome = EXHAUSTED
    place, end, known = cursor[depth, PLACE], cursor[depth, END], cursor[depth, KEY]
    start = place
    while place < end and outcome == EXHAUSTED:
        code, rest = known, place
        for term in range(first, last - 1):
            size = values[terms[term, WIDTH_MASK], 1]
            code |= (rest % size) << terms[term, SHIFT]
            rest //= size
        if last > first:
            code |= rest << terms[last - 1, SHIFT]
            if last - first == 1 and place + AHEAD < end:
                request_level(levels, relation, known | (place + AHEAD) << terms[first, SHIFT])
        place += 1
        level = level_of(levels, records, heads, relation, code)
        if level >= 0 and max(level, cursor[depth, LEVEL]) + 1 < state[LIMIT]:
            rest = place - 1
            for term in range(first, last - 1):
                size = values[terms[term, WIDTH_MASK], 1]
                registers[terms[term, REGISTER]] = rest % size
                rest //= size
            if last > first:
                registers[terms[last - 1, REGISTER]] = rest
            cursor[depth + 1, LEVEL] = max(level, cursor[depth, LEVEL])
            outcome = FOUND
    cursor[depth, PLACE] = place
    state[VISITED] += (place - start) // TRIES_PER_VISIT
    return outcome


@inlined_in_place
def value_of(terms, term, registers, values):
    """Return the value of a side of a comparison."""
    register, domain = registers[terms[term, REGISTER]], terms[term, SHIFT]
    return register if domain < 0 else peek(values[domain, 0], register)


@jit_in_place
def holds(steps, terms, registers, values, step):
    """Return whether a comparison holds."""
    operator, first = steps[step, RELATION], steps[step, KEYS]
    if operator <= DIFFERENT:
        return (registers[terms[first, REGISTER]] == registers[terms[first + 1, REGISTER]]) == (operator == SAME)
    left, right = value_of(terms, first, registers, values), value_of(terms, first + 1, registers, values)
    if operator == EQUAL:
        return left == right
    if operator == UNEQUAL:
        return left != right
    if operator == LESS:
        return left < right
    if operator == AT_MOST:
        return left <= right
    if operator == MORE:
        return left > right
    return left >= right


@jit_in_place
def enter(steps, terms, indexes, values, registers, cursor, state, depth, step, index):
    """Begin to look up the rows of a join or of a negation. Return FOUND or NEEDS_INDEX."""
    tries = 1
    if indexes[index, KIND] == TRIED:
        for term in range(indexes[index, FIRST], indexes[index, LAST]):
            tries *= values[terms[term, WIDTH_MASK], 1]
        if tries > indexes[index, TRIES]:
            indexes[index, KIND] = MISSING
        indexes[index, TRIES] -= tries
    if indexes[index, KIND] == MISSING:
        state[NEEDED] = index
        return NEEDS_INDEX
    cursor[depth, RUN] = NONE
    if indexes[index, KIND] == TRIED:
        known = 0
        for term in range(steps[step, CODES], steps[step, CODES_END]):
            if terms[term, CHECKED] == 0:  # the others are tried
                known |= registers[terms[term, REGISTER]] << terms[term, SHIFT]
        cursor[depth, KEY], cursor[depth, PLACE], cursor[depth, END] = known, 0, tries
    else:
        cursor[depth, KEY] = code_of(terms, steps[step, KEYS], steps[step, KEYS_END], registers)
    return FOUND


@inlined_in_place
def next_solution(
    paths, steps, terms, levels, indexes, runs, values, records, heads, links, link_heads, registers, cursor, state
):
    """Advance the walk to the next solution. Return an outcome; if FOUND, the last cursor has the level of the body."""
    path = state[PATH]
    first, count = paths[path, STEP], paths[path, STEP_END] - paths[path, STEP]
    depth, outcome = state[DEPTH], EXHAUSTED
    while depth >= 0:
        if depth == count:
            depth -= 1
            outcome = FOUND
            break
        step = first + depth
        operation, index = steps[step, OPERATION], steps[step, INDEX]
        begins = cursor[depth, ENTERED] == 0
        if begins:
            if state[VISITED] >= state[PAUSE_AT]:
                outcome = PAUSED
                break
            state[VISITED] += 1
            if (
                index >= 0
                and enter(steps, terms, indexes, values, registers, cursor, state, depth, step, index) != FOUND
            ):
                outcome = NEEDS_INDEX
                break
            cursor[depth, ENTERED] = 1
        passes = False
        if operation == JOIN:
            if indexes[index, KIND] == TRIED:
                found = next_tried(
                    steps, terms, levels, indexes, values, records, heads, registers, cursor, state, depth, step, index
                )
            else:
                found = next_joined(
                    steps, terms, levels, indexes, runs, records, heads, links, link_heads, registers, cursor, state,
                    depth, step, index,
                )  # fmt: skip
                if found == PAUSED:
                    outcome = PAUSED
                    break
            passes = found == FOUND
        elif begins:
            level = cursor[depth, LEVEL]
            if operation == PRESENT:
                row = code_of(terms, steps[step, CODES], steps[step, CODES_END], registers)
                found = level_of(levels, records, heads, steps[step, RELATION], row)
                level = max(level, found)
                passes = found >= 0 and level + 1 < state[LIMIT]
            elif operation == ABSENT:
                passes = not has_row(
                    steps, terms, levels, indexes, runs, links, link_heads, registers, cursor, depth, step, index
                )
            else:
                passes = holds(steps, terms, registers, values, step)
            cursor[depth + 1, LEVEL] = level
        if passes:
            depth += 1
            cursor[depth, ENTERED] = 0
        else:
            depth -= 1
    state[DEPTH] = depth
    return outcome
