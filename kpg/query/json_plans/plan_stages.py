"""Stages of plans as formulas.

    {"MatchA": [0, ":knows", 1]}                    [?0 :knows ?1]
    {"Join": {"variables": [1], "left_plan": ..., "right_plan": ...}}      both, meeting in the variables they share

A stage gives a formula and the variables it binds, in order. A union, an antijoin's right side and an aggregate become
relations of their own. What a projection drops gets a name that nothing else has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from kpg.errors import UndefinedName
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Formula, Negation, change_terms, variables
from kpg.query.ir.program import AggregateReduction, Relation, RelationColumn, Rule
from kpg.query.ir.terms import CallTerm, Kind, Term, VariableTerm
from kpg.query.json_plans.json_access import Json
from kpg.query.source_text import did_you_mean, failure

PREDICATES = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "=", "NEQ": "!="}
FUNCTIONS = {"ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "DIVIDE": "/"}
AGGREGATES = {"COUNT": "count", "SUM": "sum", "MIN": "min", "MAX": "max", "AVG": "mean"}
DEEPEST = 100


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage says, and the variables it gives."""

    names: list[str]
    formula: Conjunction


@dataclass(slots=True)
class StageTranslator:
    """Attributes and rules by arity; and the relations that stages became."""

    attributes: dict[str, tuple[Kind, ...]]
    rules: dict[str, int]
    relations: list[Relation] = field(default_factory=list)
    made: list[Rule] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))
    depth: int = 0

    def stage(self, json: Json) -> StageResult:
        """Any stage."""
        name, inner = json.tagged()
        build = BUILDERS.get(name)
        if build is None:
            raise json.wrong(f"no stage is called {name!r}", did_you_mean(name, BUILDERS))
        self.depth += 1
        if self.depth > DEEPEST:
            raise json.wrong(f"nested more than {DEEPEST} deep")
        part = build(self, inner)
        self.depth -= 1
        return part

    # Leaves

    def match(self, json: Json, entity: bool, value: bool) -> StageResult:
        """A data pattern, with entity or value fixed."""
        items = json.items()
        if len(items) != 3:
            raise json.wrong(f"found {len(items)} items, expected entity, attribute and value")
        terms = (self.place(items[0], entity), self.place(items[2], value))
        return self.pattern(items[1], terms)

    def pattern(self, name: Json, terms: tuple[Term, Term]) -> StageResult:
        """An atom of an attribute, or of a rule of two columns."""
        known = {*self.attributes, *(rule for rule, arity in self.rules.items() if arity == 2)}
        if name.text() not in known:
            hint = did_you_mean(name.text(), known)
            raise failure(UndefinedName, f"no attribute is called {name.text()!r}", name.at, hint=hint)
        names = list(dict.fromkeys(term.name for term in terms if isinstance(term, VariableTerm)))
        return StageResult(names, Conjunction((Atom(name.text(), terms, name.at),), name.at))

    def place(self, json: Json, fixed: bool) -> Term:
        """A constant or a variable."""
        return json.constant() if fixed else VariableTerm(json.variable(), json.at)

    def name_expression(self, json: Json) -> StageResult:
        """`[[0, 1], "knows"]`: a rule by name."""
        items = json.items()
        if len(items) != 2:
            raise json.wrong(f"found {len(items)} items, expected variables and a name")
        names, name = items[0].variables(), items[1].text()
        arity = self.rules.get(name, len(self.attributes.get(name, ())))
        if not arity:
            hint = did_you_mean(name, [*self.rules, *self.attributes])
            raise failure(UndefinedName, f"no rule is called {name!r}", items[1].at, hint=hint)
        if arity != len(names):
            raise items[0].wrong(f"{name} has {arity} columns, not {len(names)}")
        terms = tuple(VariableTerm(each, items[0].at) for each in names)
        return StageResult(list(dict.fromkeys(names)), Conjunction((Atom(name, terms, json.at),), json.at))

    # Stages on stages

    def project(self, json: Json) -> StageResult:
        """Some variables."""
        part = self.stage(json.member("plan"))
        names = self.bound(json.member("variables"), part)
        return StageResult(names, self.hidden(part, set(names)))

    def hidden(self, part: StageResult, kept: set[str]) -> Conjunction:
        """A formula in which all but some variables have names of their own."""
        mark = next(self.numbers)
        dropped = {variable.name for variable in variables(part.formula)} - kept

        def rename(term: Term) -> Term:
            if isinstance(term, VariableTerm) and term.name in dropped:
                return VariableTerm(f"{term.name}#{mark}", term.at)
            return term

        changed = change_terms(part.formula, rename)
        assert isinstance(changed, Conjunction)
        return changed

    def bound(self, json: Json, part: StageResult) -> list[str]:
        """Variables that a stage must give."""
        names = json.variables()
        for each, name in zip(json.items(), names, strict=True):
            if name not in part.names:
                raise each.wrong(f"variable {name} is not bound", f"The stage gives {', '.join(part.names)}.")
        return names

    def join(self, json: Json) -> StageResult:
        """Two stages that meet."""
        left, right = self.stage(json.member("left_plan")), self.stage(json.member("right_plan"))
        shared = json.member("variables")
        self.bound(shared, left)
        self.bound(shared, right)
        names = list(dict.fromkeys([*shared.variables(), *left.names, *right.names]))
        return StageResult(names, both(left.formula, right.formula))

    def antijoin(self, json: Json) -> StageResult:
        """A stage without what meets another."""
        left, right = self.stage(json.member("left_plan")), self.stage(json.member("right_plan"))
        shared = json.member("variables")
        self.bound(shared, left)
        names = self.bound(shared, right)
        gone = self.relation("antijoin", names, [right.formula], json)
        return StageResult(left.names, Conjunction((*left.formula.parts, Negation(gone, json.at)), json.at))

    def union(self, json: Json) -> StageResult:
        """The rows of several stages, less those of stages that are negated."""
        wanted = json.member("variables")
        added: list[Conjunction] = []
        removed: list[Conjunction] = []
        for each in json.member("plans").items():
            negated = isinstance(each.value, dict) and set(each.value) == {"Negate"}
            part = self.stage(each.member("Negate") if negated else each)
            self.bound(wanted, part)
            (removed if negated else added).append(part.formula)
        if not added:
            raise json.wrong("a union of nothing", "At least one of its plans is not negated.")
        names = wanted.variables()
        atom: Formula = self.relation("union", names, added, json)
        if removed:
            atom = Conjunction((atom, Negation(self.relation("negate", names, removed, json), json.at)), json.at)
        return StageResult(list(dict.fromkeys(names)), both(Conjunction((), json.at), atom))

    def negate(self, json: Json) -> StageResult:
        """Rows that count negatively have a meaning only beside others."""
        raise json.wrong("Negate outside a Union", "Negate a plan inside a Union, or use Antijoin.")

    def filter(self, json: Json) -> StageResult:
        """A stage where a comparison holds."""
        part = self.stage(json.member("plan"))
        op = self.word(json.member("predicate"), PREDICATES, "predicate")
        left, right = self.arguments(json, part, 2)
        condition = Comparison(op, left, right, json.at)
        return StageResult(part.names, Conjunction((*part.formula.parts, condition), json.at))

    def transform(self, json: Json) -> StageResult:
        """A stage with one more variable, computed."""
        part = self.stage(json.member("plan"))
        functor = self.word(json.member("function"), FUNCTIONS, "function")
        first, *rest = self.arguments(json, part, None)
        for term in rest:
            first = CallTerm(functor, (first, term), None, json.at)
        result = json.member("result_variable", "result_sym")
        if result.variable() in part.names:
            raise result.wrong(f"variable {result.variable()} is bound already")
        equation = Comparison("=", VariableTerm(result.variable(), result.at), first, json.at)
        return StageResult([*part.names, result.variable()], Conjunction((*part.formula.parts, equation), json.at))

    def arguments(self, json: Json, part: StageResult, size: int | None) -> list[Term]:
        """Constants where they are given, variables in the other places."""
        names = iter(self.bound(json.member("variables"), part))
        given = json.optional("constants")
        terms: list[Term] = []
        for each in given.items() if given is not None else []:
            name = next(names, None) if each.value is None else None
            if each.value is None and name is None:
                continue
            terms.append(each.constant() if name is None else VariableTerm(name, each.at))
        terms += [VariableTerm(name, json.at) for name in names]
        if not terms or size not in (None, len(terms)):
            raise json.wrong(f"found {len(terms)} arguments, expected {size or 'at least one'}")
        return terms

    def word(self, json: Json, words: dict[str, str], what: str) -> str:
        """One of some words."""
        if json.value not in list(words):
            raise json.wrong(f"no {what} is called {json.value!r}", did_you_mean(str(json.value), words))
        return words[json.value]

    def aggregate(self, json: Json) -> StageResult:
        """Groups of a stage, each with what is computed of it."""
        part = self.stage(json.member("plan"))
        keys = list(dict.fromkeys(self.bound(json.member("key_variables"), part)))
        targets = self.bound(json.member("aggregation_variables"), part)
        functions = [self.word(each, AGGREGATES, "aggregate") for each in json.member("aggregation_fns").items()]
        wanted = json.member("variables")
        if len(functions) != len(targets) or not targets:
            raise json.wrong(f"{len(functions)} aggregates of {len(targets)} variables")
        if sorted(wanted.variables()) != sorted([*keys, *targets]) or len(set(targets)) < len(targets):
            raise wanted.wrong("the variables are the keys and what is aggregated, each once")
        solutions = [*keys, *(name for name in part.names if name not in keys)]
        source = self.relation("solutions", solutions, [part.formula], json)
        atoms: list[Formula] = []
        for op, target in zip(functions, targets, strict=True):
            name = f"@{op}.{next(self.numbers)}"
            place = None if op == "count" else solutions.index(target)
            self.relations.append(Relation(name, columns([*keys, " value"]), json.at, made=True))
            self.reductions.append(AggregateReduction(name, source.relation, len(keys), op, place, json.at))
            atoms.append(Atom(name, tuple(VariableTerm(each, json.at) for each in [*keys, target]), json.at))
        return StageResult(wanted.variables(), Conjunction(tuple(atoms), json.at))

    # Hector

    def hector(self, json: Json) -> StageResult:
        """All assignments of variables that satisfy some bindings."""
        parts = [self.binding(each) for each in json.member("bindings").items()]
        if not parts:
            raise json.wrong("no bindings", "Without any, there would be infinitely many solutions.")
        formula = Conjunction(tuple(each for part in parts for each in part.formula.parts), json.at)
        known = StageResult(list(dict.fromkeys(name for part in parts for name in part.names)), formula)
        names = self.bound(json.member("variables"), known)
        order = json.optional("order")
        joins = " ".join(["hector", *(order.variables() if order is not None else [])])
        if not names:
            return StageResult(names, self.hidden(known, set()))
        atom = self.relation("hector", list(dict.fromkeys(names)), [formula], json, joins)
        return StageResult(names, Conjunction((atom,), json.at))

    def binding(self, json: Json) -> StageResult:
        """One binding: an attribute, a constant, a comparison, or the opposite of one."""
        name, inner = json.tagged()
        match name:
            case "Attribute":
                pair = inner.member("variables").items()
                if len(pair) != 2:
                    raise inner.wrong("an attribute binds two variables")
                ends = self.place(pair[0], False), self.place(pair[1], False)
                return self.pattern(inner.member("source_attribute"), ends)
            case "Constant":
                variable = VariableTerm(inner.member("variable").variable(), inner.at)
                equation = Comparison("=", variable, inner.member("value").constant(), inner.at)
                return StageResult([variable.name], Conjunction((equation,), inner.at))
            case "BinaryPredicate":
                op = self.word(inner.member("predicate"), PREDICATES, "predicate")
                pair = inner.member("variables").items()
                if len(pair) != 2:
                    raise inner.wrong("a predicate compares two variables")
                left, right = (self.place(each, False) for each in pair)
                return StageResult([], Conjunction((Comparison(op, left, right, inner.at),), inner.at))
            case "Not":
                part = self.binding(inner.member("binding"))
                return StageResult(
                    [], Conjunction(tuple(Negation(each, inner.at) for each in part.formula.parts), inner.at)
                )
        raise json.wrong(
            f"no binding is called {name!r}", did_you_mean(name, ["Attribute", "Constant", "BinaryPredicate", "Not"])
        )

    # Relations

    def relation(self, word: str, names: list[str], bodies: list[Conjunction], json: Json, joins: str = "") -> Atom:
        """A relation of some variables that holds where one of some formulas does."""
        head = Atom(f"@{word}.{next(self.numbers)}", tuple(VariableTerm(each, json.at) for each in names), json.at)
        self.relations.append(Relation(head.relation, columns(names), json.at, made=True))
        self.made += [Rule((head,), body, json.at, joins=joins) for body in bodies]
        return head


def columns(names: list[str]) -> tuple[RelationColumn, ...]:
    """Columns whose kinds are not known yet, no two of one name."""
    unique: list[str] = []
    for name in names:
        unique.append(name if name not in unique else f"{name} {len(unique)}")
    return tuple(RelationColumn(name, "", "number") for name in unique)


def both(left: Conjunction, right: Formula) -> Conjunction:
    """Two formulas at once."""
    return Conjunction((*left.parts, *(right.parts if isinstance(right, Conjunction) else (right,))), left.at)


BUILDERS: dict[str, Callable[[StageTranslator, Json], StageResult]] = {
    "MatchA": lambda stages, json: stages.match(json, entity=False, value=False),
    "MatchEA": lambda stages, json: stages.match(json, entity=True, value=False),
    "MatchAV": lambda stages, json: stages.match(json, entity=False, value=True),
    "NameExpr": StageTranslator.name_expression,
    "Project": StageTranslator.project,
    "Join": StageTranslator.join,
    "Antijoin": StageTranslator.antijoin,
    "Union": StageTranslator.union,
    "Negate": StageTranslator.negate,
    "Filter": StageTranslator.filter,
    "Transform": StageTranslator.transform,
    "Aggregate": StageTranslator.aggregate,
    "Hector": StageTranslator.hector,
}
