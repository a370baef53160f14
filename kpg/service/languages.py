"""The three languages that rules are registered in, each as a program among what is known already.

    read_rules(language, text, name, known)   own relations, rules and reductions; checked, and nothing else done

What is known are base relations and rules of before, by name and kind. A rule of Datalog may leave its declaration out:
its columns are then named and typed after its first rule. Facts that a text states become rules without a body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from kpg.errors import NameTaken, OverLimit, ParseError, ProgramError, TypeMismatch
from kpg.query.datalog import parse
from kpg.query.edn import Attribute
from kpg.query.edn.edn_reader import Form, read_forms
from kpg.query.edn.queries import Reading
from kpg.query.edn.structure import is_query
from kpg.query.ir.compile import compile
from kpg.query.ir.literals import Atom, Conjunction, Formula, Negation, Truth
from kpg.query.ir.program import AggregateReduction, Directive, Fact, Program, Relation, RelationColumn, Rule
from kpg.query.ir.rewrites.single_head import single_head
from kpg.query.ir.terms import ConstantTerm, Kind, VariableTerm
from kpg.query.ir.undeclared import with_kinds
from kpg.query.json_plans.plan_rules import parse_plans
from kpg.query.source_text import did_you_mean, failure
from kpg.service.relations import is_attribute
from kpg.service.templates import TOKEN, Template, read_template, template_of

Language = Literal["datalog", "edn", "plan"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
MOST_FACTS = 1_000  # that a text may state: more are data
MOST_RULES = 5_000  # of one text, facts that nobody declared among them: a few seconds of everybody's time
MOST_CHARACTERS = 1_000_000
LONGEST = 1_000  # characters of a name, as messages have them
UNNAMED = "query"
Kinds: TypeAlias = dict[str, tuple[Kind, ...]]


@dataclass(frozen=True, slots=True)
class Text:
    """What a text of rules says: its own relations and rules, in terms of others."""

    names: tuple[str, ...]  # what can be asked for
    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...]
    reductions: tuple[AggregateReduction, ...]
    bases: tuple[Relation, ...] = ()  # declared and not derived: relations to be
    parameters: Relation | None = None  # of a query that has some: their token and values
    query: Form | None = None  # of a query in EDN


def read_rules(language: str, text: str, name: str | None, known: Mapping[str, Relation]) -> Text:
    """The rules of a text; whatever is wrong with them is raised here. No file is read, whatever the text says."""
    if len(text) > MOST_CHARACTERS:
        raise OverLimit(f"a text of rules has {len(text):,} characters", hint=f"At most {MOST_CHARACTERS:,} at once.")
    try:
        found = read_language(language, text, name, known)
    except RecursionError:
        raise ParseError("the text is nested too deep", hint="Name parts of it with rules.") from None
    check_names(found)
    return found


def check_names(text: Text) -> None:
    """Refuse names that could not be told to others, or that are ours."""
    for relation in (*text.relations, *text.bases):
        for name in (relation.name, *(column.name for column in relation.columns)):
            if len(name) > LONGEST or not name.isprintable():
                hint = f"A name has at most {LONGEST:,} characters, and no control characters."
                raise failure(ParseError, f"{name[:40]!r} cannot be a name", relation.at, hint=hint)
            if name == TOKEN and text.parameters is None:
                raise failure(ParseError, f"{name!r} cannot be a name", relation.at, hint="Leave out the space.")


def read_language(language: str, text: str, name: str | None, known: Mapping[str, Relation]) -> Text:
    """The rules of a text by its language."""
    if language == "datalog":
        return read_datalog(text, name or "rules", known)
    if language == "edn":
        return read_edn(read_forms(text), name or UNNAMED, known)
    if language == "plan":
        attributes, elsewhere = sorted_out(known)
        program = parse_plans(text, {each: Attribute(*both) for each, both in attributes.items()}, elsewhere=elsewhere)
        return checked(program, known)
    raise ProgramError(f"no language is called {language!r}", hint=did_you_mean(language, LANGUAGES))


def read_edn(forms: list[Form], name: str, known: Mapping[str, Relation], template: Template | None = None) -> Text:
    """Rules, a query, or both in EDN; a query with parameters is one over the relation of these."""
    attributes, elsewhere = sorted_out(known)
    template = template or template_of(forms)
    queries = [form for form in forms if is_query(form)]
    if template is None:
        text = checked(Reading(attributes, {}, name, elsewhere).program([], forms), known)
        return replace(text, query=queries[0]) if queries else text
    rules = [form for form in forms if not is_query(form)]
    program, parameters = read_template(template, name, attributes, elsewhere, rules)
    text = checked(program, {**known, parameters.name: parameters})
    return replace(text, parameters=parameters, query=template.query)


def sorted_out(known: Mapping[str, Relation]) -> tuple[Kinds, Kinds]:
    """The kinds of attributes, and those of all other relations."""
    both: tuple[Kinds, Kinds] = ({}, {})
    for name, relation in known.items():
        both[0 if is_attribute(name) else 1][name] = kinds(relation)
    return both


def checked(program: Program, known: Mapping[str, Relation]) -> Text:
    """The rules of a program that are its own, once the whole of it was compiled."""
    refuse_taken(program, known)
    own = tuple(relation for relation in program.relations if relation.name not in known)
    program = replace(program, rules=(*program.rules, *stated_as_rules(program.facts)), facts=())
    compile(program)
    return unique(Text(tuple(program.wanted()), own, program.rules, program.reductions))


def kinds(relation: Relation) -> tuple[Kind, ...]:
    """What the columns of a relation hold."""
    return tuple(column.kind for column in relation.columns)


def refuse_taken(program: Program, known: Mapping[str, Relation]) -> None:
    """Refuse rules by the name of something that is there already."""
    for rule in program.rules:
        for head in rule.heads:
            if head.relation in known:
                hint = "Choose another name, or unregister that one first."
                raise failure(NameTaken, f"there is {head.relation!r} already", head.at, hint=hint)


def stated_as_rules(facts: tuple[Fact, ...]) -> tuple[Rule, ...]:
    """Facts as rules that always hold."""
    if len(facts) > MOST_FACTS:
        raise OverLimit(f"a text of rules states {len(facts):,} facts", hint="Facts are data: transact them.")
    made = []
    for fact in facts:
        terms = tuple(ConstantTerm(value, kind_of(value), fact.at) for value in fact.values)
        body = Conjunction((Truth(True, fact.at),), fact.at)
        made.append(Rule((Atom(fact.relation, terms, fact.at),), body, fact.at))
    return tuple(made)


def kind_of(value: object) -> Kind | None:
    """The kind of a value as it is written; None for a whole number, which may be any number."""
    if isinstance(value, bool):
        return "bool"
    return "symbol" if isinstance(value, str) else "float" if isinstance(value, float) else None


# Datalog


def read_datalog(text: str, name: str, known: Mapping[str, Relation]) -> Text:
    """Rules in Datalog."""
    parsed = parse(text, name, includes=False)
    if len(parsed.rules) > MOST_RULES:
        hint = f"At most {MOST_RULES:,} at once; facts are data: transact them."
        raise OverLimit(f"a text states {len(parsed.rules):,} rules", hint=hint)
    program = single_head(replace(parsed, rules=(*parsed.rules, *stated_as_rules(parsed.facts)), facts=()))
    refuse_taken(program, known)
    for relation in program.relations:
        check_same(relation, known)
    declared = [relation for relation in program.relations if relation.name not in known]
    heads = dict.fromkeys(head.relation for rule in program.rules for head in rule.heads)
    bases = [relation for relation in declared if relation.name not in heads]
    if not heads and not bases:
        raise ParseError("no rule and no declaration", hint="A rule is written p(x) :- q(x, _).")
    written = {relation.name for relation in program.relations}
    guessed = [guess(each, program.rules) for each in heads if each not in written]
    wanted = [directive.relation for directive in program.directives if directive.kind != "input"]
    inputs = [*known, *(relation.name for relation in bases)]
    names = tuple(dict.fromkeys(wanted)) or tuple(heads)
    for each in wanted:
        if each in known:
            names = tuple(other for other in names if other != each)
    program = replace(
        program,
        relations=(*known.values(), *declared, *guessed),
        directives=(*(Directive("input", each) for each in inputs), *(Directive("output", each) for each in heads)),
    )
    if guessed:
        fixed = {relation.name: kinds(relation) for relation in (*known.values(), *declared)}
        inferred = with_kinds(program, fixed).by_name()
        guessed = [inferred[relation.name] for relation in guessed]
        program = replace(program, relations=(*known.values(), *declared, *guessed))
    compile(program)
    own = [plain(relation) for relation in (*declared, *guessed) if relation not in bases]
    return Text(names, tuple(own), program.rules, (), tuple(map(plain, bases)))


def check_same(relation: Relation, known: Mapping[str, Relation]) -> None:
    """Refuse a declaration that contradicts what is known."""
    found = known.get(relation.name)
    if found is not None and kinds(found) != kinds(relation):
        shown = ", ".join(f"{column.name}: {column.kind}" for column in found.columns)
        raise failure(
            TypeMismatch, f"{relation.name!r} is declared otherwise already", relation.at,
            hint=f"It is {relation.name}({shown}).",
        )  # fmt: skip


def guess(name: str, rules: tuple[Rule, ...]) -> Relation:
    """The relation of rules that nobody declared: columns named after the variables of the first."""
    head = next(head for rule in rules for head in rule.heads if head.relation == name)
    columns: list[RelationColumn] = []
    for place, term in enumerate(head.arguments):
        called = term.name if isinstance(term, VariableTerm) else f"c{place}"
        taken = any(column.name == called for column in columns)
        columns.append(RelationColumn(f"c{place}" if taken else called, "number", "number", head.at))
    return Relation(name, tuple(columns), head.at)


def plain(relation: Relation) -> Relation:
    """The relation with its columns' kinds for types: the names of types are each text's own."""
    return replace(relation, columns=tuple(replace(column, type=column.kind) for column in relation.columns))


# Names that the front ends make up, told apart from those of other texts


def unique(text: Text) -> Text:
    """The same rules, with relations that nobody named called after the first that somebody did."""
    if not text.names:
        raise ParseError("no rule and no query", hint="A text names something that can be asked for.")
    end = f" of {text.names[0]}"
    made = {each.name: each.name.removesuffix(end) + end for each in text.relations if each.name.startswith("@")}
    if not made:
        return text
    return replace(
        text,
        relations=tuple(replace(each, name=made.get(each.name, each.name)) for each in text.relations),
        rules=tuple(renamed_rule(rule, made) for rule in text.rules),
        reductions=tuple(
            replace(each, relation=made.get(each.relation, each.relation), source=made.get(each.source, each.source))
            for each in text.reductions
        ),
    )


def renamed_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    """A rule with other names for some relations."""
    heads = tuple(replace(head, relation=names.get(head.relation, head.relation)) for head in rule.heads)
    return replace(rule, heads=heads, body=renamed(rule.body, names))


def renamed(formula: Formula, names: Mapping[str, str]) -> Formula:
    """A formula with other names for some relations."""
    match formula:
        case Atom():
            return replace(formula, relation=names.get(formula.relation, formula.relation))
        case Negation():
            return replace(formula, formula=renamed(formula.formula, names))
        case Conjunction():
            return replace(formula, parts=tuple(renamed(part, names) for part in formula.parts))
    return formula
