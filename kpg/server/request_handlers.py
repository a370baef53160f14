"""What each request does with the service, and its reply: one function a kind, in a table.

Runs on the engine's thread. A function raises KpgError to refuse; it has changed nothing then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from kpg.columns.schema import parse_type
from kpg.errors import SchemaMismatch
from kpg.protocol import parts, replies, requests
from kpg.query.lower.expressions import TYPES
from kpg.service import Change, Interest, Service
from kpg.service.relation_declarations import is_attribute


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query, before it is made into messages."""

    table: pa.Table
    time: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Following:
    """A new interest and the reply about it."""

    interest: Interest
    reply: replies.InterestedReply


Result = replies.AnyReply | Found | Following


def perform(service: Service, owner: int, request: requests.AnyRequest, rows: int) -> Result:
    """Do what a session asks."""
    if isinstance(request, requests.InterestRequest):
        return follow(service, owner, request)
    if isinstance(request, requests.QueryRequest):
        return ask(service, request, rows)
    return ACTIONS[type(request)](service, request)


def ping(service: Service, request: requests.PingRequest) -> replies.DoneReply:
    """The last complete time."""
    return replies.DoneReply(request.id, last(service))


def last(service: Service) -> int | None:
    """The last complete time, if there is one."""
    return service.time - 1 if service.time > 0 else None


def create_relation(service: Service, request: requests.CreateRelationRequest) -> replies.DoneReply:
    """A new relation."""
    columns = {column.name: column.type for column in request.columns}
    if len(columns) < len(request.columns):
        raise SchemaMismatch(f"two columns of {request.name} have the same name", hint="Rename one of them.")
    service.create_relation(
        request.name, columns, semantics=request.semantics, key=request.key, order=request.order
    )  # fmt: skip
    return replies.DoneReply(request.id, last(service))


def create_attribute(service: Service, request: requests.CreateAttributeRequest) -> replies.DoneReply:
    """A new attribute."""
    service.create_attribute(request.name, request.value, semantics=request.semantics)
    return replies.DoneReply(request.id, last(service))


def transact(service: Service, request: requests.TransactRequest) -> replies.DoneReply:
    """Changes at one time."""
    changes = [Change(block.relation, row, block.diff) for block in request.changes for row in block.rows]
    origin = (request.origin.writer, request.origin.batch) if request.origin else None
    return replies.DoneReply(request.id, service.transact(changes, origin=origin))


def register(service: Service, request: requests.RegisterRequest) -> replies.RegisteredReply:
    """Rules, stored."""
    text = request.text if request.text is not None else json.dumps(request.plan)
    return replies.RegisteredReply(
        request.id, tuple(service.register(text, language=request.language, name=request.name))
    )


def unregister(service: Service, request: requests.UnregisterRequest) -> replies.DoneReply:
    """A rule, forgotten."""
    service.unregister(request.name)
    return replies.DoneReply(request.id, last(service))


def follow(service: Service, owner: int, request: requests.InterestRequest) -> Following:
    """A new interest."""
    made = service.interest(
        request.name,
        arguments=request.arguments,
        owner=owner,
        sharing=request.sharing,
        joins=request.joins,
        granularity=request.granularity,
        log=request.log,
        sink=asdict(request.sink) if request.sink is not None else None,
    )
    return Following(made, replies.InterestedReply(request.id, made.id, made.name, columns_of_interest(made)))


def columns_of_interest(interest: Interest) -> tuple[parts.ColumnSpec, ...]:
    """The columns of an interest's rows, by the types of the engine."""
    return tuple(parts.ColumnSpec(name, type_name(kind)) for name, kind in interest.columns)


def type_name(kind: str) -> str:
    """The type of a column of this kind, as the engine calls it."""
    return str(parse_type(next(made for each, made in TYPES.items() if each == kind)))


def uninterest(service: Service, request: requests.UninterestRequest) -> replies.DoneReply:
    """An interest, ended."""
    service.uninterest(service.interests[request.interest])
    return replies.DoneReply(request.id, last(service))


def add_arguments(service: Service, request: requests.AddArgumentsRequest) -> replies.DoneReply:
    """More arguments of an interest."""
    service.add_arguments(service.interests[request.interest], request.arguments)
    return replies.DoneReply(request.id, last(service))


def remove_arguments(service: Service, request: requests.RemoveArgumentsRequest) -> replies.DoneReply:
    """Fewer arguments of an interest."""
    service.remove_arguments(service.interests[request.interest], request.arguments)
    return replies.DoneReply(request.id, last(service))


def ask(service: Service, request: requests.QueryRequest, most: int) -> Found:
    """The rows of an answer; one more than allowed is asked for, to know whether it was cut."""
    limit = most if request.limit is None else min(request.limit, most)
    table = service.query(
        request.text, language=request.language, arguments=request.arguments, as_of=request.as_of, limit=limit + 1
    )  # fmt: skip
    time = request.as_of if request.as_of is not None else service.time - 1
    return Found(table.slice(0, limit), time, table.num_rows > limit)


def explain(service: Service, request: requests.ExplainRequest) -> replies.ExplainedReply:
    """How a rule is computed."""
    return replies.ExplainedReply(request.id, service.explain(request.name))


def catalog(service: Service, request: requests.CatalogRequest) -> replies.CatalogReply:
    """What there is."""
    rules = set(service.rules.names())
    found = []
    for name, relation in sorted(service.known().items()):
        columns = tuple(parts.ColumnSpec(each.name, type_name(each.kind)) for each in relation.columns)
        found.append(parts.RelationSpec(name, role_of(name, rules), columns))
    return replies.CatalogReply(request.id, tuple(found), last(service))


def role_of(name: str, rules: set[str]) -> Any:
    """Whether a name is a rule's, an attribute's or a relation's."""
    return "rule" if name in rules else "attribute" if is_attribute(name) else "relation"


def observe(service: Service, request: requests.ObserveRequest) -> replies.RegisteredReply:
    """The engine's events, as attributes."""
    return replies.RegisteredReply(request.id, service.observe(request.attributes, every=request.every))


def advance(service: Service, request: requests.AdvanceRequest) -> replies.DoneReply:
    """The clock, moved."""
    return replies.DoneReply(request.id, service.advance(request.to))


def close_input(service: Service, request: requests.CloseInputRequest) -> replies.DoneReply:
    """A relation that will not change any more."""
    service.close_input(request.relation)
    return replies.DoneReply(request.id, last(service))


ACTIONS: dict[type, Callable[[Service, Any], replies.AnyReply]] = {
    requests.PingRequest: ping,
    requests.CreateRelationRequest: create_relation,
    requests.CreateAttributeRequest: create_attribute,
    requests.TransactRequest: transact,
    requests.RegisterRequest: register,
    requests.UnregisterRequest: unregister,
    requests.AddArgumentsRequest: add_arguments,
    requests.RemoveArgumentsRequest: remove_arguments,
    requests.UninterestRequest: uninterest,
    requests.ExplainRequest: explain,
    requests.CatalogRequest: catalog,
    requests.ObserveRequest: observe,
    requests.AdvanceRequest: advance,
    requests.CloseInputRequest: close_input,
    requests.ShutdownRequest: ping,
    requests.TakeRequest: ping,
}
