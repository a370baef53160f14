"""Joins of all forms, aggregates, first rows and constants give the same answers on two workers as on one."""

import random

import kpg
from kpg import col

FORMS = ("inner", "left", "right", "full", "semi", "anti")


def answers(db, name):
    """Install one query of each kind over two relations of a db."""
    a = db.input(f"{name} a", k="int64?", x="int64?", s="string?")
    b = db.input(f"{name} b", k="int64?", y=int)
    collections = {how: a.join(b, "k", how, nulls_equal=False, where=col("x") < col("y")) for how in FORMS}
    collections |= {f"{how} by key": a.join(b, "k", how) for how in FORMS}
    collections["unequal"] = a.join(b, how="left", where=col("x") > col("y"))
    collections["aggregates"] = a.group_by("k").aggregate(
        n="count", least=col("s").min(), d=col("x").count_distinct(), q=col("x").quantile(0.5), t=col("s").string_agg()
    )
    collections["all"] = a.aggregate(n="count", most=col("x").max(hierarchical=True), v=col("x").variance())
    collections["top"] = a.group_by().top_k(5, by=["-x", "s"], offset=2, hierarchical=True)
    collections["except"] = a.select("k").except_all(b.select("k"))
    collections["constants"] = db.values([(0, "zero"), (1, "one"), (None, "none")], k="int64?", name=str).join(b, "k")
    return (a, b), {kind: collection.output(f"{name} {kind}") for kind, collection in collections.items()}


def test_relational_operators_on_workers_as_on_one(clusters):
    chance = random.Random(7)
    two = clusters(2)
    with kpg.open() as one:
        (both_inputs, both_answers) = zip(answers(one, "r"), answers(two, "r"), strict=True)
        rows: tuple[list, list] = ([], [])
        for _ in range(3):
            for side, relation in enumerate(("a", "b")):
                k = [chance.choice([None, 0, 1, 2, 3]) for _ in range(12)]
                new = [
                    (key, chance.choice([None, *range(6)]), chance.choice([None, "p", "q"]))
                    if relation == "a"
                    else (key, chance.randrange(6))
                    for key in k
                ]
                gone = chance.sample(rows[side], len(rows[side]) // 2)
                for row in gone:
                    rows[side].remove(row)
                rows[side].extend(new)
                for inputs in both_inputs:
                    inputs[side].insert(new)
                    inputs[side].remove(gone)
            one.advance()
            two.advance()
            for kind, answer in both_answers[0].items():
                actual = sorted(both_answers[1][kind].rows(), key=repr)
                assert actual == sorted(answer.rows(), key=repr), kind
