"""Rules for expressions: PostgreSQL's operators with its precedence, by precedence climbing.

From the loosest to the tightest: OR, AND, NOT, IS, comparisons, BETWEEN IN LIKE, all other operators, + -, * / %, ^,
AT TIME ZONE, COLLATE, unary minus, subscripts and ::. Comparisons, BETWEEN and LIKE do not associate: `a = b = c` is a
syntax error. `||`, `->` and the like are nodes of class Operator; the others have the classes that sqlglot gives them.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from kpg.columns.pause_points import pause
from kpg.sql.parse.postgres_tokens import is_word, words
from kpg.sql.parse.primary_rules import PrimaryRules

OR, AND, NOT, IS, COMPARISON, RANGE, OPERATOR, SUM, PRODUCT, POWER, ZONE, COLLATION, SIGN, SUBSCRIPT, CAST = range(
    1, 16
)

BINARY_CLASSES: Final[dict[str, tuple[int, type[exp.Expr]]]] = {
    "=": (COMPARISON, exp.EQ), "<>": (COMPARISON, exp.NEQ), "!=": (COMPARISON, exp.NEQ),
    "<": (COMPARISON, exp.LT), "<=": (COMPARISON, exp.LTE), ">": (COMPARISON, exp.GT), ">=": (COMPARISON, exp.GTE),
    "+": (SUM, exp.Add), "-": (SUM, exp.Sub),
    "*": (PRODUCT, exp.Mul), "/": (PRODUCT, exp.Div), "%": (PRODUCT, exp.Mod), "^": (POWER, exp.Pow),
}  # fmt: skip
OTHER_OPERATORS: Final = frozenset(
    "|| -> ->> #> #>> @> <@ ? ?| ?& && ~ ~* !~ !~* ~~ ~~* !~~ !~~* & | # << >> ^@ #- @@ @? &< &> -|- ||/ |/ @".split()
)
CLAUSE_WORDS: Final = words("from where group having window union intersect except order limit offset fetch for into")
LIKE_OPERATORS: Final = {"~~": exp.Like, "!~~": exp.Like, "~~*": exp.ILike, "!~~*": exp.ILike}
PREFIX_OPERATORS: Final = ("~", "|/", "||/", "@")


class ExpressionRules(PrimaryRules):
    """PostgreSQL's rules for operators."""

    def parse_expression(self, least: int = OR, *, restricted: bool = False) -> exp.Expr:
        """Parse an expression of operators that bind at least as tightly as `least`.

        `restricted` is PostgreSQL's b_expr, the lower bound of BETWEEN: without AND, OR, NOT, IN, LIKE and IS NULL.
        """
        start = self._index
        left = self.prefix(restricted)
        refused = 0  # the precedence of an operator that does not associate and was the last one
        while True:
            precedence = self.infix_precedence(restricted)
            if precedence < least or precedence == refused:
                return left
            before = self._index
            left = self.spanned(self.infix(left, precedence), start)
            refused = precedence if self.does_not_associate(left, precedence) else 0
            assert self._index > before

    def does_not_associate(self, node: exp.Expr, precedence: int) -> bool:
        """Return whether another operator of the same precedence may not follow a node."""
        if precedence == IS:
            return isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ))
        if precedence == RANGE:
            inner = node.this if isinstance(node, exp.Not) else node
            return not isinstance(inner, exp.In)
        return precedence == COMPARISON

    # --- operators before their operand

    def prefix(self, restricted: bool) -> exp.Expr:
        """Parse a prefix operator with its operand, or a primary expression with what follows it."""
        pause()
        start = self._index
        if not restricted and self.accept("not"):
            return self.spanned(exp.Not(this=self.parse_expression(NOT)), start)
        if self.accept_symbol("-"):
            return self.spanned(exp.Neg(this=self.parse_expression(SIGN)), start)
        if self.accept_symbol("+"):
            operand = self.parse_expression(SIGN)
            return self.spanned(exp.Operator(operator="+", expression=operand), start)
        for symbol in PREFIX_OPERATORS:
            if self.accept_symbol(symbol):
                operand = self.parse_expression(OPERATOR + 1, restricted=restricted)
                return self.spanned(exp.Operator(operator=symbol, expression=operand), start)
        return self.primary()

    # --- operators after their first operand

    def infix_precedence(self, restricted: bool) -> int:
        """Return the precedence of the operator at the current token, 0 if there is none."""
        token = self._curr
        if not token:
            return 0
        if is_word(token):
            return self.word_precedence(token.text.lower(), restricted)
        symbol = self.operator_symbol()
        if symbol is None:
            return {"::": CAST, "[": 0}.get(token.text, 0) if self.at_symbol(token.text) else 0
        return BINARY_CLASSES[symbol][0] if symbol in BINARY_CLASSES else OPERATOR

    def word_precedence(self, word: str, restricted: bool) -> int:
        """Return the precedence of a keyword that is an operator, 0 for other words and for a label before a clause."""
        if (
            not self._next
            or self.at_symbol(",", 1)
            or self.at_symbol(")", 1)
            or self._next.text.lower() in CLAUSE_WORDS
        ):
            return IS if word in ("isnull", "notnull") and not restricted else 0
        if word == "is":
            allowed = not restricted or self.at_word("is", "distinct") or self.at_word("is", "not", "distinct")
            return IS if allowed else 0
        if restricted:
            return 0
        if word in ("or", "and", "isnull", "notnull"):
            return {"or": OR, "and": AND}.get(word, IS)
        if word in ("between", "in", "like", "ilike", "similar", "overlaps"):
            return RANGE if word != "overlaps" else OPERATOR
        if word == "not":
            return (
                RANGE if any(self.at_word("not", verb) for verb in ("between", "in", "like", "ilike", "similar")) else 0
            )
        if word == "at":
            return ZONE if self.at_word("at", "time") else 0
        if word == "collate":
            return COLLATION
        return OPERATOR if word == "operator" and self.at_symbol("(", 1) else 0

    def operator_symbol(self) -> str | None:
        """Return the operator at the current token, which may consist of several tokens; None if there is none."""
        for length in (3, 2, 1):
            tokens = self._tokens[self._index : self._index + length]
            joined = "".join(token.text for token in tokens)
            adjacent = all(a.end + 1 == b.start for a, b in zip(tokens, tokens[1:], strict=False))
            known = joined in OTHER_OPERATORS or joined in BINARY_CLASSES
            if len(tokens) == length and adjacent and known and not any(is_word(token) for token in tokens):
                if all(self.at_symbol(token.text, offset) for offset, token in enumerate(tokens)):
                    return joined
        return None

    def infix(self, left: exp.Expr, precedence: int) -> exp.Expr:
        """Parse an operator after its first operand, and its other operands."""
        if precedence == OR:
            self.expect("or")
            return exp.Or(this=left, expression=self.parse_expression(AND))
        if precedence == AND:
            self.expect("and")
            return exp.And(this=left, expression=self.parse_expression(NOT))
        if precedence == IS:
            return self.is_predicate(left)
        if precedence == RANGE:
            return self.range_predicate(left)
        if precedence == ZONE:
            self.expect("at", "time", "zone")
            return exp.AtTimeZone(this=left, zone=self.parse_expression(ZONE + 1))
        if precedence == COLLATION:
            self.expect("collate")
            if self.accept("pg_catalog"):
                self.expect_symbol(".")
            return exp.Collate(this=left, expression=self.label())
        if precedence == CAST:
            self.expect_symbol("::")
            return exp.Cast(this=left, to=self.data_type())
        return self.operator(left, precedence)

    def operator(self, left: exp.Expr, precedence: int) -> exp.Expr:
        """Parse a binary operator that is a symbol, with ANY or ALL after it."""
        if self.at_word("overlaps"):
            raise self.unsupported(self._curr.text.upper())
        wrapped = self.accept("operator")
        if wrapped:
            self.expect_symbol("(")
            if self.accept("pg_catalog"):
                self.expect_symbol(".")
        symbol = self.operator_symbol()
        if symbol is None:
            self.unexpected("an operator")
        length = 0
        while "".join(token.text for token in self._tokens[self._index : self._index + length]) != symbol:
            length += 1
        self._advance(length)
        if wrapped:
            self.expect_symbol(")")
        if quantified := self.quantifier():
            right: exp.Expr = quantified
        else:
            right = self.parse_expression(precedence + 1)
        if symbol in LIKE_OPERATORS:
            like = LIKE_OPERATORS[symbol](this=left, expression=right)
            return exp.Not(this=like) if symbol[0] == "!" else like
        if symbol in BINARY_CLASSES:
            return BINARY_CLASSES[symbol][1](this=left, expression=right)
        return exp.Operator(this=left, operator=symbol, expression=right)

    def quantifier(self) -> exp.Expr | None:
        """Parse ANY (…), SOME (…) or ALL (…) after an operator."""
        start = self._index
        word = self.one_of("any", "some", "all")
        if word is None:
            return None
        kind = exp.All if word == "all" else exp.Any
        query = self.subquery_or_none()
        return self.spanned(kind(this=query or self.wrapped(self.parse_expression)), start)

    def is_predicate(self, left: exp.Expr) -> exp.Expr:
        """Parse IS [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM; ISNULL and NOTNULL."""
        if self.accept("isnull"):
            return exp.Is(this=left, expression=exp.Null())
        if self.accept("notnull"):
            return exp.Is(this=left, expression=exp.Null(), negate=True)
        self.expect("is")
        negate = self.accept("not")
        if self.accept("distinct"):
            self.expect("from")
            right = self.parse_expression(IS + 1)
            return (exp.NullSafeEQ if negate else exp.NullSafeNEQ)(this=left, expression=right)
        word = self.one_of("null", "true", "false", "unknown")
        if word is None:
            if self.one_of("document", "of", "json", "normalized", "nfc", "nfd", "nfkc", "nfkd"):
                raise self.unsupported(f"IS {self._prev.text.upper()}")
            self.unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        values = {"null": exp.Null(), "true": exp.Boolean(this=True), "false": exp.Boolean(this=False)}
        value = values.get(word) or exp.Var(this="UNKNOWN")
        return exp.Is(this=left, expression=value, negate=negate or None)

    def range_predicate(self, left: exp.Expr) -> exp.Expr:
        """Parse [NOT] BETWEEN, IN, LIKE, ILIKE or SIMILAR TO."""
        negate = self.accept("not")
        if self.accept("between"):
            predicate = self.between(left)
        elif self.accept("in"):
            predicate = self.in_list(left)
        elif self.accept("similar"):
            self.expect("to")
            predicate = self.pattern(exp.SimilarTo, left)
        else:
            predicate = self.pattern(exp.ILike if self.one_of("like", "ilike") == "ilike" else exp.Like, left)
        return exp.Not(this=predicate) if negate else predicate

    def between(self, left: exp.Expr) -> exp.Expr:
        """Parse the bounds of BETWEEN."""
        symmetric = self.accept("symmetric") or (self.accept("asymmetric") and None)
        low = self.parse_expression(IS, restricted=True)
        self.expect("and")
        high = self.parse_expression(RANGE + 1)
        return exp.Between(this=left, low=low, high=high, symmetric=symmetric or None)

    def in_list(self, left: exp.Expr) -> exp.Expr:
        """Parse what follows IN: a subquery or a list."""
        if query := self.subquery_or_none():
            return exp.In(this=left, query=query)
        return exp.In(this=left, expressions=self.wrapped(lambda: self.commas(self.parse_expression)))

    def pattern(self, kind: type[exp.Expr], left: exp.Expr) -> exp.Expr:
        """Parse the pattern of LIKE and SIMILAR TO, and its escape character."""
        quantified = None if kind is exp.SimilarTo else self.quantifier()
        match = kind(this=left, expression=quantified or self.parse_expression(RANGE + 1))
        if quantified is None and self.accept("escape"):
            return exp.Escape(this=match, expression=self.parse_expression(RANGE + 1))
        return match
