"""Rules for statements about the session: SHOW, SET, RESET, cursors, and what a connection is reset by."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from sqlglot.tokenizer_core import TokenType

from kpg.sql.parse.change_rules import ChangeRules
from kpg.sql.parse.postgres_tokens import folded
from kpg.sql.parse.sql_statements import (
    CloseCursor,
    DeclareCursor,
    DiscardStatement,
    FetchStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
    SqlName,
    SubscribeStatement,
)

CURSOR_WORDS: Final = ("binary", "asensitive", "insensitive", "scroll")
BACKWARD: Final = ("prior", "backward", "first", "last", "absolute", "relative")
TIME_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


class SessionRules(ChangeRules):
    """PostgreSQL's rules for statements about the session."""

    @abstractmethod
    def query_statement(self, start: int) -> QueryStatement:
        """Parse a query."""

    @abstractmethod
    def subscribe(self, start: int) -> SubscribeStatement:
        """Parse the rest of SUBSCRIBE."""

    @abstractmethod
    def transaction_modes(self) -> bool:
        """Parse the modes of a transaction; return whether it is READ ONLY."""

    # --- SHOW, SET, RESET

    def show(self, start: int) -> ShowStatement:
        """Parse the words of SHOW, and the name that it is about."""
        what: list[str] = []
        of: SqlName | None = None
        if self.accept("create"):
            what = ["create"]
            while word := self.one_of("table", "view", "materialized", "index", "sequence"):
                what.append(word)
            of = self.qualified_name()
        while self._curr and of is None:
            if what and self.one_of("from", "in", "on"):
                of = self.qualified_name()
            else:
                what.append(folded(self.label().name))
        if not what:
            self.unexpected("TABLES, VIEWS, INDEXES, SEQUENCES, COLUMNS or the name of a setting")
        return ShowStatement(tuple(what), of, span=self.span_from(start))

    def modes_of_later_transactions(self, start: int) -> None:
        """Parse the modes that SET gives to transactions; only BEGIN makes one READ ONLY."""
        if self.transaction_modes():
            raise self.unsupported("SET TRANSACTION READ ONLY", start)

    def set_setting(self, start: int) -> SetStatement:
        """Parse SET [SESSION] name = value, and the forms that SQL has for some settings."""
        if self.at_word("local") or self.at_word("constraints"):
            raise self.unsupported(f"SET {self._curr.text.upper()}", start)
        if self.accept("session", "characteristics"):
            self.expect("as")
            self.expect("transaction")
            self.modes_of_later_transactions(start)
            return SetStatement(self.setting_name("transaction_isolation", start), None, span=self.span_from(start))
        if self.accept("transaction"):
            self.modes_of_later_transactions(start)
            return SetStatement(self.setting_name("transaction_isolation", start), None, span=self.span_from(start))
        self.accept("session")
        if self.accept("time", "zone"):
            value = None if self.one_of("default", "local") else self.setting_value()
            return SetStatement(self.setting_name("timezone", start), value, span=self.span_from(start))
        if self.accept("names"):
            value = None if self.accept("default") else self.setting_value()
            return SetStatement(self.setting_name("client_encoding", start), value, span=self.span_from(start))
        name = self.qualified_name()
        if not self.accept("to") and not self.accept_symbol("="):
            self.unexpected("= or TO")
        value = None if self.accept("default") else self.setting_values()
        return SetStatement(name, value, span=self.span_from(start))

    def setting_name(self, name: str, start: int) -> SqlName:
        """Return the name of a setting that a statement implies."""
        return SqlName(name, self.span_from(start))

    def setting_values(self) -> str:
        """Parse values with commas between them."""
        values = [self.setting_value()]
        while self.accept_symbol(","):
            values.append(self.setting_value())
        return ", ".join(values)

    def setting_value(self) -> str:
        """Parse the value of a setting: a word, a number or a string."""
        sign = "-" if self.accept_symbol("-") else ""
        if not self._curr or self._curr.token_type == TokenType.SEMICOLON:
            self.unexpected("a value")
        self._advance()
        return sign + str(self._prev.text)

    def reset_setting(self, start: int) -> SetStatement:
        """Parse RESET name, or RESET ALL."""
        name = None if self.accept("all") else self.qualified_name()
        return SetStatement(name, None, span=self.span_from(start))

    # --- cursors

    def declare(self, start: int) -> DeclareCursor:
        """Parse DECLARE name CURSOR FOR a query or SUBSCRIBE."""
        name = self.name()
        self.accept("no", "scroll")
        while word := self.one_of(*CURSOR_WORDS):
            if word in ("binary", "scroll"):
                raise self.unsupported(f"a {word.upper()} cursor", start)
        self.expect("cursor")
        held = self.accept("with", "hold")
        self.accept("without", "hold")
        self.expect("for")
        before = self._index
        if self.accept("subscribe"):
            return DeclareCursor(name, self.subscribe(before), held, span=self.span_from(start))
        query = self.query_statement(before)
        if self.at_word("for"):
            raise self.unsupported("a cursor FOR UPDATE or FOR READ ONLY", start)
        return DeclareCursor(name, query, held, span=self.span_from(start))

    def fetch(self, start: int) -> FetchStatement:
        """Parse FETCH and MOVE: how many rows, the cursor, and how long to wait."""
        moves = self._prev.text.lower() == "move"
        if word := self.one_of(*BACKWARD):
            raise self.unsupported(f"FETCH {word.upper()}", start)
        count: int | None = 1
        if not self.accept("next"):
            forward = self.accept("forward")
            if self.accept("all"):
                count = None
            elif self._curr and self._curr.token_type == TokenType.NUMBER:
                count = self.integer()
            elif self.at_symbol("-"):
                raise self.unsupported("FETCH of a negative number of rows", start)
            elif forward and not self._curr:
                self.unexpected("the name of a cursor")
        self.one_of("from", "in")
        name = self.name()
        options = self.options() if self.accept("with") else {}
        unknown = next((option for option in options if option != "timeout"), None)
        if unknown is not None:
            self.raise_error(f"FETCH has no option {unknown}", self._prev)
        timeout = self.seconds(options.get("timeout", "0"))
        return FetchStatement(name, count, timeout, moves, span=self.span_from(start))

    def seconds(self, text: str) -> float:
        """Return a time such as 1s, 250ms or 2.5 in seconds."""
        digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text.strip()[len(digits) :].strip() or "s"
        unit = {"second": "s", "seconds": "s", "minute": "min", "minutes": "min"}.get(unit, unit)
        try:
            value = float(digits) * TIME_UNITS[unit]
        except (ValueError, KeyError):
            value = -1.0
        if not 0 <= value < 1e9:
            self.raise_error(f"{text!r} is not a time", self._prev)
        return value

    def close_cursor(self, start: int) -> CloseCursor:
        """Parse CLOSE name, or CLOSE ALL."""
        name = None if self.accept("all") else self.name()
        return CloseCursor(name, span=self.span_from(start))

    # --- resets

    def discard(self, start: int) -> DiscardStatement:
        """Parse DISCARD, DEALLOCATE and UNLISTEN."""
        word = self._prev.text.lower()
        if word == "deallocate":
            self.accept("prepare")
            name = None if self.accept("all") else str(self.name())
            return DiscardStatement(("deallocate",), name, span=self.span_from(start))
        if word == "unlisten":
            if not self.accept_symbol("*"):
                raise self.unsupported("UNLISTEN of a channel", start)
            return DiscardStatement(("unlisten",), span=self.span_from(start))
        part = self.one_of("all", "plans", "sequences", "temp", "temporary")
        if part is None:
            self.unexpected("ALL, PLANS, SEQUENCES or TEMP")
        return DiscardStatement(("discard", part), span=self.span_from(start))
