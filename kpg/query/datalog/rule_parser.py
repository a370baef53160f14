"""The parts of rules: atoms, formulas and terms, by recursive descent.

disjunction  =  conjunction { ";" conjunction }
conjunction  =  part { "," part }
part         =  "!" part | "(" disjunction ")" | atom | test | "true" | "false" | term op term
term         =  operators by how tightly they bind, then constants, variables, calls, aggregates, "(" term ")"
"""

from __future__ import annotations

from kpg.errors import ParseError
from kpg.query.datalog.declarations import Types
from kpg.query.datalog.lexer import Lexer, Token
from kpg.query.ir.functors import FUNCTORS, TESTS
from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Negation,
    Test,
    Truth,
)
from kpg.query.ir.terms import AGGREGATES, AggregateTerm, CallTerm, ConstantTerm, Term, VariableTerm, WildcardTerm
from kpg.query.source_text import Position, SourceText, did_you_mean, failure

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
LEVELS: tuple[tuple[str, ...], ...] = (
    ("lor", "lxor"), ("land",), ("bor", "bxor"), ("band",), ("bshl", "bshr"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
OPERATORS = {*COMPARISONS, "^"}.union(*LEVELS)
UNARY = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
PLAIN = ("number", "string", "name", "float")
DEEPEST = 100  # parentheses in parentheses


class Bodies:
    """A parser that stands at a token."""

    def __init__(self, source: SourceText, types: Types) -> None:
        self.tokens = list(Lexer(source).tokens())
        self.place = 0
        self.types = types
        self.depth = 0

    # Tokens

    @property
    def token(self) -> Token:
        """Where the parser stands."""
        return self.tokens[self.place]

    def advance(self) -> Token:
        """Go past a token."""
        token = self.token
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def take(self, text: str) -> bool:
        """Go past a symbol, if it is there."""
        found = self.token.sort == "symbol" and self.token.text == text
        if found:
            self.advance()
        return found

    def follows(self, *texts: str) -> bool:
        """Whether the token after this one is one of some symbols."""
        after = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        return after.sort == "symbol" and after.text in texts

    def follows_name(self) -> bool:
        """Whether the token after this one is a name right beside it."""
        after = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        here = self.token.at
        return after.sort == "name" and (after.at.line, after.at.column) == (here.line, here.column + here.length)

    def expect(self, sort: str, what: str) -> Token:
        """A token of some sort."""
        if self.token.sort != sort:
            raise self.unexpected(what)
        return self.advance()

    def expect_name(self, what: str) -> Token:
        """A name."""
        return self.expect("name", f"the name of {what}")

    def expect_symbol(self, text: str, what: str) -> Token:
        """A symbol."""
        if not (self.token.sort == "symbol" and self.token.text == text):
            raise self.unexpected(what)
        return self.advance()

    def unexpected(self, wanted: str) -> ParseError:
        """The error for a token that does not fit."""
        token = self.token
        found = "the end of the text" if token.sort == "end" else repr(token.text)
        return failure(ParseError, f"found {found}, expected {wanted}", token.at)

    def deeper(self, at: Position) -> None:
        """Count a nesting, and refuse too many."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise failure(ParseError, f"nested more than {DEEPEST} deep", at)

    # Formulas

    def disjunction(self) -> Formula:
        """Alternatives, separated by ';'."""
        at = self.token.at
        parts = [self.conjunction()]
        while self.take(";"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts), at)

    def conjunction(self) -> Formula:
        """What must hold at once, separated by ','."""
        at = self.token.at
        parts = [self.part()]
        while self.take(","):
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts), at)

    def part(self) -> Formula:
        """One thing that holds or does not."""
        token = self.token
        if self.take("!"):
            self.deeper(token.at)
            made = Negation(self.part(), token.at)
            self.depth -= 1
            return made
        if token.text == "(" and token.sort == "symbol" and not self.is_term_in_parentheses():
            self.advance()
            self.deeper(token.at)
            inner = self.disjunction()
            self.depth -= 1
            self.expect_symbol(")", "')'")
            return inner
        if token.sort == "name":
            if token.text in ("true", "false") and not self.follows("("):
                self.advance()
                return Truth(token.text == "true", token.at)
            if token.text in TESTS and self.follows("("):
                self.advance()
                return Test(token.text, self.arguments(), True, token.at)
            if self.follows("(") and token.text not in FUNCTORS and token.text not in (*AGGREGATES, "as"):
                self.advance()
                return self.atom(token)
            if self.follows(".") and self.is_qualified():
                raise failure(ParseError, "components are not supported", token.at)
        return self.comparison()

    def is_qualified(self) -> bool:
        """Whether a name, a '.' and a name stand right beside each other, as in component.relation."""
        dot = self.tokens[min(self.place + 1, len(self.tokens) - 1)].at
        after = self.tokens[min(self.place + 2, len(self.tokens) - 1)]
        return after.sort == "name" and (after.at.line, after.at.column) == (dot.line, dot.column + 1)

    def is_term_in_parentheses(self) -> bool:
        """Whether the '(' here begins a term rather than a formula: what follows its ')' tells."""
        depth, place = 0, self.place
        while place < len(self.tokens) - 1:
            token = self.tokens[place]
            if token.sort == "symbol":
                depth += (token.text in "({") - (token.text in ")}")
            place += 1
            if depth == 0:
                return self.tokens[place].sort in ("symbol", "name") and self.tokens[place].text in OPERATORS
        return False

    def comparison(self) -> Formula:
        """`x < y + 1`"""
        at = self.token.at
        left = self.term()
        if self.token.sort != "symbol" or self.token.text not in COMPARISONS:
            if isinstance(left, CallTerm) and left.functor.isidentifier():
                hint = did_you_mean(left.functor, TESTS)
                raise failure(ParseError, f"{left.functor} gives a value, and a body needs a condition", at, hint=hint)
            raise self.unexpected("'=', '<' or another comparison")
        op = self.advance().text
        return Comparison(op, left, self.term(), at)

    def atom(self, name: Token) -> Atom:
        """`edge(x, y)`"""
        return Atom(name.text, self.arguments(), name.at)

    def arguments(self) -> tuple[Term, ...]:
        """`(x, 3, y + 1)`"""
        self.expect_symbol("(", "'(' and arguments")
        found: list[Term] = []
        while not self.take(")"):
            if found:
                self.expect_symbol(",", "',' or ')'")
            found.append(self.term())
        return tuple(found)

    # Terms

    def term(self, level: int = 0) -> Term:
        """A term whose operators bind at least as tightly as those of a level."""
        if level == len(LEVELS):
            return self.power()
        if level == 0 and self.token.sort in PLAIN and self.follows(",", ")"):
            return self.primary()  # most arguments are one token
        left = self.term(level + 1)
        before = self.depth
        while self.token.sort in ("symbol", "name") and self.token.text in LEVELS[level]:
            token = self.advance()
            self.deeper(token.at)  # what is left of an operator is inside it
            left = CallTerm(token.text, (left, self.term(level + 1)), None, token.at)
        self.depth = before
        return left

    def power(self) -> Term:
        """`x ^ y`, from the right."""
        base = self.unary()
        if self.token.text == "^" and self.token.sort == "symbol":
            token = self.advance()
            self.deeper(token.at)
            base = CallTerm("^", (base, self.power()), None, token.at)
            self.depth -= 1
        return base

    def unary(self) -> Term:
        """`-x`; a number after it is negative itself."""
        token = self.token
        if token.sort not in ("symbol", "name") or token.text not in UNARY:
            return self.primary()
        self.advance()
        self.deeper(token.at)
        inner = self.unary()
        self.depth -= 1
        if token.text == "-" and isinstance(inner, ConstantTerm) and isinstance(inner.value, (int, float)):
            return ConstantTerm(-inner.value, inner.kind, token.at)
        return CallTerm(UNARY[token.text], (inner,), None, token.at)

    def primary(self) -> Term:
        """A constant, variable, call or aggregate, or a term in parentheses."""
        token = self.token
        match token.sort:
            case "number":
                return whole_number(self.advance())
            case "float":
                return ConstantTerm(float(self.advance().text), "float", token.at)
            case "string":
                return ConstantTerm(self.advance().text, "symbol", token.at)
            case "name":
                return self.named()
        if token.text in ("[", "$", "@"):
            what = {"[": "records are", "$": "algebraic types and counters are", "@": "functors of your own are"}
            raise failure(ParseError, f"{what[token.text]} not supported", token.at)
        self.expect_symbol("(", "a variable, a constant or another term")
        self.deeper(token.at)
        inner = self.term()
        self.depth -= 1
        self.expect_symbol(")", "')'")
        return inner

    def named(self) -> Term:
        """What begins with a name."""
        token = self.token
        if token.text in AGGREGATES and not self.follows("("):
            return self.aggregate()
        self.advance()
        if token.text == "_":
            return WildcardTerm(token.at)
        if token.text == "nil":
            raise failure(ParseError, "records are not supported", token.at)
        if not (self.token.text == "(" and self.token.sort == "symbol"):
            return VariableTerm(token.text, token.at)
        self.deeper(token.at)
        made = self.cast(token) if token.text == "as" else CallTerm(token.text, self.arguments(), None, token.at)
        self.depth -= 1
        return made

    def cast(self, token: Token) -> Term:
        """`as(x, number)`: the same value, by another type's name."""
        self.expect_symbol("(", "'('")
        inner = self.term()
        self.expect_symbol(",", "',' and a type")
        name = self.expect_name("a type")
        self.expect_symbol(")", "')'")
        kind = self.types.kind(name.text, name.at)
        functor = {"number": "to_number", "unsigned": "to_unsigned", "float": "to_float", "symbol": "cat"}
        return CallTerm(functor[kind], (inner,), None, token.at)

    def aggregate(self) -> AggregateTerm:
        """`sum y : { e(x, y) }`, or an atom without braces."""
        token = self.advance()
        target = None if self.token.text == ":" else self.term()
        if token.text == "count" and target is not None:
            raise failure(ParseError, "count takes no expression", target.at, hint="Write count : { ... }.")
        if token.text != "count" and target is None:
            raise self.unexpected(f"what to take the {token.text} of")
        self.expect_symbol(":", f"':' and the body of the {token.text}")
        self.deeper(token.at)
        body: Formula
        if self.take("{"):
            body = self.disjunction()
            self.expect_symbol("}", "'}'")
        else:
            body = self.part()
        self.depth -= 1
        return AggregateTerm(token.text, target, body, token.at)


def whole_number(token: Token) -> ConstantTerm:
    """A number in any notation; with a `u` behind it is unsigned."""
    digits = token.text.removesuffix("u")
    if len(digits) > 80:
        raise failure(ParseError, "a number of more than 80 digits", token.at)
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    return ConstantTerm(int(digits, base), "unsigned" if token.text.endswith("u") else None, token.at)
