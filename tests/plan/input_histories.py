"""The states of some inputs, one after the other, in a db and on several simulated workers.

check_history(cluster, db, sources, answer, history, schedule)      the answers are the same after each state
"""

from collections import Counter


def answers(output):
    """Return the rows of an output, each with its count."""
    return Counter(map(tuple, output.rows()))


def check_history(cluster, db, sources, answer, history, schedule):
    """Change the inputs from each state, a set of rows for each, to the next; workers take turns to insert a row."""
    held, turn = [set() for _ in sources], 0
    for state in history:
        for source, before, after in zip(sources, held, state, strict=True):
            source.remove(sorted(before - after))
            source.insert(sorted(after - before))
            for row, diff in [*((row, -1) for row in before - after), *((row, 1) for row in after - before)]:
                turn += 1
                cluster.insert(turn % 2, source.name, row, diff)
        held = state
        db.advance()
        cluster.advance(schedule)
        assert cluster.answer() == answers(answer)
