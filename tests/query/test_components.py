"""Components: a program with components means what its expansion by hand means; errors show the component's text."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import kpg
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.testing.datalog_oracle import evaluate
from tests.query.input_states import advance_through, assert_answers
from tests.query.random_programs import RandomProgram, programs

PREFIXES = {"program": "", "base": "m.", "derived": "m.", "nested": "m.n."}  # of the relations, by component


@dataclass(frozen=True)
class SplitProgram:
    """A program, the same program split into components, and the prefix of each relation in it."""

    whole: RandomProgram
    components: str
    prefixes: dict[str, str]

    def named(self, state: dict) -> dict:
        """Return rows by relation under the names that the relations have in the split program."""
        return {self.prefixes[name] + name: rows for name, rows in state.items()}


@st.composite
def split_programs(draw):
    """Draw a program, and distribute its relations: over the program, a base, a derived and a nested component."""
    whole: RandomProgram = draw(programs())
    lines = whole.text.split("\n")
    relations = [line[len(".decl ")] for line in lines if line.startswith(".decl ")]
    homes = {name: draw(st.sampled_from(sorted(PREFIXES))) for name in relations}
    overridden = {name for name in relations if homes[name] == "derived" and draw(st.booleans())}
    bodies: dict[str, list[str]] = {home: [] for home in PREFIXES}
    for line in lines:
        relation = re.match(r"(?:\.\w+ )?(\w)", line)[1]
        home = homes[relation]
        if line.startswith(".decl ") and relation in overridden:  # the base has rows of its own, which must not appear
            zeros = ", ".join("0" * line.count(":"))
            bodies["base"] += [f"{line} overridable", f"{relation}({zeros})."]
            bodies["derived"].append(f".override {relation}")
        elif line.startswith("."):
            bodies[home].append(line)
        else:
            bodies[home].append(as_written(line, home, homes))
    return SplitProgram(whole, draw(texts(bodies)), {name: PREFIXES[homes[name]] for name in relations})


def as_written(line: str, home: str, homes: dict[str, str]) -> str:
    """Return a rule as the text of a component writes it."""
    return re.sub(r"\b[a-z](?=\()", lambda match: written(match[0], home, homes), line)


def written(name: str, home: str, homes: dict[str, str]) -> str:
    """Return the name of a relation as the text of a component writes it."""
    if homes[name] in ("program", home):
        return name
    if home == "program":
        return PREFIXES[homes[name]] + name
    return f"n.{name}" if homes[name] == "nested" else name


@st.composite
def texts(draw, bodies):
    """Draw a text of the components: the nested one is declared inside the derived one, or beside it."""
    body = {home: "\n".join(lines) for home, lines in bodies.items()}
    generic = {home: text.replace("number", "T") for home, text in body.items()}
    inside = draw(st.booleans())
    nested = f".comp Nested{'' if inside else '<T>'} {{\n{generic['nested']}\n}}"
    init = f".init n = Nested{'' if inside else '<T>'}"
    derived = f".comp Derived<T> : Base<T> {{\n{nested if inside else ''}\n{generic['derived']}\n{init}\n}}"
    base = f".comp Base<U> {{\n{body['base'].replace('number', 'U')}\n}}"
    pieces = [body["program"], base, derived, ".init m = Derived<number>", "" if inside else nested]
    return "\n".join(draw(st.permutations(pieces)))


@settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(split_programs())
def test_components_mean_what_their_expansion_means(split):
    note(split.components)
    program, expansion = parse(split.components), parse(split.whole.text)
    compile(program)
    for state in split.whole.epochs:
        expected = split.named(evaluate(expansion, state))
        assert evaluate(program, split.named(state)) == expected


@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(split_programs())
def test_answers_of_components_are_kept_up_to_date(split):
    note(split.components)
    expansion = parse(split.whole.text)
    with kpg.open() as db, InstalledProgram(db, compile(parse(split.components))) as installed:
        states = map(split.named, split.whole.epochs)
        for state, _ in zip(split.whole.epochs, advance_through(db, installed, states), strict=True):
            assert_answers(installed, split.named(evaluate(expansion, state)))


# Soufflé's manual, example by example: what each instance declares and derives.
MANUAL = [
    (
        ".comp C { .type t = number .decl a(x: t) a(42). }\n.init i = C\n.init j = C\nj.a(33).\n",
        {"i.a": [42], "j.a": [33, 42]},
    ),
    # a relation that the component does not declare is that of the instance around it, or of the program
    (
        ".decl out(x: number)\n.comp A { .decl r(x: number) .comp Count { r(1). r(x + 1) :- r(x), x < 3. }\n"
        ".init count = Count\nout(x) :- r(x). }\n.init a = A\n",
        {"out": [1, 2, 3], "a.r": [1, 2, 3]},
    ),
    # a parameter that chooses the component to instantiate, from those nested in the component
    (
        ".decl r(x: number)\n.comp Case<S> { .comp One { r(1). } .comp Two { r(2). } .init s = S }\n"
        ".init c = Case<Two>\n",
        {"r": [2]},
    ),
    # a parameter as the base
    (
        ".comp A { .decl r(x: number) r(5). }\n.comp B<T> : T { .decl s(x: number) s(x) :- r(x). }\n.init b = B<A>\n",
        {"b.s": [5]},
    ),
    # several bases, and bases of bases
    (
        ".comp A { .decl a(x: number) a(1). }\n.comp B { .decl b(x: number) b(2). }\n.comp C : A { a(3). }\n"
        ".comp D : C, B { .decl d(x: number) d(x) :- a(x); b(x). }\n.init d = D\n",
        {"d.d": [1, 2, 3]},
    ),
    (
        ".comp Base { .decl r(x: number) overridable r(1). r(x + 1) :- r(x), x < 5. }\n"
        ".comp Sub : Base { .override r r(2). r(x + 1) :- r(x), x < 4. }\n.comp Deep : Sub { r(9). }\n"
        ".init s = Sub\n.init d = Deep\n.init b = Base\n",
        {"s.r": [2, 3, 4], "d.r": [2, 3, 4, 9], "b.r": [1, 2, 3, 4, 5]},
    ),
    # nested instances two deep, read and extended from outside
    (
        ".comp In<T> { .decl r(x: T) } .comp Mid<T> { .init in = In<T> in.r(1). .decl m(x: T) m(x) :- in.r(x). }\n"
        ".comp Out { .init mid = Mid<number> .decl o(x: number) o(x) :- mid.m(x), mid.in.r(x). }\n.init o = Out\n"
        "o.mid.in.r(7).\n",
        {"o.o": [1, 7], "o.mid.m": [1, 7]},
    ),
    # an instance inherited from a base
    (
        ".comp In { .decl r(x: number) r(4). } .comp Base { .init in = In }\n"
        ".comp Sub : Base { .decl s(x: number) s(x) :- in.r(x). }\n.init s = Sub\n",
        {"s.s": [4], "s.in.r": [4]},
    ),
    # a parameter that is a component with parameters
    (
        ".comp G { .decl r(x: number) r(1). r(2). r(3). } .comp Even<T> { .init g = T .decl s(x: number)\n"
        "s(x) :- g.r(x), x % 2 = 0. }\n.comp More<T> : Even<T> { s(42). }\n"
        ".comp Main<S, T> { .init s = S<T> .decl out(x: number) out(x) :- s.s(x). }\n"
        ".init a = Main<Even, G>\n.init b = Main<More, G>\n",
        {"a.out": [2], "b.out": [2, 42]},
    ),
    # rules of an instance inside the component are not overridden
    (
        ".comp A { .decl r(x: number) overridable r(1). } .comp B { .decl r(x: number) r(2). }\n.comp C : A { r(3). }\n"
        ".comp D : B { r(4). }\n.comp E : C { .init d = D r(5). }\n.comp F : E { .override r r(6). }\n"
        ".init e = E\n.init f = F\n",
        {"e.r": [1, 3, 5], "e.d.r": [2, 4], "f.r": [6], "f.d.r": [2, 4]},
    ),
    # types of a component, used outside and as parameters
    (
        ".comp A { .type n <: number .decl r(x: n) r(3). .init b = B<n> b.q(x) :- r(x). }\n"
        ".comp B<T> { .decl q(x: T) }\n.init a = A\n.decl s(x: a.n)\ns(x) :- a.b.q(x).\n",
        {"s": [3]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MANUAL)
def test_components_of_the_manual(text, expected):
    outputs = "".join(f".output {name}\n" for name in expected)
    program = parse(text + outputs)
    rows = evaluate(compile_checked(program), {})
    assert {name: sorted(row[0] for row in rows[name]) for name in expected} == expected


def compile_checked(program):
    """Return the program if it compiles."""
    compile(program)
    return program


WRONG = [
    (".init c = C", kpg.UndefinedName, 1, 11, "no component is called 'C'"),
    (".comp A : B { }", kpg.UndefinedName, 1, 11, "no component is called 'B'"),
    (".comp A { .init b = B }", kpg.UndefinedName, 1, 21, "no component is called 'B'"),
    (".comp A : B { }\n.comp B : A { }", kpg.ProgramError, 2, 11, "component 'A' inherits from itself"),
    (".comp A : A { }", kpg.ProgramError, 1, 11, "component 'A' inherits from itself"),
    (".comp A<T> : T { }\n.init a = A<A>", kpg.ProgramError, 1, 14, "component 'A' inherits from itself"),
    (".comp A<T> { }\n.init a = A", kpg.ProgramError, 2, 11, "A has 1 parameters, not 0"),
    (".comp A<T> { }\n.comp B : A<number, number> { }", kpg.ProgramError, 2, 11, "A has 1 parameters, not 2"),
    (".comp A<T> { .init x = T }\n.init a = A<A>", kpg.ProgramError, 1, 20, "more than 100 deep"),
    (".comp A { .init a = A }\n.init a = A", kpg.ProgramError, 1, 17, "more than 100 deep"),
    (".comp A { .decl r() }\n.comp B : A { .override r }", kpg.ProgramError, 2, 25, "'r' cannot be overridden"),
    (".comp B { .decl r() overridable\n.override r }", kpg.ProgramError, 2, 11, "overrides its own relation 'r'"),
    (".comp A { }\n.comp B : A { .override r }", kpg.UndefinedName, 2, 25, "no base of B has a relation called 'r'"),
    (".override r", kpg.ParseError, 1, 11, "outside of components"),
    (".comp A { }\n.comp A { }", kpg.ProgramError, 2, 7, "component 'A' is declared twice"),
    (".comp A { }\n.init a = A\n.init a = A", kpg.ProgramError, 3, 7, "instance 'a' is declared twice"),
    (".comp A { .decl r()", kpg.ParseError, 1, 9, "a component is not closed"),
    (".comp A { .decl r() r() :- q(1). }\n.init a = A", kpg.UndefinedName, 1, 28, "no relation is called 'q'"),
    (".comp A { .decl r() r() - q(). }", kpg.ParseError, 1, 25, "found '-'"),
    (".comp A<T> { .decl r(x: T) r(cat(\"a\")). }\n.init a = A<number>", kpg.TypeMismatch, 1, 30, "cat is symbol"),
    (".comp A<T> { .decl r(x: T) }\n.init a = A<t>", kpg.UndefinedName, 1, 25, "no type is called 't'"),
    (".comp A { .decl r() }\n.comp B : A { .decl r() }\n.init b = B", kpg.ProgramError, 2, 21, "twice"),
    (".comp A { }\n.init a = A\na.r(1).", kpg.UndefinedName, 3, 1, "no relation is called 'a.r'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "line", "column", "words"), WRONG)
def test_errors_of_components_show_the_text_that_is_wrong(text, kind, line, column, words):
    with pytest.raises(kpg.ProgramError, match=re.escape(words)) as caught:
        compile(parse(text))
    assert (type(caught.value), caught.value.line, caught.value.column) == (kind, line, column)


def test_a_text_of_a_client_expands_to_a_limited_size():
    body = "".join(f".decl r{n}(x: number)\n" for n in range(500))
    text = f".comp C {{ {body} }}\n" + "".join(f".init c{n} = C\n" for n in range(100))
    with pytest.raises(kpg.ProgramError, match="more than 300,000 words"):
        parse(text, includes=False)


def test_a_component_that_doubles_without_end_is_stopped():
    text = "".join(f".comp C{n} {{ .init a = C{n + 1} .init b = C{n + 1} .decl r{n}(x: number) }}\n" for n in range(40))
    with pytest.raises(kpg.ProgramError, match="more than 10,000 instances"):
        parse(text + ".comp C40 { .decl r(x: number) }\n.init c = C0")
