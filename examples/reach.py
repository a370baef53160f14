"""Which of these pairs are connected? The answer is maintained while edges are inserted and removed."""

import kpg

with kpg.open() as db:
    edges = db.input("edges", src=int, dst=int)
    query = db.input("query", src=int, dst=int)
    by_src = edges.arrange("src")  # one index, shared by every query below

    def step(reach: kpg.Collection) -> kpg.Collection:
        onward = by_src.join(reach, on={"src": "at"}).select(at="dst", root="root")
        return onward.concat(reach).distinct()

    reach = query.select(at="src", root="src").distinct().iterate(step)
    answer = reach.semijoin(query, on={"root": "src", "at": "dst"}).output("answer")

    edges.insert([(1, 2), (2, 3), (3, 4)])
    query.insert([(1, 4), (4, 1)])
    db.advance()
    print("connected:", answer.rows())  # (at, root)

    edges.remove([(2, 3)])
    db.advance()
    print("after removing 2 → 3:", answer.rows())

    edges.insert([(4, 1), (2, 4)])
    db.advance()
    for row, time, diff in answer.changes():
        print(f"  at epoch {time}: {row} {diff:+d}")
