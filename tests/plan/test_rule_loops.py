"""Loops over sets: the operator of rules and the loop have the same answers, and only such loops are recognised: A6.6.

A consolidation in the body keeps a loop from being recognised, and changes nothing else.
"""

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import col, lit
from kpg.errors import TooManyRounds


def onward(rows, edges):
    return rows.join(edges, on={"y": "x"}).select(x="x", y="y_right")


def closure(e, f, s, plain):
    return e.iterate(lambda p: plain(onward(p, e).concat(p)).distinct())


def closure_from_the_right(e, f, s, plain):
    """The source is part of the definition, and the rows of the round before are not."""
    return e.iterate(lambda p: plain(e.join(p, on={"y": "x"}).select(x="x", y="y_right")).concat(e).distinct())


def composed(e, f, s, plain):
    return e.iterate(lambda p: plain(onward(p, p).concat(p)).distinct())


def labelled(e, f, s, plain):
    def step(t):
        more = t.join(f, on={"y": "x", "l": "l"}).select(x="x", y="y_right", l="l")
        return plain(more).concat(t).distinct()

    return f.iterate(step)


def compared(e, f, s, plain):
    def step(p):
        further = onward(p.filter((col("x") < 3) & (col("y") != 2)), e).filter(col("x") <= col("y"))
        return plain(further).concat(p).distinct()

    return e.iterate(step)


def without_some(e, f, s, plain):
    return e.iterate(lambda p: plain(onward(p.antijoin(s, on={"y": "x"}), e)).concat(p).distinct())


def filtered_twice(e, f, s, plain):
    """Rows with and without a match, in the recursion and outside."""

    def step(p):
        further = onward(p.semijoin(s, on={"x": "x"}), e).antijoin(f, on={"x": "y", "y": "l"})
        return plain(further).concat(p).distinct()

    return e.iterate(step)


def mutual(e, f, s, plain):
    with e.db.loop("mutual") as loop:
        p, q = loop.variable(x=int, y=int), loop.variable(x=int, y=int)
        everything = p.concat(e).distinct()
        q.set(onward(everything, e).distinct())
        p.set(plain(onward(q, e)))
        return loop.leave(everything)


def two_results(e, f, s, plain):
    """Two variables, of which one has a source, and two results; the second one drops a column."""
    with e.db.loop("two") as loop:
        p, q = loop.variable(e), loop.variable(y=int, x=int)
        p.set(plain(onward(p, e)).concat(p, q.select("x", "y")).distinct())
        q.set(p.join(s, on="x").select(x="y", y="x").distinct())
        left = loop.leave(p), loop.leave(q.select("x"))
        return left[0].select("x", "y").concat(left[1].select(x="x", y="x"))


def turned(e, f, s, plain):
    """The symmetric closure: a set that follows from itself with its columns exchanged."""
    return e.iterate(lambda p: plain(p.select(x="y", y="x")).concat(p).distinct())


def distinct_within(e, f, s, plain):
    """Sets below sets, and rows that start inside the loop."""
    with e.db.loop("within") as loop:
        p = loop.variable(x=int, y=int)
        known = p.concat(e)
        further = plain(onward(known, e)).distinct().concat(known.filter(col("y") > 1))
        p.set(further.distinct())
        return loop.leave(p)


def with_constants(e, f, s, plain):
    def step(t):
        further = t.join(e, on={"y": "x"}).select(x="x", y="y_right", l=lit(1))
        return plain(further).concat(t.filter(col("l") == 2).select("x", "y", l=lit(3)), t).distinct()

    return f.iterate(step).select("x", y="l")


def with_nulls(e, f, s, plain):
    """A column that may be null has values of columns without null, constants and null."""

    def step(p):
        further = p.join(e, on={"y": "x"}).select(x="x", y=col("y_right").cast("int64?"))
        null = p.filter(col("y") == 2).select("x", y=lit(None).cast("int64?"))
        known = p.filter(col("y").is_null()).select("x", y=lit(4).cast("int64?"))
        return plain(further).concat(null, known, p).distinct()

    return e.select("x", y=col("y").cast("int64?")).iterate(step)


def one_column(e, f, s, plain):
    """Reached by one of two ways, of which one needs both ends to be reached."""

    def step(r):
        both = r.join(e, on="x").select(x="y").semijoin(s, on="x")
        pairs = r.join(f, on="x").join(r.select(l="x"), on="l").select(x="y")
        return plain(both).concat(pairs, r).distinct()

    return s.iterate(step).select("x", y="x")


BODIES = [
    closure,
    closure_from_the_right,
    composed,
    labelled,
    compared,
    without_some,
    filtered_twice,
    mutual,
    two_results,
    turned,
    distinct_within,
    with_constants,
    with_nulls,
    one_column,
]
value = st.integers(0, 4)
diff = st.sampled_from([1, 1, 1, 2, -1, -1])
changes = st.lists(
    st.tuples(
        st.dictionaries(st.tuples(value, value), diff, max_size=6),
        st.dictionaries(st.tuples(value, value, value), diff, max_size=5),
        st.dictionaries(st.tuples(value), diff, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


def apply(inputs, change):
    for relation, rows in zip(inputs, change, strict=True):
        for row, diff in rows.items():
            (relation.insert if diff > 0 else relation.remove)([row] * abs(diff))


def inputs_of(db):
    return db.input("e", x=int, y=int), db.input("f", x=int, y=int, l=int), db.input("s", x=int)


def check_changes(db, inputs, changes, operator, loop):
    """Apply changes one after the other, and compare both answers after each."""
    for change in changes:
        apply(inputs, change)
        db.advance()
        try:
            expected = loop.rows()
        except TooManyRounds:
            return  # negative counts need not have a fixed point
        assert operator.rows() == expected


@pytest.mark.parametrize("build", BODIES)
@settings(max_examples=25)
@given(changes)
def test_the_operator_has_the_answers_of_the_loop(build, changes):
    """Multisets, of which rows are removed perhaps before they are inserted: counts are negative for a while."""
    with kpg.open(max_rounds=25) as db:
        inputs = inputs_of(db)
        operator = build(*inputs, lambda rows: rows).output("operator")
        loop = build(*inputs, lambda rows: rows.consolidate()).output("loop")
        assert "is one operator: derives its sets by rules" in operator.explain()
        assert "is a loop: a part of its body is consolidated" in loop.explain()
        check_changes(db, inputs, changes, operator, loop)


@settings(max_examples=20)
@given(st.sampled_from(BODIES), changes)
def test_rows_that_are_encoded_again_keep_their_counts(build, changes):
    """As happens when most values are in no row any more: here after each change."""
    with kpg.open(max_rounds=25) as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr("kpg.seminaive.maintained.MaintainedFixpoint._has_unused_values", lambda _: True)
        inputs = inputs_of(db)
        operator = build(*inputs, lambda rows: rows).output("operator")
        loop = build(*inputs, lambda rows: rows.consolidate()).output("loop")
        check_changes(db, inputs, changes, operator, loop)


ROWS = st.recursive(
    st.sampled_from(["p", "p", "e", "swapped"]),
    lambda rows: st.one_of(
        st.tuples(st.sampled_from(["joined", "concat", "paired"]), rows, rows),
        st.tuples(st.sampled_from(["filtered", "absent", "present", "distinct", "constant", "doubled"]), rows),
    ),
    max_leaves=4,
)


def written(rows, p, e, s):
    """Return random rows (x, y) of a set p and of collections from outside."""
    if isinstance(rows, str):
        return {"p": p, "e": e, "swapped": p.select(x="y", y="x")}[rows]
    kind, *inputs = rows
    left, *right = [written(inner, p, e, s) for inner in inputs]
    return {
        "joined": lambda: onward(left, right[0]),
        "concat": lambda: left.concat(right[0]),
        "paired": lambda: left.join(right[0], on=["x", "y"]).select(x="y", y="x"),
        "filtered": lambda: left.filter((col("x") < col("y")) & (col("y") != 2)),
        "absent": lambda: left.antijoin(s, on={"y": "x"}),
        "present": lambda: left.semijoin(s, on="x"),
        "distinct": lambda: left.distinct(),
        "constant": lambda: left.select("x", y=lit(1)),
        "doubled": lambda: left.select("x", y="x"),
    }[kind]()


@settings(max_examples=60)
@given(ROWS, st.booleans(), changes)
def test_any_body_has_the_answers_of_the_loop(rows, keeps, changes):
    with kpg.open(max_rounds=20) as db:
        e, f, s = inputs_of(db)
        names = ("operator", "loop")
        bodies = (lambda body: body, lambda body: body.consolidate())
        answers = [
            e.iterate(
                lambda p, plain=plain: plain(written(rows, p, e, s)).concat(p if keeps else e).distinct(), name=name
            ).output(name)
            for name, plain in zip(names, bodies, strict=True)
        ]
        for change in changes:
            apply((e, f, s), change)
            db.advance()
            try:
                expected = answers[1].rows()
            except TooManyRounds:
                return
            assert answers[0].rows() == expected


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_have_the_answers_of_the_loop(workers):
    """The sets are divided by a column that all rules keep, also while counts are negative; else one worker has all."""
    random = Random(workers)
    with kpg.open(workers=workers, max_rounds=25) as db, kpg.open(max_rounds=25) as alone:
        several, one = inputs_of(db), inputs_of(alone)
        answers = {build: build(*several, lambda rows: rows).output(build.__name__) for build in BODIES}
        loops = {build: build(*one, lambda rows: rows.consolidate()).output(build.__name__) for build in BODIES}
        for build, answer in answers.items():
            where = "one worker derives all" if build in UNDIVIDED else "each worker derives the rows of its values of"
            assert where in answer.explain()
        for _ in range(5):
            change = [random_rows(random, rows, columns) for rows, columns in ((5, 2), (4, 3), (2, 1))]
            for inputs, each in ((several, db), (one, alone)):
                apply(inputs, change)
                each.advance()
            for build in BODIES:
                try:
                    expected = loops[build].rows()
                except TooManyRounds:
                    continue
                assert answers[build].rows() == expected, build.__name__


UNDIVIDED = (two_results, turned, one_column)


def random_rows(random, rows, columns):
    return {tuple(random.randrange(5) for _ in range(columns)): random.choice([1, 1, 1, 2, -1]) for _ in range(rows)}


NULLABLE = st.sampled_from([None, None, 0, 1, 2])
NAME = st.sampled_from(["a", "b", "c", None])
named_changes = st.lists(
    st.tuples(
        st.dictionaries(st.tuples(NAME, NAME, NULLABLE), diff, max_size=6),
        st.dictionaries(st.tuples(NULLABLE), diff, max_size=2),
        st.dictionaries(st.tuples(st.sampled_from([-(2**63), 0, 1])), diff, max_size=2),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=20)
@given(named_changes)
def test_null_and_text_compare_as_in_the_loop(changes):
    """Null equals null in joins, and nothing in comparisons; the lane of null is a value of columns without null."""
    with kpg.open(max_rounds=25) as db:
        names = db.input("names", x="string?", y="string?", n="int64?")
        some, plain_numbers = db.input("some", n="int64?"), db.input("plain", n=int)

        def further(rows, plain):
            more = rows.join(names, on={"y": "x"}).filter((col("x") != "b") & ~(col("n") >= 2))
            kept = more.antijoin(some, on="n").select(x="x", y="y_right", n="n_right")
            null = rows.antijoin(plain_numbers, on="n").filter(~col("x").is_null()).select(x="y", y="x", n="n")
            return plain(kept.concat(null)).concat(rows).distinct()

        operator = names.iterate(lambda rows: further(rows, lambda more: more)).output("operator")
        loop = names.iterate(lambda rows: further(rows, lambda more: more.consolidate())).output("loop")
        assert "is one operator" in operator.explain() and "is a loop" in loop.explain()
        for change in changes:
            apply((names, some, plain_numbers), change)
            db.advance()
            try:
                expected = loop.rows()
            except TooManyRounds:
                return
            assert operator.rows() == expected


def test_columns_that_no_rule_reads_may_have_any_type():
    with kpg.open() as db:
        e = db.input("e", x=float, y=float, price="decimal(38, 2)")
        further = e.select("x", "y").iterate(
            lambda p: p.join(e, on={"y": "x"}).select(x="x", y="y_right").concat(p).distinct()
        )
        answer = further.output("answer")
        assert "is one operator" in answer.explain()
        e.insert([(0.5, -0.0, Decimal(1)), (0.0, 2.5, Decimal(2)), (0.0, 2.5, Decimal(3))])
        db.advance()
        assert answer.rows() == [(0.0, 2.5), (0.5, 0.0), (0.5, 2.5)]


REFUSED = {
    "it computes values": lambda e, s: e.iterate(lambda p: p.select("x", y=col("y") % 3).concat(p).distinct()),
    "a row of round 0 need not be one of later rounds": lambda e, s: e.iterate(lambda p: onward(p, e).distinct()),
    "a condition of its body is more than comparisons": lambda e, s: e.iterate(
        lambda p: onward(p, e).filter((col("x") < 2) | (col("y") < 2)).concat(p).distinct()
    ),
    "it negates rows of the recursion": lambda e, s: e.iterate(
        lambda p: onward(p, e).antijoin(p, on={"x": "y"}).concat(e).distinct(), max_rounds=9
    ),
    "it subtracts rows": lambda e, s: e.iterate(lambda p: onward(p, e).subtract(e).concat(e).distinct()),
    "it computes a threshold of groups": lambda e, s: e.iterate(
        lambda p: onward(p.threshold(2), e).concat(e).distinct()
    ),
    "no set of it follows from itself": lambda e, s: e.iterate(lambda p: p.concat(e).distinct()),
    "its result is no set of distinct rows": lambda e, s: e.iterate(lambda p: onward(p, e).concat(e), max_rounds=9),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_other_loops_stay_loops_and_say_why(reason):
    with kpg.open() as db:
        e, _, s = inputs_of(db)
        answer = REFUSED[reason](e, s).output("answer")
        assert f"iterate is a loop: {reason}" in answer.explain()


def test_a_recursion_from_few_rows_of_a_large_relation_stays_a_loop(monkeypatch):
    monkeypatch.setattr("kpg.plan.rule_loops.MAX_FOLLOWED_ROWS", 3)
    with kpg.open() as db:
        e, f, s = inputs_of(db)
        e.insert([(n, n + 1) for n in range(5)])
        db.advance()
        starts = s.select("x", y="x").distinct()
        few = starts.iterate(lambda p: onward(p, e).concat(p).distinct()).output("few")
        assert "is a loop: it may follow few of 5 rows" in few.explain()
        every = closure(e, f, s, lambda rows: rows).output("every")
        assert "is one operator" in every.explain()


def test_too_many_rounds():
    """A chain of n edges takes n - 1 rounds, as in the loop."""
    with kpg.open() as db:
        e, _, _ = inputs_of(db)
        for plain in (lambda rows: rows, lambda rows: rows.consolidate()):
            for rounds in (4, 5):
                name = f"{'loop' if plain(e) is not e else 'operator'} {rounds}"
                e.iterate(lambda p, plain=plain: plain(onward(p, e)).concat(p).distinct(), max_rounds=rounds).output(
                    name
                )
        e.insert([(n, n + 1) for n in range(6)])
        db.advance()
        for kind in ("operator", "loop"):
            with pytest.raises(TooManyRounds, match="within 4 rounds"):
                db[f"{kind} 4"].rows()
            assert len(db[f"{kind} 5"].rows()) == 21


def test_rows_with_negative_counts_keep_their_texts():
    with kpg.open() as db:
        e = db.input("e", x=str, y=str)
        answer = e.iterate(lambda p: onward(p, e).concat(p).distinct()).output("answer")
        e.insert([("first", "second"), ("second", "third")])
        e.remove([("owed one", "owed two")])
        db.advance()
        db.reclaim()
        e.insert([("owed one", "owed two"), ("third", "owed one"), ("owed one", "owed two")])
        db.advance()
        assert ("first", "owed two") in answer.rows() and len(answer.rows()) == 10
