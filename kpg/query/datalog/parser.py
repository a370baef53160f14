"""Parse Datalog text into a program: recursive descent, one method for each construct.

    parse(text)            a program from a string
    parse_file(path)       a program from a file, and the files it includes

Every ParseError has line and column, shows the line, and says what to write instead. Constructs that Soufflé has and
kpg does not (lattices, ...) are recognised and refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from kpg.errors import BadPlan, ParseError
from kpg.query.datalog.component_parser import parse_component, parse_instantiation, parse_override
from kpg.query.datalog.components import Component, ComponentExpansion
from kpg.query.datalog.execution_plans import ExecutionPlan
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.names import AS_WRITTEN, Names
from kpg.query.datalog.program_builder import ProgramBuilder
from kpg.query.datalog.relation_qualifiers import check_repeated, subsumptive_rule, with_kind
from kpg.query.datalog.rule_parser import RuleParser, integer_constant, unsupported
from kpg.query.datalog.source_files import SourceFiles
from kpg.query.datalog.value_parser import is_constructed, parse_constructed, parse_functor
from kpg.query.ir.literals import Atom
from kpg.query.ir.program import Directive, Program, Relation, RelationColumn, Rule, SizeLimit
from kpg.query.join_strategy import check_hint
from kpg.query.source_text import Position, SourceText, did_you_mean, failure

DIRECTIVES = (
    ".decl",
    ".type",
    ".functor",
    ".input",
    ".output",
    ".printsize",
    ".limitsize",
    ".include",
    ".comp",
    ".init",
)
REFUSED_DIRECTIVES = {".lattice": "lattices"}
IGNORED_QUALIFIERS = {"btree", "brie", "btree_delete", "no_inline"}
MAGIC_QUALIFIERS = {"magic", "no_magic"}
QUALIFIERS = {"input", "output", "printsize"}
SPECIAL_QUALIFIERS = {"eqrel", "choice"}
AGGREGATING_QUALIFIERS = {"btree_min", "btree_max", "btree_sum"}
OTHER_QUALIFIERS = {"inline", "overridable"}
INSERT_ONLY = "insert-only"
MAGIC_PRAGMAS = {"magic-transform": "magic", "magic-transform-exclude": "no_magic"}


def parse(text: str, name: str = "program", includes: bool = True) -> Program:
    """Parse a program. Without `includes`, refuse preprocessor lines and includes; no file is opened then."""
    files = SourceFiles(allowed=includes)
    return read_program(files, files.tokens(SourceText(name, text)))


def parse_file(
    path: str | PathLike[str],
    directories: Sequence[str | PathLike[str]] = (),
    macros: Mapping[str, str] | None = None,
) -> Program:
    """Parse the program in a file; `directories` are searched for included files."""
    files = SourceFiles(directories=tuple(map(Path, directories)), macros=macros or {})
    return read_program(files, files.main(Path(path)))


def read_program(files: SourceFiles, tokens: list[Token]) -> Program:
    """Build a program from the tokens of its main file."""
    builder = ProgramBuilder(files)
    ProgramParser(tokens, builder).statements()
    for body, names, overridden in ComponentExpansion(builder).bodies():
        instance = builder.instance()
        ProgramParser(body, instance, names).statements()
        builder.add_instance(instance, overridden)
    return builder.program()


class ProgramParser(RuleParser):
    """Parses the statements of one text into a builder."""

    def __init__(
        self,
        tokens: list[Token],
        builder: ProgramBuilder,
        names: Names = AS_WRITTEN,
        component: Component | None = None,
    ) -> None:
        super().__init__(tokens, builder.types, names)
        self.component = component  # the component with this body, if any
        self.builder = builder
        self.latest_rule: Rule | None = None  # if the last statement was one

    def statements(self) -> None:
        """Parse statements up to the end of the text."""
        while self.token.kind != "end":
            rules = len(self.builder.rules)
            if self.token.kind == "directive":
                self.directive()
            elif self.token.kind == "preprocessor":
                raise self.preprocessor()
            elif self.token.text == "." and self.is_followed_by_adjacent_name():
                raise self.unknown_directive()
            else:
                self.rule()
            self.latest_rule = self.builder.rules[-1] if len(self.builder.rules) > rules else None

    # Directives

    def directive(self) -> None:
        """Parse one directive."""
        token = self.advance()
        match token.text:
            case ".decl":
                self.declaration()
            case ".type":
                self.type_declaration()
            case ".number_type" | ".symbol_type":
                name = self.expect_new_type()
                self.types.declare(name.text, "subtype", [(token.text[1:].removesuffix("_type"), token.at)], name.at)
            case ".input" | ".output" | ".printsize":
                self.input_or_output(token)
            case ".limitsize":
                self.size_limit()
            case ".include":
                self.include()
            case ".once":
                pass  # every file is read once
            case ".functor":
                self.types.declare_functor(parse_functor(self))
            case ".pragma":
                self.pragma()
            case ".plan":
                self.plan(token)
            case ".comp":
                parse_component(self, token)
            case ".init":
                parse_instantiation(self)
            case ".override":
                parse_override(self)
            case _:
                raise unsupported(REFUSED_DIRECTIVES[token.text], token.at, token.text)

    def pragma(self) -> None:
        """Parse `.pragma "joins" "hector"`, `"insert-only"` and `"magic-transform" "*"`; ignore other pragmas."""
        if self.token.kind != "string":
            raise self.unexpected("the name of a pragma in quotes")
        words = []
        while self.token.kind == "string":
            words.append(self.advance())
            self.builder.insert_only |= words[-1].text.strip('"') == INSERT_ONLY
        if words and words[0].text.strip('"') in MAGIC_PRAGMAS:
            names = [name.strip() for word in words[1:] for name in word.text.strip('"').split(",")]
            self.builder.magic[MAGIC_PRAGMAS[words[0].text.strip('"')]] += [name for name in names if name]
        if words and words[0].text.strip('"') == "joins":
            if len(words) < 2:
                hint = 'For example .pragma "joins" "delta".'
                raise failure(ParseError, "the pragma joins has no value", words[0].at, hint=hint)
            self.builder.joins = words[1].text.strip('"')
            try:
                check_hint(self.builder.joins)
            except BadPlan as error:
                raise failure(ParseError, error.what, words[1].at, hint=error.hint) from None

    def unknown_directive(self) -> ParseError:
        """Return the error for a '.' and a name at the beginning of a statement."""
        dot = self.advance().at
        name = f".{self.token.text}"
        at = dot._replace(length=len(name))
        return failure(ParseError, f"no directive is called {name!r}", at, hint=did_you_mean(name, DIRECTIVES))

    def declaration(self) -> None:
        """Parse `.decl edge(x: number, y: number) input`; one declaration may have several names."""
        names = [self.expect_name("a relation")]
        while self.take(","):
            names.append(self.expect_name("a relation"))
        if self.token.text == "=":
            raise unsupported("relations of new rows", self.token.at, "debug_delta")
        columns = self.columns()
        names = [name._replace(text=self.names.declared(name.text)) for name in names]
        self.builder.relations += [Relation(name.text, columns, name.at) for name in names]
        given: list[Token] = []
        while self.token.kind == "name" and not self.is_followed_by("(", ",", ":-", "."):
            given.append(self.advance())
            check_repeated(given)
            self.qualifier(given[-1], names)

    def columns(self) -> tuple[RelationColumn, ...]:
        """Parse `(x: number, y: symbol)`."""
        self.expect_symbol("(", "the columns, as in (x: number)")
        columns: list[RelationColumn] = []
        while not self.take(")"):
            if columns:
                self.expect_symbol(",", "',' or ')'")
            name = self.expect_name("a column")
            self.expect_symbol(":", f"the type of {name.text}, as in {name.text}: number")
            type_ = self.expect_type()
            self.builder.type_positions[name.at] = type_.at
            if self.token.text == "<":
                raise unsupported("lattices", self.token.at, f"{type_.text}<>")
            columns.append(RelationColumn(name.text, type_.text, "number", name.at))  # `program` sets the kind
        return tuple(columns)

    def expect_new_type(self) -> Token:
        """Consume the name of a type that is declared here."""
        name = self.expect_name("a type")
        return name._replace(text=self.names.declared(name.text))

    def qualifier(self, word: Token, names: list[Token]) -> None:
        """Apply a qualifier behind a declaration."""
        if word.text in QUALIFIERS:
            self.builder.directives += [Directive(word.text, name.text, (), word.at) for name in names]
        elif word.text == "overridable":
            self.builder.overridable.update(name.text for name in names)
        elif word.text in MAGIC_QUALIFIERS:
            self.builder.magic[word.text] += [name.text for name in names]
        elif word.text == "inline":
            relations = self.builder.relations
            relations[-len(names) :] = [replace(relation, inline=True) for relation in relations[-len(names) :]]
        elif word.text in SPECIAL_QUALIFIERS:
            before = self.index
            for number in range(-len(names), 0):  # all names of a declaration have the same columns
                self.index = before
                self.builder.relations[number] = with_kind(self.builder.relations[number], word, self)
        elif word.text in AGGREGATING_QUALIFIERS:
            raise unsupported("representations that aggregate", word.at, word.text)
        elif word.text not in IGNORED_QUALIFIERS:
            known = QUALIFIERS | MAGIC_QUALIFIERS | OTHER_QUALIFIERS | IGNORED_QUALIFIERS | SPECIAL_QUALIFIERS
            nearest = did_you_mean(word.text, known)
            raise failure(ParseError, f"no qualifier is called {word.text!r}", word.at, hint=nearest)

    def type_declaration(self) -> None:
        """Parse `.type A <: symbol`, `.type A = symbol` or `.type A = B | C`."""
        name = self.expect_new_type()
        if self.take("<:"):
            supertype = self.expect_type()
            self.types.declare(name.text, "subtype", [(supertype.text, supertype.at)], name.at)
            return
        if not self.take("="):
            if self.is_at_statement():  # `.type A` of old Soufflé: a symbol
                self.types.declare(name.text, "subtype", [("symbol", name.at)], name.at)
                return
            raise self.unexpected("'<:' or '='")
        if is_constructed(self):
            self.types.declare_constructed(name.text, parse_constructed(self), name.at)
            return
        parts = [self.expect_type()]
        while self.take("|"):
            parts.append(self.expect_type())
        form = "alias" if len(parts) == 1 else "union"
        self.types.declare(name.text, form, [(part.text, part.at) for part in parts], name.at)

    def is_at_statement(self) -> bool:
        """Return whether a statement or the end of the text comes next."""
        is_rule = self.token.kind == "name" and self.is_followed_by("(", ".")
        return is_rule or self.token.kind in ("directive", "end")

    def input_or_output(self, token: Token) -> None:
        """Parse `.input edge, node(filename="facts.csv", delimiter=",")`; options apply to all names before them."""
        names: list[Token] = []
        while True:
            names.append(self.expect_qualified_name("a relation"))
            options = self.options() if self.take("(") else ()
            is_last = not self.take(",")
            if options or is_last:
                self.builder.directives += [
                    Directive(token.text[1:], self.names.relation(name.text), options, name.at) for name in names
                ]
                names = []
            if is_last:
                return

    def size_limit(self) -> None:
        """Parse `.limitsize path(n=100)`. Demand must not restrict the relation: the limit counts its rows."""
        names = [self.expect_qualified_name("a relation")]
        while self.take(","):
            names.append(self.expect_qualified_name("a relation"))
        self.expect_symbol("(", "the limit, as in (n=100)")
        options = dict(self.options())
        rows = options.get("n", "")
        if set(options) != {"n"} or not rows.isdecimal() or not 0 < len(rows) < 19:
            hint = f"For example .limitsize {names[0].text}(n=100)."
            raise failure(ParseError, "a size limit is a number n of rows", names[0].at, hint=hint)
        for name in names:
            relation = self.names.relation(name.text)
            self.builder.limits.append(SizeLimit(relation, int(rows), name.at))
            self.builder.magic["no_magic"].append(relation)

    def options(self) -> tuple[tuple[str, str], ...]:
        """Parse `filename="x", IO=file)`."""
        options: list[tuple[str, str]] = []
        while not self.take(")"):
            if options:
                self.expect_symbol(",", "',' or ')'")
            key = self.expect_name("an option")
            self.expect_symbol("=", f"'=' and the value of {key.text}")
            if self.token.kind not in ("string", "name", "number"):
                raise self.unexpected(f"the value of {key.text}")
            options.append((key.text, self.advance().text))
        return tuple(options)

    def include(self) -> None:
        """Replace `.include "file"` by the tokens of the file, so that an instance of a component does not read it."""
        name = self.expect("string", "a file in quotes")
        included = self.builder.files.included(name)
        self.tokens[self.index - 2 : self.index] = included
        self.index -= 2

    def preprocessor(self) -> ParseError:
        """Return the error for a preprocessor line in a text that is not preprocessed."""
        if self.token.text.replace(" ", "").replace("\t", "") == "#include":
            hint = "Send the text of the file itself."
            return failure(ParseError, "files are not included here", self.token.at, hint=hint)
        hint = "Send the text after preprocessing."
        return failure(ParseError, f"{self.token.text} is not accepted here", self.token.at, hint=hint)

    def plan(self, start: Token) -> None:
        """Parse `.plan 0: (1, 2), 1: (2, 1)` behind a rule; it is checked, but kpg's planner orders the joins."""
        if self.latest_rule is None:
            raise failure(ParseError, ".plan follows no rule", start.at, hint="Write it behind the rule it is for.")
        orders: list[tuple[int, tuple[int, ...], Position]] = []
        while not orders or self.take(","):
            version = self.expect("number", "the number of a version")
            self.expect_symbol(":", "':' and an order, as in 0: (2, 1)")
            at = self.expect_symbol("(", "'(' and the numbers of atoms").at
            order: list[int] = []
            while not self.take(")"):
                if order:
                    self.expect_symbol(",", "',' or ')'")
                order.append(plan_number(self.expect("number", "the number of an atom")))
            orders.append((plan_number(version), tuple(order), at))
        self.builder.plans.append(ExecutionPlan(self.latest_rule, tuple(orders)))

    # Rules and facts

    def rule(self) -> None:
        """Parse `a(x), b(x) :- body.` or `a(1).`"""
        start = self.token.at
        heads = [self.head()]
        while self.take(","):
            heads.append(self.head())
        if self.take("."):
            self.builder.facts += heads
            return
        dominating = self.head() if self.take("<=") else None
        self.expect_symbol(":-", "':-', ',' or '.'")
        body = self.disjunction()
        self.expect_symbol(".", "',' or ';' and more of the body, or '.' at its end")
        if dominating is not None:
            self.builder.rules.append(subsumptive_rule(heads, dominating, body, start))
        else:
            self.builder.rules.append(Rule(tuple(heads), body, start))

    def head(self) -> Atom:
        """Parse an atom in the head of a rule."""
        if self.token.kind != "name":
            raise self.unexpected("a rule, fact or directive")
        return self.atom(self.expect_qualified_name("a relation"))


def plan_number(token: Token) -> int:
    """Return the number of a version or atom."""
    value = integer_constant(token).value
    assert isinstance(value, int)
    return value
