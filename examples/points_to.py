"""A points-to analysis in Datalog, kept up to date while the analysed program is edited.

Run it: python examples/points_to.py
"""

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

RULES = """
.decl new(variable: symbol, object: symbol)                     // variable = new object
.decl assign(to: symbol, from: symbol)                          // to = from
.decl store(variable: symbol, field: symbol, from: symbol)      // variable.field = from
.decl load(to: symbol, variable: symbol, field: symbol)         // to = variable.field
.input new, assign, store, load

.decl points_to(variable: symbol, object: symbol)
.decl holds(object: symbol, field: symbol, value: symbol)
.decl aliases(variable: symbol, n: number)
.output points_to, aliases

points_to(v, o) :- new(v, o).
points_to(v, o) :- assign(v, w), points_to(w, o).
points_to(v, o) :- load(v, w, f), points_to(w, p), holds(p, f, o).
holds(p, f, o) :- store(v, f, w), points_to(v, p), points_to(w, o).
aliases(v, n) :- points_to(v, _), n = count : { points_to(w, o), points_to(v, o), w != v }.
"""

with kpg.open() as db, InstalledProgram(db, compile(parse(RULES))) as analysis:
    analysis.inputs["new"].insert([("a", "A"), ("b", "B")])
    analysis.inputs["assign"].insert([("c", "a")])
    analysis.inputs["store"].insert([("a", "next", "b")])
    analysis.inputs["load"].insert([("d", "c", "next")])
    db.advance()
    print("points to:", sorted(analysis.rows("points_to")))
    print("aliases:  ", sorted(analysis.rows("aliases")))

    analysis.inputs["assign"].remove([("c", "a")])  # delete one line: d = c.next no longer finds an object
    db.advance()
    print("points to:", sorted(analysis.rows("points_to")))
    assert not any(variable in "cd" for variable, _ in analysis.rows("points_to"))
