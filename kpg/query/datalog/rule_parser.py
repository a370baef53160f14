"""Parse the parts of rules: atoms, formulas and terms, by recursive descent.

disjunction  =  conjunction { ";" conjunction }
conjunction  =  part { "," part }
part         =  "!" part | "(" disjunction ")" | atom | test | "true" | "false" | term op term
term         =  operators by precedence, then constants, variables, calls, aggregates, "(" term ")"

Time is linear in the number of tokens, apart from parentheses in formulas: each "(" scans ahead to its ")".
"""

from __future__ import annotations

from kpg.errors import ParseError
from kpg.query.datalog import value_parser as values
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.token_reader import TokenReader
from kpg.query.ir.constructors import CAST
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
from kpg.query.source_text import Position, did_you_mean, failure

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Binary operators of Soufflé by precedence, the loosest first; "^" binds tighter and associates to the right.
PRECEDENCE: tuple[tuple[str, ...], ...] = (
    ("lor", "lxor"), ("land",), ("bor", "bxor"), ("band",), ("bshl", "bshr", "bshru"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
OPERATORS = {*COMPARISONS, "^"}.union(*PRECEDENCE)
UNARY = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
KEYWORDS = {  # what Soufflé reserves among the names of calls
    *AGGREGATES, "as", "autoinc", "cat", "ord", "range", "strlen", "substr", "to_float", "to_number", "to_string",
    "to_unsigned", "bnot", "lnot", *(name for names in PRECEDENCE for name in names),
}  # fmt: skip
SINGLE_TOKEN_TERMS = ("number", "string", "name", "float", "address")  # kinds of tokens that are a term on their own
# The names that conversions had in old programs: from and to an integer, an unsigned number or a float.
OLD_CONVERSIONS = {
    "itou": "to_unsigned", "itof": "to_float", "utoi": "to_number", "utof": "to_float", "ftoi": "to_number",
    "ftou": "to_unsigned",
}  # fmt: skip
# Constructs of Soufflé that kpg does not have, and what to write instead.
UNSUPPORTED = {
    "lattices": "Select the best rows with min or max.",
    "user-defined aggregates": "Use the built-in aggregates.",
    "numbers of iterations": "Count the rounds in a column of the relation.",
    "representations that aggregate": "Aggregate in the heads of the rules, as in p(x, min(d)) :- ...",
    "relations of new rows": "Observe the changes of an output.",
}
MAX_DIGITS = 80  # far beyond 64 bits; converting much longer texts to integers takes quadratic time

ENDS_OF_TERMS = (":", ",", ";", ".", "!", ":-", *COMPARISONS)  # symbols that no term contains outside parentheses


class RuleParser(TokenReader):
    """A recursive-descent parser of formulas and terms."""

    # Formulas

    def disjunction(self) -> Formula:
        """Parse alternatives, separated by ';'."""
        at = self.token.at
        parts = [self.conjunction()]
        while self.take(";"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts), at)

    def conjunction(self) -> Formula:
        """Parse formulas that must all hold, separated by ','."""
        at = self.token.at
        parts = [self.part()]
        while self.take(","):
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts), at)

    def part(self) -> Formula:
        """Parse one formula: a negation, an atom, a test, a comparison, or a disjunction in parentheses."""
        token = self.token
        if self.take("!"):
            self.enter_nesting(token.at)
            negation = Negation(self.part(), token.at)
            self.depth -= 1
            return negation
        if token.text == "(" and token.kind == "symbol" and not self.is_term_in_parentheses():
            self.advance()
            self.enter_nesting(token.at)
            inner = self.disjunction()
            self.depth -= 1
            self.expect_symbol(")", "')'")
            return inner
        if token.kind == "name":
            if token.text in ("true", "false") and not self.is_followed_by("(", *COMPARISONS):
                self.advance()
                return Truth(token.text == "true", token.at)
            if token.text in TESTS and self.is_followed_by("("):
                self.advance()
                arguments = self.arguments()
                return Test(token.text, arguments, True, token.at, self.span(token.at))
            if self.is_followed_by("(") and self.is_relation(token.text):
                self.advance()
                return self.atom(token)
            if self.is_followed_by("."):  # a condition is no name, so this is the relation of a component
                return self.atom(self.expect_qualified_name("a relation"))
        return self.comparison()

    def is_relation(self, name: str) -> bool:
        """Return whether the next name, with arguments behind it, is that of a relation.

        A relation may have the name of a functor that is no word of Soufflé's: no operator follows its arguments.
        """
        if name in KEYWORDS:
            return False
        return name not in FUNCTORS or not self.is_term_in_parentheses(self.index + 1)

    def is_term_in_parentheses(self, start: int | None = None) -> bool:
        """Return whether the next '(' begins a term, not a formula: an operator follows the matching ')' of a term."""
        depth, index = 0, self.index if start is None else start
        while index < len(self.tokens) - 1:
            token = self.tokens[index]
            if token.kind == "symbol":
                depth += (token.text in "({[") - (token.text in ")}]")
            index += 1
            if depth == 0:
                return self.tokens[index].kind in ("symbol", "name") and self.tokens[index].text in OPERATORS
        return False

    def comparison(self) -> Formula:
        """Parse `x < y + 1`."""
        at = self.token.at
        left = self.term()
        if self.token.kind != "symbol" or self.token.text not in COMPARISONS:
            if isinstance(left, CallTerm) and left.functor.isidentifier():
                hint = did_you_mean(left.functor, TESTS)
                raise failure(ParseError, f"{left.functor} gives a value, and a body needs a condition", at, hint=hint)
            raise self.unexpected("'=', '<' or another comparison")
        op = self.advance().text
        return Comparison(op, left, self.term(), at)

    def atom(self, name: Token) -> Atom:
        """Parse the arguments behind a relation's name: `edge(x, y)`."""
        return Atom(self.names.relation(name.text), self.arguments(), name.at)

    def arguments(self) -> tuple[Term, ...]:
        """Parse `(x, 3, y + 1)`."""
        self.expect_symbol("(", "'(' and arguments")
        arguments: list[Term] = []
        while not self.take(")"):
            if arguments:
                self.expect_symbol(",", "',' or ')'")
            arguments.append(self.term())
        return tuple(arguments)

    # Terms

    def term(self, level: int = 0) -> Term:
        """Parse a term with operators of this level of `PRECEDENCE` or tighter ones."""
        if level == len(PRECEDENCE):
            return self.power()
        if level == 0 and self.token.kind in SINGLE_TOKEN_TERMS and self.is_followed_by(",", ")"):
            return self.primary()  # most arguments are one token
        first = self.token.at
        left = self.term(level + 1)
        before = self.depth
        while self.token.kind in ("symbol", "name") and self.token.text in PRECEDENCE[level]:
            token = self.advance()
            self.enter_nesting(token.at)  # a chain of left-associative operators nests its left operands
            right = self.term(level + 1)
            left = CallTerm(token.text, (left, right), None, token.at, self.span(first))
        self.depth = before
        return left

    def power(self) -> Term:
        """Parse `x ^ y`, which associates to the right."""
        first = self.token.at
        base = self.unary()
        if self.token.text == "^" and self.token.kind == "symbol":
            token = self.advance()
            self.enter_nesting(token.at)
            exponent = self.power()
            base = CallTerm("^", (base, exponent), None, token.at, self.span(first))
            self.depth -= 1
        return base

    def unary(self) -> Term:
        """Parse `-x`; a minus in front of a number is part of the constant."""
        token = self.token
        if token.kind not in ("symbol", "name") or token.text not in UNARY:
            return self.primary()
        self.advance()
        self.enter_nesting(token.at)
        inner = self.unary()
        self.depth -= 1
        if token.text == "-" and isinstance(inner, ConstantTerm) and isinstance(inner.value, (int, float)):
            return ConstantTerm(-inner.value, inner.kind, token.at)
        return CallTerm(UNARY[token.text], (inner,), None, token.at, self.span(token.at))

    def primary(self) -> Term:
        """Parse a constant, variable, call or aggregate, or a term in parentheses."""
        token = self.token
        match token.kind:
            case "number":
                return integer_constant(self.advance())
            case "float":
                return ConstantTerm(float(self.advance().text), "float", token.at)
            case "string":
                return ConstantTerm(self.advance().text, "symbol", token.at)
            case "address":
                return values.address_constant(self.advance())
            case "name":
                return self.named_term()
        if token.text == "[":
            return values.parse_record(self)
        if token.text == "@" and self.is_followed_by("@"):
            raise unsupported("user-defined aggregates", token.at)
        if token.text == "@":
            return values.parse_user_call(self)
        if token.text == "$":
            if self.is_followed_by_adjacent_name():
                return values.parse_branch(self)
            return CallTerm("autoinc", (), None, self.advance().at)  # the notation of old programs
        self.expect_symbol("(", "a variable, a constant or another term")
        self.enter_nesting(token.at)
        inner = self.term()
        self.depth -= 1
        self.expect_symbol(")", "')'")
        return inner

    def named_term(self) -> Term:
        """Parse a term that begins with a name: a variable, a call, a cast or an aggregate."""
        token = self.token
        if token.text in AGGREGATES and (not self.is_followed_by("(") or self.is_aggregate_in_parentheses()):
            return self.aggregate()
        self.advance()
        if token.text == "_":
            return WildcardTerm(token.at)
        if token.text == "__FILE__":
            return ConstantTerm(token.at.source.name, "symbol", token.at)
        if token.text == "__LINE__":
            return ConstantTerm(token.at.line, None, token.at)
        if token.text == "__ITERATION__":
            raise unsupported("numbers of iterations", token.at, token.text)
        if token.text == "nil":
            return values.nil_term(token)
        if token.text in ("true", "false"):
            return ConstantTerm(token.text == "true", "bool", token.at)
        if not (self.token.text == "(" and self.token.kind == "symbol"):
            return VariableTerm(token.text, token.at)
        self.enter_nesting(token.at)
        if token.text == "as":
            term = self.cast(token)
        else:
            functor = OLD_CONVERSIONS.get(token.text, token.text)
            arguments = self.arguments()
            term = CallTerm(functor, arguments, None, token.at, self.span(token.at))
        self.depth -= 1
        return term

    def is_aggregate_in_parentheses(self) -> bool:
        """Return whether the next name begins an aggregate such as `max (d / e) : { ... }`: a ':' follows its term."""
        depth = 0
        for token in self.tokens[self.index + 1 :]:
            if token.kind == "symbol" and token.text in "([{)]}":
                depth += 1 if token.text in "([{" else -1
            if depth < 0 or token.kind in ("end", "directive"):
                return False
            if depth == 0 and token.text in {"name": AGGREGATES, "symbol": ENDS_OF_TERMS}.get(token.kind, ()):
                return token.text == ":"
        return False

    def cast(self, token: Token) -> Term:
        """Parse `as(x, number)`: the same value under another type."""
        self.expect_symbol("(", "'('")
        inner = self.term()
        self.expect_symbol(",", "',' and a type")
        name = self.expect_type()
        self.expect_symbol(")", "')'")
        return CallTerm(f"{CAST}{name.text}", (inner,), None, token.at, self.span(token.at))

    def aggregate(self) -> AggregateTerm:
        """Parse `sum y : { e(x, y) }`; the braces around a single atom are optional."""
        token = self.advance()
        target = None if self.token.text == ":" else self.term()
        if token.text == "count" and target is not None:
            raise failure(ParseError, "count takes no expression", target.at, hint="Write count : { ... }.")
        if token.text != "count" and target is None:
            raise self.unexpected(f"what to take the {token.text} of")
        self.expect_symbol(":", f"':' and the body of the {token.text}")
        self.enter_nesting(token.at)
        body: Formula
        if self.take("{"):
            body = self.disjunction()
            self.expect_symbol("}", "'}'")
        else:
            body = self.part()
        self.depth -= 1
        return AggregateTerm(token.text, target, body, token.at)


def unsupported(construct: str, at: Position, written: str = "") -> ParseError:
    """Return the error for a construct of Soufflé that kpg does not have; `written` is how the program writes it."""
    suffix = f" ({written})" if written else ""
    return failure(ParseError, f"{construct} are not supported{suffix}", at, hint=UNSUPPORTED[construct])


def integer_constant(token: Token) -> ConstantTerm:
    """Return the constant of a decimal, hexadecimal or binary number; the suffix `u` makes it unsigned."""
    digits = token.text.removesuffix("u")
    if len(digits) > MAX_DIGITS:
        raise failure(ParseError, f"a number has more than {MAX_DIGITS} digits", token.at)
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    return ConstantTerm(int(digits, base), "unsigned" if token.text.endswith("u") else None, token.at)
