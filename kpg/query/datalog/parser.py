"""Parse Datalog text into a program: recursive descent, one method for each construct.

    parse(text)            a program from a string
    parse_file(path)       a program from a file, and the files it includes

Every ParseError has line and column, shows the line, and says what to write instead. Constructs that Soufflé has and
kpg does not (components, records, inlining, ...) are recognised and refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

from kpg.errors import BadPlan, ParseError, Unavailable
from kpg.query.datalog.declarations import DeclaredTypes
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.rule_parser import RuleParser, unsupported
from kpg.query.ir.literals import Atom, Conjunction, Truth
from kpg.query.ir.program import Directive, Fact, Program, Relation, RelationColumn, Rule
from kpg.query.ir.terms import ConstantTerm
from kpg.query.join_strategy import check_hint
from kpg.query.source_text import NOWHERE, Position, SourceText, did_you_mean, failure

DIRECTIVES = (".decl", ".type", ".input", ".output", ".printsize", ".include")
REFUSED_DIRECTIVES = {
    ".comp": "components", ".init": "components", ".override": "components", ".functor": "user-defined functors",
    ".limitsize": "size limits", ".lattice": "lattices",
}  # fmt: skip
IGNORED_QUALIFIERS = {"btree", "brie", "btree_delete", "no_inline", "no_magic", "magic", "overridable"}
QUALIFIERS = {"input", "output", "printsize"}
REFUSED_QUALIFIERS = {
    "inline": ("inlining is", "Leave the word out: the relation is then computed, with the same rows."),
    "eqrel": ("equivalence relations are", "State reflexivity, symmetry and transitivity as rules."),
}
MAX_INCLUDE_DEPTH = 64  # each level takes several Python frames
INSERT_ONLY = "insert-only"


def parse(text: str, name: str = "program", includes: bool = True) -> Program:
    """Parse a program. Without `includes`, refuse a text that includes files; no file is opened then."""
    builder = ProgramBuilder(includes)
    builder.read(SourceText(name, text), Path("."))
    return builder.program()


def parse_file(path: str | PathLike[str]) -> Program:
    """Parse the program in a file."""
    builder = ProgramBuilder()
    builder.read_file(Path(path), None)
    return builder.program()


class ProgramBuilder:
    """Collects the statements of one file and of the files it includes, then builds the program."""

    def __init__(self, includes: bool = True) -> None:
        self.includes = includes
        self.types = DeclaredTypes()
        self.relations: list[Relation] = []
        self.rules: list[Rule] = []
        self.facts: list[Atom] = []  # heads without a body
        self.type_positions: dict[Position, Position] = {}  # position of a column's name -> position of its type
        self.directives: list[Directive] = []
        self.insert_only = False
        self.joins = ""  # the join strategy of the pragma
        self.open_files: list[Path] = []
        self.read_files: set[Path] = set()

    def program(self) -> Program:
        """Build the program. Types and arities are resolved here, since declarations may follow their uses."""
        relations = tuple(self.with_kinds(relation) for relation in self.relations)
        arities = {relation.name: relation.arity for relation in relations}
        rules, facts = list(self.rules), list[Fact]()
        for head in self.facts:
            fact = constant_fact(head, arities)
            if fact is not None:
                facts.append(fact)
            else:  # an argument must be computed, or the rewrites will report an error
                rules.append(Rule((head,), Conjunction((Truth(True, head.at),), head.at), head.at))
        types = tuple(self.types.resolved().values())
        program = Program(relations, tuple(rules), tuple(facts), tuple(self.directives), types)
        return replace(program, insert_only=self.insert_only, joins=self.joins)

    def with_kinds(self, relation: Relation) -> Relation:
        """Return the relation with the kinds of its columns' types."""
        columns = (
            replace(column, kind=self.types.kind(column.type, self.type_positions[column.at]))
            for column in relation.columns
        )
        return replace(relation, columns=tuple(columns))

    def read_file(self, path: Path, at: Position | None) -> None:
        """Read a file, included at a position; skip an included file that was read before."""
        try:
            resolved = path.resolve()
            if resolved in self.read_files and at is not None:
                return
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            if at is not None:
                raise failure(ParseError, f"cannot include {str(path)!r}", at, detail=f"{error}") from None
            raise Unavailable(f"cannot read {path}", detail=str(error)) from None
        if len(self.open_files) >= MAX_INCLUDE_DEPTH:
            what = f"files are included more than {MAX_INCLUDE_DEPTH} deep"
            raise failure(ParseError, what, at or NOWHERE, hint="Include files from fewer levels.")
        self.read_files.add(resolved)
        self.open_files.append(resolved)
        self.read(SourceText(str(path), text), path.parent)
        self.open_files.pop()

    def read(self, source: SourceText, folder: Path) -> None:
        """Read a text; included files are relative to `folder`."""
        ProgramParser(source, self, folder).statements()


class ProgramParser(RuleParser):
    """Parses the statements of one text into a builder."""

    def __init__(self, source: SourceText, builder: ProgramBuilder, folder: Path) -> None:
        super().__init__(source, builder.types)
        self.builder = builder
        self.folder = folder

    def statements(self) -> None:
        """Parse statements up to the end of the text."""
        while self.token.kind != "end":
            if self.token.kind == "directive":
                self.directive()
            elif self.token.kind == "preprocessor":
                self.preprocessor()
            elif self.token.text == "." and self.is_followed_by_adjacent_name():
                raise self.unknown_directive()
            else:
                self.rule()

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
                raise unsupported(REFUSED_DIRECTIVES[token.text], token.at, token.text)

    def pragma(self) -> None:
        """Parse `.pragma "joins" "hector"` and `.pragma "insert-only"`; ignore other pragmas."""
        words = []
        while self.token.kind == "string":
            words.append(self.advance())
            self.builder.insert_only |= words[-1].text.strip('"') == INSERT_ONLY
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
        columns = self.columns()
        self.builder.relations += [Relation(name.text, columns, name.at) for name in names]
        while self.token.kind == "name" and not self.is_followed_by("(", ",", ":-", "."):
            self.qualifier(self.advance(), names)

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
            columns.append(RelationColumn(name.text, type_.text, "number", name.at))  # `program` sets the kind
        return tuple(columns)

    def expect_type(self) -> Token:
        """Consume the name of a type."""
        if self.token.text == "[":
            raise unsupported("records", self.token.at)
        name = self.expect_name("a type")
        self.refuse_component(name)
        return name

    def refuse_component(self, name: Token) -> None:
        """Raise ParseError for `component.name`, without white space in between."""
        at, dot = name.at, self.token.at
        is_adjacent = (dot.line, dot.column) == (at.line, at.column + at.length)
        if self.token.text == "." and is_adjacent and self.is_followed_by_adjacent_name():
            raise unsupported("components", name.at)

    def qualifier(self, word: Token, names: list[Token]) -> None:
        """Apply a qualifier behind a declaration."""
        if word.text in QUALIFIERS:
            self.builder.directives += [Directive(word.text, name.text, (), word.at) for name in names]
        elif word.text in REFUSED_QUALIFIERS:
            what, hint = REFUSED_QUALIFIERS[word.text]
            raise failure(ParseError, f"{what} not supported ({word.text})", word.at, hint=hint)
        elif word.text == "choice":
            raise unsupported("choice domains", word.at, word.text)
        elif word.text not in IGNORED_QUALIFIERS:
            nearest = did_you_mean(word.text, QUALIFIERS | IGNORED_QUALIFIERS)
            raise failure(ParseError, f"no qualifier is called {word.text!r}", word.at, hint=nearest)

    def type_declaration(self) -> None:
        """Parse `.type A <: symbol`, `.type A = symbol` or `.type A = B | C`."""
        name = self.expect_name("a type")
        if self.take("<:"):
            supertype = self.expect_type()
            self.types.declare(name.text, "subtype", [(supertype.text, supertype.at)], name.at)
            return
        if not self.take("="):
            if self.token.kind in ("directive", "end"):  # `.type A` of old Soufflé: a symbol
                self.types.declare(name.text, "subtype", [("symbol", name.at)], name.at)
                return
            raise self.unexpected("'<:' or '='")
        if self.token.text in ("[", "$") or (self.token.kind == "name" and self.is_followed_by("{")):
            raise unsupported("records and algebraic types", self.token.at)
        parts = [self.expect_type()]
        while self.take("|"):
            parts.append(self.expect_type())
        form = "alias" if len(parts) == 1 else "union"
        self.types.declare(name.text, form, [(part.text, part.at) for part in parts], name.at)

    def input_or_output(self, token: Token) -> None:
        """Parse `.input edge(filename="edges.csv", delimiter=","), node`."""
        while True:
            name = self.expect_name("a relation")
            self.refuse_component(name)
            options = self.options() if self.take("(") else ()
            self.builder.directives.append(Directive(token.text[1:], name.text, options, name.at))
            if not self.take(","):
                return

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

    def include(self, token: Token) -> None:
        """Read another file at this position; its path is relative to this file."""
        if not self.builder.includes:
            hint = "Send the text of the file itself."
            raise failure(ParseError, "files are not included here", token.at, hint=hint)
        self.builder.read_file(self.folder / token.text, token.at)

    def preprocessor(self) -> None:
        """Parse `#include "file"`; refuse all other preprocessor lines."""
        token = self.advance()
        if token.text.replace(" ", "").replace("\t", "") != "#include":
            hint = "There is no C preprocessor: only includes."
            raise failure(ParseError, f"{token.text} is not supported", token.at, hint=hint)
        self.include(self.expect("string", "a file in quotes"))

    def skip_plan(self) -> None:
        """Skip `.plan 0: (1, 2), ...`: kpg's planner orders the joins."""
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
        """Parse `a(x), b(x) :- body.` or `a(1).`"""
        start = self.token.at
        heads = [self.head()]
        while self.take(","):
            heads.append(self.head())
        if self.take("."):
            self.builder.facts += heads
            return
        if self.token.text == "<=":
            hint = "Select the best rows with min or max in a rule of their own."
            raise failure(ParseError, "subsumption is not supported (<=)", self.token.at, hint=hint)
        self.expect_symbol(":-", "':-', ',' or '.'")
        body = self.disjunction()
        self.expect_symbol(".", "',' or ';' and more of the body, or '.' at its end")
        self.builder.rules.append(Rule(tuple(heads), body, start))

    def head(self) -> Atom:
        """Parse an atom in the head of a rule."""
        if self.token.kind != "name":
            raise self.unexpected("a rule, fact or directive")
        name = self.advance()
        self.refuse_component(name)
        return self.atom(name)


def constant_fact(head: Atom, arities: dict[str, int]) -> Fact | None:
    """Return a head without body as a row if all arguments are constants.

    Constants marked unsigned (`3u`) stay a rule, because type inference checks only rules against the column types.
    """
    if arities.get(head.relation) != len(head.arguments):
        return None
    if not all(isinstance(term, ConstantTerm) and term.kind != "unsigned" for term in head.arguments):
        return None
    return Fact(head.relation, tuple(term.value for term in head.arguments if isinstance(term, ConstantTerm)), head.at)
