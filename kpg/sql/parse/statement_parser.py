"""Parse SQL text: whole scripts, one query, or one expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from kpg.query.source_text import SourceText
from kpg.sql.parse.postgres_tokens import is_word, tokenize
from kpg.sql.parse.session_rules import SessionRules
from kpg.sql.parse.sql_failures import bounded_depth
from kpg.sql.parse.sql_statements import (
    AnyStatement,
    ExplainStatement,
    QueryStatement,
    SqlStatement,
    SubscribeStatement,
    SyntaxTree,
    TransactionStatement,
)

Parsed = TypeVar("Parsed")

QUERY_STARTS: Final = ("select", "values", "table", "with")
REFUSED: Final = frozenset(
    "alter analyze call checkpoint cluster comment do execute grant import listen load lock merge notify prepare "
    "reassign refresh reindex revoke security vacuum".split()
)
TRANSACTION_WORDS: Final[dict[str, Literal["begin", "commit", "rollback"]]] = {
    "begin": "begin", "start": "begin", "commit": "commit", "end": "commit", "rollback": "rollback",
    "abort": "rollback",
}  # fmt: skip


def parse_statements(text: str, name: str = "query") -> tuple[AnyStatement, ...]:
    """Return the statements of a text, which are separated by semicolons. Errors call the text `name`."""
    source = SourceText(name, text)
    return tuple(
        cast(AnyStatement, StatementRules(source, tokens).whole(StatementRules.statement))
        for tokens in split_at_semicolons(tokenize(source))
    )


def parse_query(text: str, name: str = "query") -> SyntaxTree:
    """Return the one query that a text is, such as the text of a view."""
    return rules_for(text, name).whole(StatementRules.query_tree)


def parse_expression(text: str, name: str = "expression") -> SyntaxTree:
    """Return the one expression that a text is, such as a default or the condition of a check."""
    return rules_for(text, name).whole(StatementRules.expression_tree)


def rules_for(text: str, name: str) -> StatementRules:
    """Return the rules at the start of a text."""
    source = SourceText(name, text)
    return StatementRules(source, tokenize(source))


def split_at_semicolons(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens of each statement; empty statements are left out."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


class StatementRules(SessionRules):
    """All rules: one of them for each kind of statement."""

    def whole(self, rule: Callable[[StatementRules], Parsed]) -> Parsed:
        """Parse all tokens by one rule."""
        with bounded_depth(self.span(self._curr)):
            parsed = rule(self)
        if self._curr:
            self.unexpected()
        if self.deferred:
            raise self.deferred[0]
        return parsed

    def statement(self) -> SqlStatement:
        """Parse one statement."""
        start = self._index
        if self.at_symbol("(") or any(self.at_word(word) for word in QUERY_STARTS):
            return self.with_statement(start) if self.at_word("with") else self.query_statement(start)
        word = self._curr.text.lower() if is_word(self._curr) else ""
        handlers: dict[str, Callable[[int], SqlStatement]] = {
            "create": self.create, "drop": self.drop, "insert": self.insert, "update": self.update,
            "delete": self.delete, "truncate": self.truncate, "copy": self.copy, "explain": self.explain,
            "show": self.show, "set": self.set_setting, "reset": self.reset_setting, "subscribe": self.subscribe,
            "savepoint": self.savepoint, "release": self.savepoint,
            "declare": self.declare, "fetch": self.fetch, "move": self.fetch, "close": self.close_cursor,
            **dict.fromkeys(("discard", "deallocate", "unlisten"), self.discard),
            **dict.fromkeys(TRANSACTION_WORDS, self.transaction),
        }  # fmt: skip
        if word in handlers:
            self._advance()
            return handlers[word](start)
        if word in REFUSED:
            raise self.unsupported(word.upper())
        self.unexpected("a statement")

    def query_statement(self, start: int) -> QueryStatement:
        """Parse a query with AS OF."""
        query = self.query_tree()
        as_of = self.epoch("as", "of")
        return QueryStatement(query, as_of, span=self.span_from(start))

    def with_statement(self, start: int) -> SqlStatement:
        """Parse WITH before a query or a data change."""
        before = self._index
        ctes = self.with_clause()
        tree = SyntaxTree(ctes, self.span_from(before))
        if word := self.one_of("insert", "update", "delete"):
            if word == "insert":
                return self.insert(start, ctes)
            return self.update(start, tree) if word == "update" else self.delete(start, tree)
        self._retreat(before)
        return self.query_statement(start)

    def epoch(self, *words: str) -> SyntaxTree | None:
        """Parse AS OF or UP TO with an epoch."""
        if not self.accept(*words):
            return None
        if self.at_word("at", "least"):
            raise self.unsupported(f"{' '.join(words).upper()} AT LEAST")
        return self.expression_tree()

    # --- transactions

    def transaction(self, start: int) -> TransactionStatement:
        """Parse BEGIN, COMMIT or ROLLBACK, with the isolation levels that a transaction has anyway."""
        word = self._prev.text.lower()
        if word == "start":
            self.expect("transaction")
        else:
            self.one_of("work", "transaction")
        if TRANSACTION_WORDS[word] == "begin":
            read_only = self.transaction_modes()
            return TransactionStatement("begin", read_only=read_only, span=self.span_from(start))
        if TRANSACTION_WORDS[word] == "rollback" and self.accept("to"):
            self.accept("savepoint")
            return TransactionStatement("rollback to", str(self.name()), span=self.span_from(start))
        elif self.at_word("and") or self.at_word("to") or self.at_word("prepared"):
            raise self.unsupported(f"{word.upper()} {self._curr.text.upper()}", start)
        return TransactionStatement(TRANSACTION_WORDS[word], span=self.span_from(start))

    def savepoint(self, start: int) -> TransactionStatement:
        """Parse SAVEPOINT name, or RELEASE [SAVEPOINT] name."""
        releases = self._prev.text.lower() == "release"
        if releases:
            self.accept("savepoint")
        kind: Literal["release", "savepoint"] = "release" if releases else "savepoint"
        return TransactionStatement(kind, str(self.name()), span=self.span_from(start))

    def transaction_modes(self) -> bool:
        """Parse the modes after BEGIN; return whether it is READ ONLY.

        All isolation levels are served by snapshots with a check at commit.
        """
        read_only = False
        while self._curr:
            if self.accept("isolation", "level"):
                levels = (("serializable",), ("repeatable", "read"), ("read", "committed"), ("read", "uncommitted"))
                if not any(self.accept(*level) for level in levels):
                    self.unexpected("an isolation level")
            elif self.accept("read", "only"):
                read_only = True
            elif not (self.accept("read", "write") or self.accept("not", "deferrable")):
                self.unexpected("a mode of the transaction")
            self.accept_symbol(",")
        return read_only

    # --- EXPLAIN, SUBSCRIBE

    def explain(self, start: int) -> ExplainStatement:
        """Parse the options of EXPLAIN, and its statement."""
        options: dict[str, str] = {}
        if self.at_symbol("(") and not self.subquery_ahead():
            options = self.options()
        while word := self.one_of("analyze", "analyse", "verbose"):
            options["verbose" if word == "verbose" else "analyze"] = "true"
        if self.accept("materialized", "view"):
            return ExplainStatement(None, options, self.qualified_name(), span=self.span_from(start))
        return ExplainStatement(self.statement(), options, span=self.span_from(start))

    def subscribe(self, start: int) -> SubscribeStatement:
        """Parse SUBSCRIBE [TO] name or (query), its options, AS OF and UP TO."""
        self.accept("to")
        options: dict[str, str] = {}
        query = self.subscribed()
        if self.accept("with"):
            options = self.options()
        for name, value in options.items():
            if name not in ("snapshot", "progress") or value not in ("true", "false", "on", "off"):
                self.raise_error(f"SUBSCRIBE has no option {name} = {value}", self._prev)
        as_of = self.epoch("as", "of")
        up_to = self.epoch("up", "to")
        snapshot = options.get("snapshot", "true") in ("true", "on")
        progress = options.get("progress", "false") in ("true", "on")
        return SubscribeStatement(query, snapshot, progress, as_of, up_to, span=self.span_from(start))

    def subscribed(self) -> SyntaxTree:
        """Parse the query of SUBSCRIBE; a name stands for all of its rows."""
        start = self._index
        if any(self.at_word(word) for word in QUERY_STARTS):
            return self.query_tree()
        if (query := self.subquery_or_none()) is not None:
            return self.tree(query, start)
        source = exp.From(this=self.table_name())
        return self.tree(self.spanned(exp.Select(expressions=[exp.Star()], from_=source), start), start)
