"""Random Datalog programs as text, with facts and changes: safe and stratified by construction.

Relations form layers. A rule may read its own layer positively, and lower layers in any way: negated, aggregated, in
disjunctions. There are few values, so that joins find matches, and computed values stay in a small range, so that
recursion terminates.
"""

import re
from dataclasses import dataclass

from hypothesis import strategies as st

INPUTS = {"a": 1, "b": 2, "c": 2}
LAYERS = ({"p": 1, "q": 2}, {"r": 2, "s": 1}, {"t": 2})
NAMES = ("x", "y", "z", "w")


@dataclass(frozen=True)
class RandomProgram:
    """A program, and the rows of its inputs at each epoch."""

    text: str
    epochs: list[dict[str, set[tuple[int, ...]]]]


def declare(relations: dict[str, int], directive: str) -> str:
    lines = []
    for name, arity in relations.items():
        columns = ", ".join(f"{letter}: number" for letter in "uv"[:arity])
        lines.append(f".decl {name}({columns})\n{directive} {name}")
    return "\n".join(lines)


@st.composite
def atoms(draw, relations, names):
    """Draw an atom, sometimes with wildcards and constants."""
    name = draw(st.sampled_from(sorted(relations)))
    terms = st.one_of(st.sampled_from(names), st.sampled_from(names), st.sampled_from(["_", "0", "1"]))
    arguments = draw(st.lists(terms, min_size=relations[name], max_size=relations[name]))
    return f"{name}({', '.join(arguments)})"


def bound_in(text: str) -> list[str]:
    """Return the variables that the text of atoms binds."""
    return [name for name in NAMES if name in text.replace("(", " ").replace(")", " ").replace(",", " ").split()]


@st.composite
def aggregates(draw, lower, bound):
    """Draw an aggregate over lower relations, possibly with bound variables."""
    body = draw(atoms(lower, [*bound, "k", "l"]))
    if draw(st.booleans()):
        body += ", " + draw(atoms(lower, [*bound, "k", "l"]))
    inner = [name for name in ("k", "l") if name in body]
    op = draw(st.sampled_from(["count", "sum", "min", "max"]))
    if op == "count" or not inner:
        return f"count : {{ {body} }}"
    if bound and draw(st.booleans()):
        body += f", {inner[0]} >= {draw(st.sampled_from(bound))}"
    if draw(st.integers(0, 3)) == 0:
        body = f"({body}; {body.replace('0', '1')})"
    return f"{op} {inner[0]} : {{ {body} }}"


@st.composite
def rules(draw, head, arity, same, lower):
    """Draw a rule for a relation, from its own layer and lower ones."""
    every = {**same, **lower}
    positive = draw(st.lists(atoms(every, NAMES), min_size=1, max_size=3))
    parts = list(positive)
    if draw(st.integers(0, 3)) == 0:
        parts[0] = f"({parts[0]}; {draw(atoms(lower, NAMES))})"
        positive = positive[1:]
    bound = bound_in(" ".join(positive))
    if bound:
        for _ in range(draw(st.integers(0, 2))):
            parts.append(draw(extras(lower, bound)))
        if draw(st.booleans()):
            parts.append(f"m = {draw(aggregates(lower, bound))}, m <= 2")
            bound = [*bound, "m"]
    terms = [*bound, "0", "1"]
    if bound:
        terms.append(f"({bound[0]} + 1) % 3")
    arguments = [draw(st.sampled_from(terms)) for _ in range(arity)]
    return f"{head}({', '.join(arguments)}) :- {', '.join(draw(st.permutations(parts)))}."


@st.composite
def extras(draw, lower, bound):
    """Draw a negation or comparison of bound variables."""
    some = st.sampled_from(bound)
    match draw(st.integers(0, 3)):
        case 0:
            return "!" + draw(atoms(lower, bound))
        case 1:
            return f"{draw(some)} {draw(st.sampled_from(['=', '!=', '<', '<=']))} {draw(some)}"
        case 2:
            return f"{draw(some)} = ({draw(some)} + {draw(st.integers(0, 2))}) % 3"
    return f"!({draw(some)} = 1, {draw(some)} > 0; {draw(some)} = 2)"


def of_symbols(random_program: RandomProgram) -> RandomProgram:
    """Return the program over symbols instead of numbers, without the rules that compute."""
    lines = []
    for line in random_program.text.split("\n"):
        if any(word in line for word in ("% 3", "sum ", "count ", "<= 2")):
            continue
        heading = line.startswith(".")
        line = line.replace("number", "symbol") if heading else re.sub(r"\b([0-9])\b", r'"\1"', line)
        lines.append(line)
    epochs = [
        {name: {tuple(map(str, row)) for row in rows} for name, rows in state.items()}
        for state in random_program.epochs
    ]
    return RandomProgram("\n".join(lines), epochs)


@st.composite
def programs(draw):
    """Draw a program and the rows of its inputs at each epoch."""
    lines = [declare(INPUTS, ".input"), *(declare(layer, ".output") for layer in LAYERS)]
    lower = dict(INPUTS)
    for layer in LAYERS:
        for name, arity in layer.items():
            for _ in range(draw(st.integers(1, 2))):
                lines.append(draw(rules(name, arity, layer, lower)))
        lower |= layer
    return RandomProgram("\n".join(lines), draw(epochs()))


@st.composite
def epochs(draw):
    """Draw the rows of the inputs at each of some epochs."""
    rows = {name: st.tuples(*[st.integers(0, 2)] * arity) for name, arity in INPUTS.items()}
    times = draw(st.integers(1, 3))
    return [{name: draw(st.sets(row, max_size=4)) for name, row in rows.items()} for _ in range(times)]
