"""Translate the stages of JSON plans into formulas.

    {"MatchA": [0, ":knows", 1]}                    [?0 :knows ?1]
    {"Join": {"variables": [1], "left_plan": ..., "right_plan": ...}}      both formulas, with the variables they share

A stage becomes a formula and the variables that it binds, in order. A union, the right side of an antijoin and an
aggregate become relations of their own. Variables that a projection drops get unique names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from kpg.query.edn.clauses import attribute_name
from kpg.query.ir.body_variables import bound_by
from kpg.query.ir.instants import MILLISECONDS, truncated
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Formula, Negation, map_terms, variables
from kpg.query.ir.program import AggregateReduction, Relation, RelationColumn, Rule
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm
from kpg.query.json_plans.json_access import Json
from kpg.query.json_plans.pull_stages import build_level, build_pull
from kpg.query.source_text import did_you_mean, undefined

PREDICATES = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "=", "NEQ": "!="}
FUNCTIONS = {"ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "DIVIDE": "/"}
AGGREGATES = {
    "COUNT": "count",
    "SUM": "sum",
    "MIN": "min",
    "MAX": "max",
    "AVG": "mean",
    "VARIANCE": "variance",
    "MEDIAN": "median",
}
MAX_STAGE_DEPTH = 100  # each level takes several Python frames


@dataclass(frozen=True, slots=True)
class StageResult:
    """The formula of a stage, and the variables that it binds."""

    names: list[str]
    formula: Conjunction


@dataclass(slots=True)
class StageTranslator:
    """Translates stages, given attributes and rules by arity; collects generated relations, rules and reductions."""

    attributes: dict[str, tuple[Kind, ...]]
    rules: dict[str, int]
    relations: list[Relation] = field(default_factory=list)
    generated: list[Rule] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))
    depth: int = 0

    def stage(self, json: Json) -> StageResult:
        """Translate any stage."""
        name, inner = json.tagged()
        build = BUILDERS.get(name)
        if build is None:
            raise json.wrong(f"no stage is called {name!r}", did_you_mean(name, BUILDERS))
        self.depth += 1
        if self.depth > MAX_STAGE_DEPTH:
            raise json.wrong(f"nested more than {MAX_STAGE_DEPTH} deep")
        part = build(self, inner)
        self.depth -= 1
        return part

    # Leaves

    def match(self, json: Json, entity: bool, value: bool) -> StageResult:
        """Translate a data pattern, with a constant entity or value."""
        items = json.items()
        if len(items) != 3:
            raise json.wrong(f"found {len(items)} items, expected entity, attribute and value")
        terms = (self.term(items[0], entity), self.term(items[2], value))
        return self.pattern(items[1], terms)

    def pattern(self, name: Json, terms: tuple[Term, Term]) -> StageResult:
        """Translate an atom of an attribute, or of a rule with two columns."""
        names = list(dict.fromkeys(term.name for term in terms if isinstance(term, VariableTerm)))
        return StageResult(names, Conjunction((Atom(self.attribute(name), terms, name.at),), name.at))

    def attribute(self, json: Json) -> str:
        """Return the attribute, or the rule with two columns, of a name with or without a colon before it."""
        bound_names = {*self.attributes, *(rule for rule, arity in self.rules.items() if arity == 2)}
        name = attribute_name(json.text(), bound_names)
        if name is None:
            raise undefined("attribute", json.text(), bound_names, json.at)
        return name

    def term(self, json: Json, fixed: bool) -> Term:
        """Return a constant or a variable."""
        return json.constant() if fixed else VariableTerm(json.variable(), json.at)

    def name_expression(self, json: Json) -> StageResult:
        """Translate `[[0, 1], "knows"]`: a rule by name."""
        items = json.items()
        if len(items) != 2:
            raise json.wrong(f"found {len(items)} items, expected variables and a name")
        names, name = items[0].variables(), items[1].text()
        arity = self.rules.get(name, len(self.attributes.get(name, ())))
        if not arity:
            raise undefined("rule", name, [*self.rules, *self.attributes], items[1].at)
        if arity != len(names):
            raise items[0].wrong(f"{name} has {arity} columns, not {len(names)}")
        terms = tuple(VariableTerm(variable, items[0].at) for variable in names)
        return StageResult(list(dict.fromkeys(names)), Conjunction((Atom(name, terms, json.at),), json.at))

    # Stages on stages

    def project(self, json: Json) -> StageResult:
        """Translate a projection to some variables."""
        part = self.stage(json.member("plan"))
        names = self.bound(json.member("variables"), part)
        return StageResult(names, self.rename_dropped(part, set(names)))

    def rename_dropped(self, part: StageResult, kept: set[str]) -> Conjunction:
        """Return a formula in which all variables except the kept ones have unique names."""
        mark = next(self.numbers)
        dropped = {variable.name for variable in variables(part.formula)} - kept

        def rename(term: Term) -> Term:
            if isinstance(term, VariableTerm) and term.name in dropped:
                return VariableTerm(f"{term.name}#{mark}", term.at)
            return term

        renamed = map_terms(part.formula, rename)
        assert isinstance(renamed, Conjunction)
        return renamed

    def bound(self, json: Json, part: StageResult) -> list[str]:
        """Return variables that a stage must bind; raise ParseError if it does not."""
        names = json.variables()
        for item, name in zip(json.items(), names, strict=True):
            if name not in part.names:
                raise item.wrong(f"variable {name} is not bound", f"The stage binds {', '.join(part.names)}.")
        return names

    def join(self, json: Json) -> StageResult:
        """Translate a join of two stages."""
        left, right = self.stage(json.member("left_plan")), self.stage(json.member("right_plan"))
        shared = json.member("variables")
        self.bound(shared, left)
        self.bound(shared, right)
        names = list(dict.fromkeys([*shared.variables(), *left.names, *right.names]))
        return StageResult(names, conjoin(left.formula, right.formula))

    def antijoin(self, json: Json) -> StageResult:
        """Translate a stage without the rows that match another stage."""
        left, right = self.stage(json.member("left_plan")), self.stage(json.member("right_plan"))
        shared = json.member("variables")
        self.bound(shared, left)
        names = self.bound(shared, right)
        excluded = self.relation("antijoin", names, [right.formula], json)
        return StageResult(left.names, Conjunction((*left.formula.parts, Negation(excluded, json.at)), json.at))

    def union(self, json: Json) -> StageResult:
        """Translate the union of several stages, without the rows of negated ones."""
        result_variables = json.member("variables")
        added: list[Conjunction] = []
        removed: list[Conjunction] = []
        for item in json.member("plans").items():
            negated = isinstance(item.value, dict) and set(item.value) == {"Negate"}
            part = self.stage(item.member("Negate") if negated else item)
            self.bound(result_variables, part)
            (removed if negated else added).append(part.formula)
        if not added:
            raise json.wrong("a union of nothing", "At least one of its plans is not negated.")
        names = result_variables.variables()
        atom: Formula = self.relation("union", names, added, json)
        if removed:
            atom = Conjunction((atom, Negation(self.relation("negate", names, removed, json), json.at)), json.at)
        return StageResult(list(dict.fromkeys(names)), conjoin(Conjunction((), json.at), atom))

    def negate(self, json: Json) -> StageResult:
        """Raise ParseError: Negate has a meaning only inside a Union."""
        raise json.wrong("Negate outside a Union", "Negate a plan inside a Union, or use Antijoin.")

    def filter(self, json: Json) -> StageResult:
        """Translate a stage restricted by a comparison."""
        part = self.stage(json.member("plan"))
        op = self.word(json.member("predicate"), PREDICATES, "predicate")
        left, right = self.arguments(json, part, 2)
        condition = Comparison(op, left, right, json.at)
        return StageResult(part.names, Conjunction((*part.formula.parts, condition), json.at))

    def transform(self, json: Json) -> StageResult:
        """Translate a stage with one more, computed variable."""
        part = self.stage(json.member("plan"))
        function = json.member("function")
        arguments = self.arguments(json, part, None)
        first = self.truncate(json, arguments) if function.value == "TRUNCATE" else arguments[0]
        if function.value != "TRUNCATE":
            functor = self.word(function, FUNCTIONS, "function")
            for term in arguments[1:]:
                first = CallTerm(functor, (first, term), None, json.at)
        result = json.member("result_variable", "result_sym")
        if result.variable() in part.names:
            raise result.wrong(f"variable {result.variable()} is bound already")
        equation = Comparison("=", VariableTerm(result.variable(), result.at), first, json.at)
        return StageResult([*part.names, result.variable()], Conjunction((*part.formula.parts, equation), json.at))

    def truncate(self, json: Json, arguments: list[Term]) -> Term:
        """Translate TRUNCATE: the beginning of an instant's hour, or of the interval that a second argument names."""
        instant, *rest = arguments
        unit = rest[0].value if rest and isinstance(rest[0], ConstantTerm) else ":hour"
        name = str(unit).removeprefix(":")
        if len(rest) > 1 or name not in MILLISECONDS:
            raise json.wrong(f"cannot truncate to {unit!r}", f"The intervals are {', '.join(MILLISECONDS)}.")
        return truncated(instant, name, json.at)

    def arguments(self, json: Json, part: StageResult, size: int | None) -> list[Term]:
        """Return the arguments of a function or predicate: constants where given, variables at the other positions."""
        names = iter(self.bound(json.member("variables"), part))
        constants = json.optional("constants")
        terms: list[Term] = []
        for item in constants.items() if constants is not None else []:
            name = next(names, None) if item.value is None else None
            if item.value is None and name is None:
                continue
            terms.append(item.constant() if name is None else VariableTerm(name, item.at))
        terms += [VariableTerm(name, json.at) for name in names]
        if not terms or size not in (None, len(terms)):
            raise json.wrong(f"found {len(terms)} arguments, expected {size or 'at least one'}")
        return terms

    def word(self, json: Json, words: dict[str, str], what: str) -> str:
        """Return the operation that a word names; raise ParseError if it names none."""
        if json.value not in list(words):
            raise json.wrong(f"no {what} is called {json.value!r}", did_you_mean(str(json.value), words))
        return words[json.value]

    def aggregate(self, json: Json) -> StageResult:
        """Translate the groups of a stage with their aggregated values."""
        part = self.stage(json.member("plan"))
        keys = list(dict.fromkeys(self.bound(json.member("key_variables"), part)))
        targets = self.bound(json.member("aggregation_variables"), part)
        functions = [self.word(item, AGGREGATES, "aggregate") for item in json.member("aggregation_fns").items()]
        result_variables = json.member("variables")
        if len(functions) != len(targets) or not targets:
            raise json.wrong(f"{len(functions)} aggregates of {len(targets)} variables")
        if sorted(result_variables.variables()) != sorted([*keys, *targets]):
            raise result_variables.wrong("the variables are the keys and the aggregated variables, each once")
        bound = bound_by(part.formula.parts)  # a solution that a projection made equal to another one counts as well
        names = [*part.names, *(variable.name for variable in variables(part.formula) if variable.name in bound)]
        solutions = list(dict.fromkeys([*keys, *names]))
        source = self.relation("solutions", solutions, [part.formula], json)
        atoms: list[Formula] = []
        results = unique_results(targets, keys, next(self.numbers))
        for op, target, result in zip(functions, targets, results, strict=True):
            name = f"@{op}.{next(self.numbers)}"
            column = None if op == "count" else solutions.index(target)
            self.relations.append(Relation(name, columns([*keys, " value"]), json.at, generated=True))
            self.reductions.append(AggregateReduction(name, source.relation, len(keys), op, column, json.at))
            atoms.append(Atom(name, tuple(VariableTerm(variable, json.at) for variable in [*keys, result]), json.at))
        named = in_order(result_variables.variables(), [*keys, *targets], [*keys, *results])
        return StageResult(named, Conjunction(tuple(atoms), json.at))

    # Hector

    def hector(self, json: Json) -> StageResult:
        """Translate a Hector join: all assignments of variables that satisfy the bindings."""
        parts = [self.binding(item) for item in json.member("bindings").items()]
        if not parts:
            raise json.wrong("no bindings", "Without bindings there would be infinitely many solutions.")
        formula = Conjunction(tuple(literal for part in parts for literal in part.formula.parts), json.at)
        everything = StageResult(list(dict.fromkeys(name for part in parts for name in part.names)), formula)
        names = self.bound(json.member("variables"), everything)
        order = json.optional("order")
        joins = " ".join(["hector", *(order.variables() if order is not None else [])])
        if not names:
            return StageResult(names, self.rename_dropped(everything, set()))
        atom = self.relation("hector", list(dict.fromkeys(names)), [formula], json, joins)
        return StageResult(names, Conjunction((atom,), json.at))

    def binding(self, json: Json) -> StageResult:
        """Translate one binding: an attribute, a constant, a comparison, or the negation of one."""
        name, inner = json.tagged()
        match name:
            case "Attribute":
                pair = inner.member("variables").items()
                if len(pair) != 2:
                    raise inner.wrong("an attribute binds two variables")
                ends = self.term(pair[0], False), self.term(pair[1], False)
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
                left, right = (self.term(variable, False) for variable in pair)
                return StageResult([], Conjunction((Comparison(op, left, right, inner.at),), inner.at))
            case "Not":
                part = self.binding(inner.member("binding"))
                return StageResult(
                    [], Conjunction(tuple(Negation(literal, inner.at) for literal in part.formula.parts), inner.at)
                )
        raise json.wrong(
            f"no binding is called {name!r}", did_you_mean(name, ["Attribute", "Constant", "BinaryPredicate", "Not"])
        )

    # Relations

    def relation(self, word: str, names: list[str], bodies: list[Conjunction], json: Json, joins: str = "") -> Atom:
        """Add a relation of these variables that holds where one of the formulas does; return its atom."""
        variables = tuple(VariableTerm(variable, json.at) for variable in names)
        head = Atom(f"@{word}.{next(self.numbers)}", variables, json.at)
        self.relations.append(Relation(head.relation, columns(names), json.at, generated=True))
        self.generated += [Rule((head,), body, json.at, joins=joins) for body in bodies]
        return head


def columns(names: list[str]) -> tuple[RelationColumn, ...]:
    """Return columns with unique names and kinds that are not inferred yet."""
    unique: list[str] = []
    for name in names:
        unique.append(name if name not in unique else f"{name} {len(unique)}")
    return tuple(RelationColumn(name, "", "number") for name in unique)


def unique_results(targets: list[str], keys: list[str], mark: int) -> list[str]:
    """Return a variable for each aggregate: the aggregated one, or a new one if that is a key or aggregated already."""
    names: list[str] = []
    for number, target in enumerate(targets):
        taken = target in names or target in keys
        names.append(f"{target}#{mark}.{number}" if taken else target)
    return names


def in_order(names: list[str], before: list[str], after: list[str]) -> list[str]:
    """Return variables in the order of `names`, where each of `before` has become that of `after` in its position."""
    left = list(zip(before, after, strict=True))
    ordered = []
    for name in names:
        pair = next(pair for pair in left if pair[0] == name)
        left.remove(pair)
        ordered.append(pair[1])
    return ordered


def conjoin(left: Conjunction, right: Formula) -> Conjunction:
    """Return the conjunction of two formulas."""
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
    "PullLevel": build_level,
    "Pull": build_pull,
}
