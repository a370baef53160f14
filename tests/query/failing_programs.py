"""Random Datalog programs with expressions that fail, guards, and relations that read each other.

Values are few and often zero, so that divisions fail. Computed values stay in a small range, so that recursion ends.
"""

from hypothesis import strategies as st

from tests.query.random_programs import RandomProgram, declare

INPUTS = {"a": 2, "b": 2, "c": 1}
OUTPUTS = {"p": 1, "q": 2, "r": 1}
NAMES = ("x", "y", "z")


@st.composite
def expressions(draw, names):
    """Draw an expression that may fail."""
    first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    return draw(
        st.sampled_from(
            [f"2 / {first}", f"{first} / {second}", f"{first} % {second}", f"(1 + {first} / {second}) % 3"]
            + [f"({first} * 4611686018427387904) % 3"]  # fails for 2, not for 1
        )
    )


@st.composite
def atoms(draw, relations, names):
    name = draw(st.sampled_from(sorted(relations)))
    arguments = [draw(st.sampled_from([*names, *names, "_", "1"])) for _ in range(relations[name])]
    return f"{name}({', '.join(arguments)})"


@st.composite
def bodies(draw, relations, lower):
    """Draw the literals of a body, and the variables that it binds."""
    parts = ["a(x, y)", *draw(st.lists(atoms(relations, NAMES), max_size=2))]
    bound = [name for name in NAMES if any(name in part for part in parts)]
    for number in range(draw(st.integers(1, 2))):
        expression = draw(expressions(bound))
        value = f"v{number}"
        match draw(st.integers(0, 6)):
            case 0:
                parts.append(f"{expression} {draw(st.sampled_from(['<', '!=', '>=']))} {draw(st.integers(0, 2))}")
            case 1:
                parts.append(f"!{draw(st.sampled_from(['c', *[n for n, k in lower.items() if k == 1]]))}({expression})")
            case 2:
                parts.append(f"c({expression})")
            case 3:
                parts += [f"{value} = {expression}", f"b({value}, {draw(st.sampled_from(['w', 'w', *bound]))})"]
                name = draw(st.sampled_from(bound))
                uses = [[], ["c(w)"], ["b(w, _)"], ["w != 1"], [f"w < {name}"], [f"!b(w, {name})"]]
                uses += [[f"u = w + {name}", "c(u)"], [f"b({name}, w)"]] if number == 0 else []
                parts += draw(st.sampled_from(uses)) if "w" in parts[-1] else []
            case 4:
                parts += [f"{value} = {expression}", f"{value} != {draw(st.sampled_from(bound))}"]
            case 5:
                parts.append(f"{draw(aggregates(bound))}, m < 9")
            case 6:
                parts.append(f"{value} = {expression}")
    for _ in range(draw(st.integers(0, 1))):
        name = draw(st.sampled_from(bound))
        parts.append(
            draw(st.sampled_from([f"{name} != 0", f"!c({name})", f"{name} < 2", f"({name} = 1; !b({name}, 0))"]))
        )
    if sum("m = " in part for part in parts) > 1:
        parts = [part for part in parts if "m = " not in part]
    return draw(st.permutations(parts)), bound


@st.composite
def aggregates(draw, bound):
    """Draw an aggregate over an expression that may fail."""
    key = draw(st.sampled_from([*bound, "k"]))
    guard = draw(st.sampled_from(["", ", l != 0", ", !c(l)"]))
    target = draw(st.sampled_from(["k / l", "l / k", "2 % l"]))
    return draw(
        st.sampled_from(
            [
                f"m = sum ({target}) : {{ b(k, l){guard}, a({key}, _) }}",
                f"m = count : {{ b(k, l), {target} > 0{guard} }}",
            ]
        )
    )


@st.composite
def rules(draw, head, arity, relations, lower):
    parts, bound = draw(bodies(relations, lower))
    terms = [*bound, "1", draw(expressions(bound))]
    arguments = [draw(st.sampled_from(terms)) for _ in range(arity)]
    if head in relations:  # in a recursion, values must not grow
        arguments = [argument if argument in bound else f"({argument}) % 3" for argument in arguments]
    return f"{head}({', '.join(arguments)}) :- {', '.join(parts)}."


@st.composite
def failing_programs(draw):
    """Draw a program and the rows of its inputs at each epoch."""
    lines = [declare(INPUTS, ".input"), declare(OUTPUTS, ".output")]
    lower = dict(INPUTS)
    for name, arity in OUTPUTS.items():
        same = {name: arity} if draw(st.integers(0, 2)) == 0 else {}
        lines += [draw(rules(name, arity, {**lower, **same}, lower)) for _ in range(draw(st.integers(1, 2)))]
        lower |= {name: arity} if draw(st.booleans()) else {}
    values = st.sampled_from([1, 2, 0, 1, 2])
    rows = {name: st.tuples(*[values] * arity) for name, arity in INPUTS.items()}
    few = {name: st.sets(row, min_size=1, max_size=4) for name, row in rows.items()}
    states = [{name: draw(some) for name, some in few.items()} for _ in range(draw(st.integers(2, 4)))]
    return RandomProgram("\n".join(lines), states)
