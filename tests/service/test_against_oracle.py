"""Random programs, random interests of every kind of sharing, random changes: each sees what the oracle says."""

from collections import Counter

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from kpg.query.datalog import parse
from kpg.service import Change
from kpg.testing.datalog_oracle import evaluate
from tests.query.random_programs import programs
from tests.service.conftest import dataflows_of

SHARINGS = ("auto", "answers", "nothing")
JOINS = ("auto", "auto", "binary", "delta", "hector")
ARGUMENTS = st.one_of(st.none(), st.tuples(st.integers(0, 9), st.integers(0, 3)))
ASKS = st.lists(st.tuples(st.integers(0, 99), st.sampled_from(SHARINGS), ARGUMENTS), max_size=3)


@pytest.mark.parametrize(("workers", "examples"), [(1, 15), (2, 6), (3, 4)])
def test_every_interest_follows_the_oracle(service_on, workers, examples):
    """A9.3, A9.5, A12.1, A14.4: derived or reused, with and without arguments, while others come and go."""

    @settings(max_examples=examples, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(programs(), st.lists(ASKS, min_size=4, max_size=4), st.data())
    def check(written, asks, data):
        with service_on(workers) as service:
            follow(service, written, asks, data)

    check()


def follow(service, written, asks, data):
    """Make interests and changes at random, and compare what each interest sees with the oracle."""
    note(written.text)
    program = parse(written.text)
    relations = program.by_name()
    service.register(written.text)
    names = sorted({rule.heads[0].relation for rule in program.rules})
    state: dict[str, set] = {}
    followed = []
    for number, now in enumerate(written.epochs):
        for which, sharing, argument in asks[number % len(asks)] if names else ():
            name = names[which % len(names)]
            columns = relations[name].columns
            arguments = {columns[argument[0] % len(columns)].name: argument[1]} if argument and columns else None
            if any(column.kind != "number" for column in columns):
                arguments = None
            owner = service.time * 10 + len(followed)
            how = {"sharing": sharing, "joins": data.draw(st.sampled_from(JOINS)), "owner": owner}
            interest = service.interest(name, arguments=arguments, **how)
            followed.append((interest, arguments or {}, Counter()))
        changes = [Change(name, row) for name, rows in now.items() for row in rows - state.get(name, set())]
        changes += [Change(name, row, -1) for name, rows in now.items() for row in state.get(name, set()) - rows]
        service.transact(changes)
        state = now
        expected = evaluate(program, state)
        for interest, arguments, counts in followed:
            for row, _, diff in interest.take():
                counts[row] += diff
            positions = {column.name: position for position, column in enumerate(relations[interest.name].columns)}
            wanted = {
                row for row in expected[interest.name] if all(row[positions[c]] == v for c, v in arguments.items())
            }
            assert {row: n for row, n in counts.items() if n} == dict.fromkeys(wanted, 1)
        if followed and data.draw(st.booleans()):
            interest, _, _ = followed.pop(data.draw(st.integers(0, len(followed) - 1)))
            service.drop_owner(interest.owner)
    service.close()
    assert set(dataflows_of(service.db)) <= {*relations, "unit of queries"}
