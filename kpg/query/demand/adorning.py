"""Magic sets: rules that compute the demanded rows of relations, and rules for what is demanded.

    tc(x, z) :- e(x, y), tc(y, z).     asked by x:
        tc@x(x, z) :- tc@x.demand(x), e(x, y), tc@x(y, z).
        tc@x.demand(y) :- tc@x.demand(x), e(x, y).

Every row of tc@x is one of tc, and for a demanded x it has all of them, so negations and aggregates of demanded rows
mean what they meant. `full` names the relations that are computed as they were, with all they read; `whole` those that
somebody reads without asking, computed under their own name from rules that may still ask others by constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.query.demand.names import DemandedRelation
from kpg.query.demand.passing import Passing, given_first, in_order, is_known
from kpg.query.demand.right_linear import beginnings, hands_through, others, recursive_atom
from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation, atoms
from kpg.query.ir.program import AggregateReduction, Program, Relation, Rule
from kpg.query.ir.terms import ConstantTerm, Kind, Term, VariableTerm

OUTSIDE = ".outside"  # how a rule names the rows of its own relation that come from outside


@dataclass(frozen=True, slots=True)
class Start:
    """What the body of a demanded rule starts with: an atom, and what the head computes at the places asked by."""

    atom: Atom
    tests: tuple[Literal, ...]
    kinds: dict[str, Kind]


@dataclass(slots=True)
class Adorning:
    """One attempt: the rules and relations made so far, and what is still to be made."""

    program: Program
    full: frozenset[str]
    whole: frozenset[str]
    rules: list[Rule] = field(default_factory=list)
    reductions: list[AggregateReduction] = field(default_factory=list)
    relations: dict[str, Relation] = field(default_factory=dict)
    unasked: dict[str, str] = field(default_factory=dict)  # relations that turned out to be read whole, and why
    asked: dict[str, DemandedRelation] = field(default_factory=dict)
    _waiting: list[DemandedRelation] = field(default_factory=list)
    _known: dict[str, Relation] = field(default_factory=dict)
    _component: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = self.program.by_name()
        for number, stratum in enumerate(self.program.strata):
            self._component |= dict.fromkeys(stratum.relations, number)

    def need(self, relation: str, places: tuple[int, ...] = ()) -> DemandedRelation:
        """That the rows of a relation are needed, those asked for by some columns."""
        asked = DemandedRelation(self._known[relation], places)
        if asked.name not in self.asked:
            self.asked[asked.name] = asked
            self._waiting.append(asked)
        return asked

    def finish(self) -> None:
        """Make the rules of all that is needed."""
        while self._waiting:
            asked = self._waiting.pop()
            if asked.places:
                self._make_asked(asked)
            else:
                self._make_whole(asked.relation)

    def can_be_asked(self, name: str) -> bool:
        """Whether demand may reach into a relation: it is computed, and nobody needs it in full."""
        if name in self.full or name in self.whole:
            return False
        sources = [each.source for each in self._reductions_of(name)]
        return all(map(self.can_be_asked, sources)) if sources else bool(self.program.rules_of(name))

    # Relations

    def _make_asked(self, asked: DemandedRelation) -> None:
        """The demanded rows of a relation."""
        name = asked.relation.name
        self.relations[asked.name] = asked.rows()
        self.relations[asked.demand] = asked.of_arguments(asked.demand)
        rules = [*self.program.rules_of(name), *self._own_rows(asked)]
        if hands_through(rules, asked.places):
            self._make_way(rules, asked)
        else:
            for rule in rules:
                self._make_rule(rule, asked, start_of(rule, asked, asked.demand))
        for reduction in self._reductions_of(name):
            self._make_reduction(reduction, asked)

    def _make_whole(self, relation: Relation) -> None:
        """A relation under its own name; if in full, with all it reads as it was."""
        name = relation.name
        rules, reductions = self.program.rules_of(name), self._reductions_of(name)
        as_it_is = name in self.full or not (rules or reductions)
        self.relations[name] = relation if as_it_is else replace(relation, made=False)
        self.reductions += reductions
        for reduction in reductions:
            self._read_whole(reduction.source, f"{name} takes the {reduction.op} of all its rows")
        for rule in rules:
            if name in self.full:
                self.rules.append(rule)
                for atom, _ in atoms(rule.body):
                    self.need(atom.relation)
            else:
                self._make_rule(rule, DemandedRelation(relation, ()), None)

    def _read_whole(self, name: str, why: str) -> None:
        """That a relation is read without asking."""
        if self.can_be_asked(name):
            self.unasked.setdefault(name, why)
        self.need(name)

    def _reductions_of(self, name: str) -> list[AggregateReduction]:
        return [each for each in self.program.reductions if each.relation == name]

    def _own_rows(self, asked: DemandedRelation) -> list[Rule]:
        """A rule that reads rows from outside, for a relation that has some beside those of its rules."""
        name, at = asked.relation.name, asked.relation.at
        stated = any(fact.relation == name for fact in self.program.facts)
        if not stated and not any(each.kind == "input" and each.relation == name for each in self.program.directives):
            return []
        self.relations[name] = asked.relation
        every = tuple(VariableTerm(f"own#{place}", at) for place in range(asked.relation.arity))
        kinds = tuple((each.name, column.kind) for each, column in zip(every, asked.relation.columns, strict=True))
        return [Rule((Atom(name, every, at),), Conjunction((Atom(f"{name}{OUTSIDE}", every, at),), at), at, kinds)]

    def _make_reduction(self, reduction: AggregateReduction, asked: DemandedRelation) -> None:
        """An aggregate of the groups that are demanded."""
        inner, at = self.need(reduction.source, asked.places), reduction.at
        keys = tuple(VariableTerm(column.name, at) for column in asked.columns)
        kinds = tuple((column.name, column.kind) for column in asked.columns)
        body = Conjunction((Atom(asked.demand, keys, at),), at)
        self.rules.append(Rule((Atom(inner.demand, keys, at),), body, at, kinds))
        self.reductions.append(replace(reduction, relation=asked.name, source=inner.name))

    # Rules

    def _make_rule(self, rule: Rule, asked: DemandedRelation, start: Start | None) -> None:
        """A rule for demanded rows, and the rules for what it demands."""
        head = replace(rule.head, relation=asked.name)
        if start is None:
            passing = Passing(None)
            self._add(rule, head, [self._ask(literal, passing, rule) for literal in given_first(literals(rule))])
            return
        made = self._asked_body(rule, literals(rule), start)
        same = next((each for each in made[1:] if says_so(each, asked, start.atom)), None)
        if isinstance(same, Atom):  # its rows are demanded ones already
            made = [same, *in_order([each for each in made[1:] if each is not same], same)]
        self._add(rule, head, made, start.kinds)

    def _make_way(self, rules: list[Rule], asked: DemandedRelation) -> None:
        """The rules of a relation whose answers are handed through, by the ways that demand takes."""
        self.relations[asked.way] = asked.of_ways()
        at, first = asked.relation.at, beginnings(asked)
        kinds = {each.name: column.kind for each, column in zip(first, asked.columns, strict=True)}
        begin = Conjunction((Atom(asked.demand, first, at),), at)
        self.rules.append(Rule((Atom(asked.way, (*first, *first), at),), begin, at, tuple(kinds.items())))
        for rule in rules:
            start = start_of(rule, asked, asked.way, first)
            atom = recursive_atom(rule)
            if atom is not None:
                further = tuple(atom.arguments[place] for place in asked.places)
                made = self._asked_body(rule, others(rule, atom), start)
                self._add(rule, Atom(asked.way, (*first, *further), rule.at), made, start.kinds | kinds)
            else:
                terms = list(rule.head.arguments)
                for place, term in zip(asked.places, first, strict=True):
                    terms[place] = term
                made = self._asked_body(rule, literals(rule), start)
                head = Atom(asked.name, tuple(terms), rule.head.at)
                self._add(rule, head, made, start.kinds | kinds)

    def _asked_body(self, rule: Rule, body: Iterable[Literal], start: Start) -> list[Literal]:
        """A body in the order in which it is asked, each literal asking for what it needs."""
        passing = Passing(start.atom)
        ordered = in_order([*body, *start.tests], start.atom)
        return [start.atom, *(self._ask(literal, passing, rule, start.kinds) for literal in ordered)]

    def _ask(self, literal: Literal, passing: Passing, rule: Rule, kinds: dict[str, Kind] | None = None) -> Literal:
        """A literal of demanded rows; their demand becomes a rule."""
        made = literal
        if isinstance(literal, Atom):
            made = self._ask_atom(literal, passing, rule, kinds or {})
        elif isinstance(literal, Negation):
            assert isinstance(literal.formula, Atom)
            made = replace(literal, formula=self._ask_atom(literal.formula, passing, rule, kinds or {}))
        passing.ask(literal, made)
        return made

    def _ask_atom(self, atom: Atom, passing: Passing, rule: Rule, kinds: dict[str, Kind]) -> Atom:
        """An atom of demanded rows, and the rule that demands them."""
        name = atom.relation
        if name.endswith(OUTSIDE):
            return replace(atom, relation=name.removesuffix(OUTSIDE))
        if not self.can_be_asked(name):
            self.need(name)
            return atom
        known = passing.known(inside=self._component[name] == self._component[rule.head.relation])
        keys = min((each.keys for each in self._reductions_of(name)), default=len(atom.arguments))
        places = tuple(place for place, term in enumerate(atom.arguments[:keys]) if is_known(term, known))
        if not places:
            self._read_whole(name, f"a rule of {rule.head.relation} reads it with no argument bound ({rule.at})")
            return atom
        asked = self.need(name, places)
        wanted = Atom(asked.demand, tuple(atom.arguments[place] for place in places), atom.at)
        if wanted not in passing.prefix:
            self._add(rule, wanted, passing.prefix, kinds)
        return replace(atom, relation=asked.name)

    def _add(self, rule: Rule, head: Atom, body: Iterable[Literal], kinds: dict[str, Kind] | None = None) -> None:
        """One more rule, with the variables of another."""
        every = tuple(sorted({**dict(rule.kinds), **(kinds or {})}.items()))
        made = replace(rule, heads=(head,), body=Conjunction(tuple(body), rule.body.at), kinds=every)
        if made not in self.rules:
            self.rules.append(made)


def start_of(rule: Rule, asked: DemandedRelation, relation: str, before: tuple[Term, ...] = ()) -> Start:
    """What the body of a rule starts with, from what its head is asked by."""
    terms: list[Term] = []
    tests: list[Literal] = []
    kinds: dict[str, Kind] = {}
    for place, column in zip(asked.places, asked.columns, strict=True):
        term = rule.head.arguments[place]
        if not isinstance(term, (VariableTerm, ConstantTerm)):
            made = VariableTerm(f"asked#{place}", term.at)
            kinds[made.name] = column.kind
            tests.append(Comparison("=", made, term, term.at))
            term = made
        terms.append(term)
    return Start(Atom(relation, (*before, *terms), rule.at), tuple(tests), kinds)


def says_so(literal: Literal, asked: DemandedRelation, start: Atom) -> bool:
    """Whether a literal holds only where the head is demanded."""
    if not isinstance(literal, Atom) or literal.relation != asked.name:
        return False
    return tuple(literal.arguments[place] for place in asked.places) == start.arguments
