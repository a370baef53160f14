"""Datalog text as a program: recursive descent, one function for each thing that can be written.

    parse(text)            a program from a string
    parse_file(path)       a program from a file, and the files it includes

Everything refused is refused with its line and column, the line itself, and what to write instead. What Soufflé has
and this does not (components, records, inlining, ...) is recognised and refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from kpg.errors import BadPlan, ParseError, Unavailable
from kpg.query.datalog.declarations import Types
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.rule_parser import Bodies
from kpg.query.ir.literals import Atom, Conjunction, Truth
from kpg.query.ir.program import Directive, Fact, Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import ConstantTerm
from kpg.query.join_strategy import check_hint
from kpg.query.source_text import NOWHERE, Position, SourceText, did_you_mean, failure

DIRECTIVES = (".decl", ".type", ".input", ".output", ".printsize", ".include")
REFUSED = {
    ".comp": "components", ".init": "components", ".override": "components", ".functor": "functors of your own",
    ".limitsize": "limits on sizes", ".lattice": "lattices",
}  # fmt: skip
HARMLESS = {"btree", "brie", "btree_delete", "no_inline", "no_magic", "magic", "overridable"}
QUALIFIERS = {"input", "output", "printsize"}
REFUSED_QUALIFIERS = {
    "inline": ("inlining is", "Leave the word out: the relation is then computed, with the same rows."),
    "eqrel": ("equivalence relations are", "State reflexivity, symmetry and transitivity as rules."),
}
MOST_INCLUDES = 64  # deep
INSERT_ONLY = "insert-only"


def parse(text: str, name: str = "program", includes: bool = True) -> Program:
    """The program that a text says; without `includes` a text that names files is refused and none is opened."""
    reader = TokenReader(includes)
    reader.read(SourceText(name, text), Path("."))
    return reader.program()


def parse_file(path: str | PathLike[str]) -> Program:
    """The program in a file."""
    reader = TokenReader()
    reader.read_file(Path(path), None)
    return reader.program()


class TokenReader:
    """What has been read so far, of one file or several."""

    def __init__(self, includes: bool = True) -> None:
        self.includes = includes
        self.types = Types()
        self.relations: list[Relation] = []
        self.rules: list[Rule] = []
        self.stated: list[Atom] = []
        self.type_at: dict[Position, Position] = {}  # where the type of a column stands, by where its name does
        self.directives: list[Directive] = []
        self.insert_only = False
        self.joins = ""  # how rules shall be joined
        self.open: list[Path] = []
        self.seen: set[Path] = set()

    def program(self) -> Program:
        """All of it; only now is it known what types and relations there are."""
        relations = tuple(self.typed(relation) for relation in self.relations)
        arities = {relation.name: relation.arity for relation in relations}
        rules, facts = list(self.rules), list[Fact]()
        for head in self.stated:
            fact = fact_of(head, arities)
            if fact is not None:
                facts.append(fact)
            else:  # something in it must be computed, or is wrong
                rules.append(Rule((head,), Conjunction((Truth(True, head.at),), head.at), head.at))
        types = tuple(self.types.resolved().values())
        made = Program(relations, tuple(rules), tuple(facts), tuple(self.directives), types)
        return replace(made, insert_only=self.insert_only, joins=self.joins)

    def typed(self, relation: Relation) -> Relation:
        """A relation with the kinds of its columns."""
        columns = (replace(each, kind=self.types.kind(each.type, self.type_at[each.at])) for each in relation.columns)
        return replace(relation, columns=tuple(columns))

    def read_file(self, path: Path, at: Position | None) -> None:
        """Read a file; one that was read before is left out."""
        try:
            found = path.resolve()
            if found in self.seen and at is not None:
                return
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            if at is not None:
                raise failure(ParseError, f"cannot include {str(path)!r}", at, detail=f"{error}") from None
            raise Unavailable(f"cannot read {path}", detail=str(error)) from None
        if len(self.open) >= MOST_INCLUDES:
            raise failure(ParseError, f"files are included more than {MOST_INCLUDES} deep", at or NOWHERE)
        self.seen.add(found)
        self.open.append(found)
        self.read(SourceText(str(path), text), path.parent)
        self.open.pop()

    def read(self, source: SourceText, folder: Path) -> None:
        """Read a text."""
        Statements(source, self, folder).all()


class Statements(Bodies):
    """The statements of one text."""

    def __init__(self, source: SourceText, reader: TokenReader, folder: Path) -> None:
        super().__init__(source, reader.types)
        self.reader = reader
        self.folder = folder

    def all(self) -> None:
        """Read until the end."""
        while self.token.sort != "end":
            if self.token.sort == "directive":
                self.directive()
            elif self.token.sort == "preprocessor":
                self.preprocessor()
            elif self.token.text == "." and self.follows_name():
                raise self.unknown_directive()
            else:
                self.rule()

    # Directives

    def directive(self) -> None:
        """One directive."""
        token = self.advance()
        match token.text:
            case ".decl":
                self.declaration()
            case ".type":
                self.type_declaration()
            case ".number_type" | ".symbol_type":
                name = self.expect_name("a type")
                self.types.declare(name.text, "subtype", [(token.text[1:].removesuffix("_type"), token.at)], name.at)
            case ".input" | ".output" | ".printsize":
                self.input_or_output(token)
            case ".include":
                self.include(self.expect("string", "a file in quotes"))
            case ".pragma":
                self.pragma()
            case ".plan":
                self.skip_plan()
            case _:
                raise failure(ParseError, f"{REFUSED[token.text]} are not supported ({token.text})", token.at)

    def pragma(self) -> None:
        """`.pragma "joins" "hector"`, and that rows only come; others change nothing."""
        words = []
        while self.token.sort == "string":
            words.append(self.advance())
            self.reader.insert_only |= words[-1].text.strip('"') == INSERT_ONLY
        if words and words[0].text.strip('"') == "joins":
            if len(words) < 2:
                hint = 'As in .pragma "joins" "delta".'
                raise failure(ParseError, "a pragma without a value", words[0].at, hint=hint)
            self.reader.joins = words[1].text.strip('"')
            try:
                check_hint(self.reader.joins)
            except BadPlan as error:
                raise failure(ParseError, error.what, words[1].at, hint=error.hint) from None

    def unknown_directive(self) -> ParseError:
        """The error for a '.' and a name at the beginning of a statement."""
        at = self.advance().at
        name = f".{self.token.text}"
        place = Position(at.source, at.line, at.column, len(name))
        return failure(ParseError, f"no directive is called {name!r}", place, hint=did_you_mean(name, DIRECTIVES))

    def declaration(self) -> None:
        """`.decl edge(x: number, y: number) input`, or several names at once."""
        names = [self.expect_name("a relation")]
        while self.take(","):
            names.append(self.expect_name("a relation"))
        columns = self.columns()
        self.reader.relations += [Relation(name.text, columns, name.at) for name in names]
        while self.token.sort == "name" and not self.follows("(", ",", ":-", "."):
            self.qualifier(self.advance(), names)

    def columns(self) -> tuple[RelationColumn, ...]:
        """`(x: number, y: symbol)`"""
        self.expect_symbol("(", "the columns, as in (x: number)")
        columns: list[RelationColumn] = []
        while not self.take(")"):
            if columns:
                self.expect_symbol(",", "',' or ')'")
            name = self.expect_name("a column")
            self.expect_symbol(":", f"the type of {name.text}, as in {name.text}: number")
            type_ = self.expect_type()
            self.reader.type_at[name.at] = type_.at
            columns.append(RelationColumn(name.text, type_.text, "number", name.at))  # its kind comes when all is read
        return tuple(columns)

    def expect_type(self) -> Token:
        """The name of a type."""
        if self.token.text == "[":
            raise failure(ParseError, "records are not supported", self.token.at)
        name = self.expect_name("a type")
        self.refuse_component(name)
        return name

    def refuse_component(self, name: Token) -> None:
        """Refuse `component.name`, with nothing between."""
        at, dot = name.at, self.token.at
        beside = (dot.line, dot.column) == (at.line, at.column + at.length)
        if self.token.text == "." and beside and self.follows_name():
            raise failure(ParseError, "components are not supported", name.at)

    def qualifier(self, word: Token, names: list[Token]) -> None:
        """A word after a declaration."""
        if word.text in QUALIFIERS:
            self.reader.directives += [Directive(word.text, name.text, (), word.at) for name in names]
        elif word.text in REFUSED_QUALIFIERS:
            what, hint = REFUSED_QUALIFIERS[word.text]
            raise failure(ParseError, f"{what} not supported ({word.text})", word.at, hint=hint)
        elif word.text == "choice":
            raise failure(ParseError, "choice domains are not supported", word.at)
        elif word.text not in HARMLESS:
            nearest = did_you_mean(word.text, QUALIFIERS | HARMLESS)
            raise failure(ParseError, f"no qualifier is called {word.text!r}", word.at, hint=nearest)

    def type_declaration(self) -> None:
        """`.type A <: symbol`, `.type A = symbol`, `.type A = B | C`"""
        name = self.expect_name("a type")
        if self.take("<:"):
            of = self.expect_type()
            self.types.declare(name.text, "subtype", [(of.text, of.at)], name.at)
            return
        if not self.take("="):
            if self.token.sort in ("directive", "end"):  # `.type A` of old: a symbol
                self.types.declare(name.text, "subtype", [("symbol", name.at)], name.at)
                return
            raise self.unexpected("'<:' or '='")
        if self.token.text in ("[", "$") or (self.token.sort == "name" and self.follows("{")):
            raise failure(ParseError, "records and algebraic types are not supported", self.token.at)
        parts = [self.expect_type()]
        while self.take("|"):
            parts.append(self.expect_type())
        how = "alias" if len(parts) == 1 else "union"
        self.types.declare(name.text, how, [(part.text, part.at) for part in parts], name.at)

    def input_or_output(self, token: Token) -> None:
        """`.input edge(filename="edges.csv", delimiter=","), node`"""
        while True:
            name = self.expect_name("a relation")
            self.refuse_component(name)
            options = self.options() if self.take("(") else ()
            self.reader.directives.append(Directive(token.text[1:], name.text, options, name.at))
            if not self.take(","):
                return

    def options(self) -> tuple[tuple[str, str], ...]:
        """`filename="x", IO=file)`"""
        found: list[tuple[str, str]] = []
        while not self.take(")"):
            if found:
                self.expect_symbol(",", "',' or ')'")
            key = self.expect_name("an option")
            self.expect_symbol("=", f"'=' and the value of {key.text}")
            if self.token.sort not in ("string", "name", "number"):
                raise self.unexpected(f"the value of {key.text}")
            found.append((key.text, self.advance().text))
        return tuple(found)

    def include(self, token: Token) -> None:
        """Read another file here; its name is relative to this one."""
        if not self.reader.includes:
            hint = "Send the text of the file itself."
            raise failure(ParseError, "files are not included here", token.at, hint=hint)
        self.reader.read_file(self.folder / token.text, token.at)

    def preprocessor(self) -> None:
        """`#include "file"`; there is no other preprocessing."""
        token = self.advance()
        if token.text.replace(" ", "").replace("\t", "") != "#include":
            hint = "There is no C preprocessor: only includes."
            raise failure(ParseError, f"{token.text} is not supported", token.at, hint=hint)
        self.include(self.expect("string", "a file in quotes"))

    def skip_plan(self) -> None:
        """`.plan 0: (1, 2), ...`: joins are ordered by the planner, so it is only read past."""
        while True:
            self.expect("number", "a number")
            self.expect_symbol(":", "':'")
            self.expect_symbol("(", "'('")
            while not self.take(")"):
                self.take(",") or self.expect("number", "a number")
            if not self.take(","):
                return

    # Rules and facts

    def rule(self) -> None:
        """`a(x), b(x) :- body.` or `a(1).`"""
        began = self.token.at
        heads = [self.head()]
        while self.take(","):
            heads.append(self.head())
        if self.take("."):
            self.reader.stated += heads
            return
        if self.token.text == "<=":
            raise failure(ParseError, "subsumption is not supported (<=)", self.token.at)
        self.expect_symbol(":-", "':-', ',' or '.'")
        body = self.disjunction()
        self.expect_symbol(".", "',' or ';' and more of the body, or '.' at its end")
        self.reader.rules.append(Rule(tuple(heads), body, began))

    def head(self) -> Atom:
        """An atom in the head of a rule."""
        if self.token.sort != "name":
            raise self.unexpected("a rule, fact or directive")
        name = self.advance()
        self.refuse_component(name)
        return self.atom(name)


def fact_of(head: Atom, arities: dict[str, int]) -> Fact | None:
    """A head without body as a row, if it is nothing but constants; marked unsigned ones are for a rule to check."""
    if arities.get(head.relation) != len(head.arguments):
        return None
    if not all(isinstance(term, ConstantTerm) and term.kind != "unsigned" for term in head.arguments):
        return None
    return Fact(head.relation, tuple(term.value for term in head.arguments if isinstance(term, ConstantTerm)), head.at)
