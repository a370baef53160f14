"""Parse the statements of components: `.comp`, `.init` and `.override`.

    .comp Paths<T> : Graph<T>, Named { ... }
    .init p = Paths<number>
    .override edge

The body of a component is parsed once where it is declared, into an outline of its own, so that errors in components
without instances are found. While an instance is parsed, nested components and instantiations are skipped: the
expansion (kpg/query/datalog/components.py) has resolved them before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.errors import ParseError, ProgramError
from kpg.query.datalog.components import Component, ComponentReference, Instantiation
from kpg.query.datalog.declarations import DeclaredTypes
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.names import AS_WRITTEN
from kpg.query.ir.terms import Kind
from kpg.query.source_text import Position, failure

if TYPE_CHECKING:
    from kpg.query.datalog.parser import ProgramParser


class OutlineTypes(DeclaredTypes):
    """The types of a component's body, where type parameters are not known yet: any name is a type."""

    def kind(self, name: str, at: Position, through: tuple[str, ...] = ()) -> Kind:
        """Return some kind: only the syntax matters in an outline."""
        return "number"


def parse_component(parser: ProgramParser, start: Token) -> None:
    """Parse `C<T> : Base<T> { ... }` behind `.comp`, and add the component to the builder."""
    name = parser.expect_name("a component")
    parameters = parse_parameters(parser)
    bases: list[ComponentReference] = []
    while parser.take(":") or (bases and parser.take(",")):
        bases.append(parse_reference(parser))
    brace = parser.expect_symbol("{", "'{' and the statements of the component")
    body = parse_body(parser, brace)
    if parser.names is not AS_WRITTEN:
        return
    if name.text in parser.builder.components:
        hint = "Remove one of the declarations, or choose another name."
        raise failure(ProgramError, f"component {name.text!r} is declared twice", name.at, hint=hint)
    outline = type(parser.builder)(parser.builder.files)
    outline.types = OutlineTypes()
    component = Component(name.text, parameters, tuple(bases), body, outline, name.at, parser.component)
    type(parser)(body, outline, component=component).statements()
    parser.builder.components[name.text] = component


def parse_body(parser: ProgramParser, brace: Token) -> list[Token]:
    """Consume the tokens up to the matching '}', and return them with an end token."""
    first, depth = parser.index, 1
    while depth:
        token = parser.advance()
        if token.kind == "end":
            raise failure(ParseError, "a component is not closed", brace.at, hint="Close it with }.")
        if token.kind == "symbol":
            depth += (token.text == "{") - (token.text == "}")
    return [*parser.tokens[first : parser.index - 1], Token("end", "", token.at)]


def parse_instantiation(parser: ProgramParser) -> None:
    """Parse `c = C<number>` behind `.init`."""
    name = parser.expect_name("an instance")
    parser.expect_symbol("=", f"'=' and the component of {name.text}")
    reference = parse_reference(parser)
    if parser.names is not AS_WRITTEN:
        return
    if any(name.text == other.name for other in parser.builder.instantiations):
        raise failure(ProgramError, f"instance {name.text!r} is declared twice", name.at, hint="Choose another name.")
    parser.builder.instantiations.append(Instantiation(name.text, reference, name.at))


def parse_override(parser: ProgramParser) -> None:
    """Parse `edge` behind `.override`."""
    name = parser.expect_name("a relation to override")
    if parser.component is None and parser.names is AS_WRITTEN:
        hint = "Write it inside the component that inherits the relation."
        raise failure(ParseError, ".override stands outside of components", name.at, hint=hint)
    parser.builder.overrides.setdefault(name.text, name.at)


def parse_reference(parser: ProgramParser) -> ComponentReference:
    """Parse a component with its actual parameters: `C<number>`."""
    name = parser.expect_name("a component")
    return ComponentReference(name.text, parse_parameters(parser), name.at)


def parse_parameters(parser: ProgramParser) -> tuple[str, ...]:
    """Parse `<T, U>`, which may be missing."""
    if not parser.take("<"):
        return ()
    parameters = [parser.expect_name("a type").text]
    while parser.take(","):
        parameters.append(parser.expect_name("a type").text)
    parser.expect_symbol(">", "',' or '>'")
    return tuple(parameters)
