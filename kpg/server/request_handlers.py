"""One handler per request of the protocol: what it does with the service, and its reply.

    @handles(requests.PingRequest)
    def ping(context, request): ...

Handlers run on the engine's thread. A handler that raises KpgError has changed nothing. To add a request, define it in
`kpg.protocol.requests`, add its handler here, and describe it in docs/protocol.md; nothing else refers to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kpg.columns.pause_points import pause
from kpg.errors import InputError, KpgError, NotAuthorised, SchemaMismatch, Stopped, UndefinedName
from kpg.protocol import parts, replies, requests
from kpg.query.lower.value_expressions import column_type
from kpg.server.change_payload import ChangePayload, QueryRows
from kpg.service import Interest, Service
from kpg.service.relation_declarations import is_attribute
from kpg.sql.sql_states import QUERY_CANCELED, with_sqlstate

if TYPE_CHECKING:
    from kpg.server.engine_thread import EngineThread
    from kpg.server.server_tables import ServerTables
    from kpg.server.tokens import TokenHolder

USER_FACTOR = 100  # by which the request of a user may raise a limit of its query
RELATIONS_PER_PAUSE = 100  # that are listed between two pauses: less than a millisecond


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The objects that a handler works with."""

    service: Service
    engine: EngineThread
    owner: int  # the session; 0 for HTTP
    max_rows: int  # of an answer to a query
    holder: TokenHolder
    tables: ServerTables


@dataclass(frozen=True, slots=True)
class NewInterest:
    """A new interest and the reply about it."""

    interest: Interest
    reply: replies.InterestedReply


RequestResult = replies.AnyReply | QueryRows | NewInterest | ChangePayload
Handler = TypeVar("Handler", bound=Callable[[RequestContext, Any], RequestResult])
HANDLERS: dict[type, Callable[[RequestContext, Any], RequestResult]] = {}


def handles(*kinds: type[requests.Request]) -> Callable[[Handler], Handler]:
    """Register a function as the handler of some requests."""

    def register_handler(handler: Handler) -> Handler:
        for kind in kinds:
            assert kind not in HANDLERS, f"{kind.__name__} has two handlers"
            HANDLERS[kind] = handler
        return handler

    return register_handler


def handle_request(context: RequestContext, request: requests.AnyRequest) -> RequestResult:
    """Run the handler of a request, with the rights of its tenant."""
    service, tenant = context.service, context.holder.tenant
    with (
        service.grants.acting_as(tenant),
        service.hidden.kept_from(tenant),
        service.planner.serving_user(context.holder.user),
        service.planner.serving(context.owner),
    ):
        return HANDLERS[type(request)](context, request)


def last_time(service: Service) -> int | None:
    """Return the last complete time, if there is one."""
    return service.time - 1 if service.time > 0 else None


@handles(requests.PingRequest, requests.ShutdownRequest)
def ping(context: RequestContext, request: requests.Request) -> replies.DoneReply:
    """Reply with the last complete time. The hub ends the server after it has replied to a shutdown."""
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.CreateRelationRequest)
def create_relation(context: RequestContext, request: requests.CreateRelationRequest) -> replies.DoneReply:
    """Create a relation."""
    columns = {column.name: column.type for column in request.columns}
    if len(columns) < len(request.columns):
        raise SchemaMismatch(f"two columns of {request.name} have the same name", hint="Rename one of them.")
    context.service.create_relation(
        request.name, columns, semantics=request.semantics, key=request.key, order=request.order
    )
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.CreateAttributeRequest)
def create_attribute(context: RequestContext, request: requests.CreateAttributeRequest) -> replies.DoneReply:
    """Create an attribute."""
    context.service.create_attribute(request.name, request.value, semantics=request.semantics)
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.DropRelationRequest)
def drop_relation(context: RequestContext, request: requests.DropRelationRequest) -> replies.DoneReply:
    """Drop a relation with its rows."""
    context.service.drop_relation(request.name)
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.TransactRequest)
def transact(context: RequestContext, request: requests.TransactRequest) -> replies.DoneReply:
    """Apply changes at one time."""
    origin = (request.origin.writer, request.origin.batch) if request.origin else None
    return replies.DoneReply(request.id, context.service.transact_blocks(request.changes, at=request.at, origin=origin))


@handles(requests.RegisterRequest)
def register(context: RequestContext, request: requests.RegisterRequest) -> replies.RegisteredReply:
    """Check and store rules."""
    text = request.text if request.text is not None else json.dumps(request.plan)
    names = context.service.register(text, language=request.language, name=request.name)
    return replies.RegisteredReply(request.id, tuple(names))


@handles(requests.UnregisterRequest)
def unregister(context: RequestContext, request: requests.UnregisterRequest) -> replies.DoneReply:
    """Remove a rule text."""
    context.service.unregister(request.name)
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.GrantRequest, requests.RevokeRequest)
def change_rights(
    context: RequestContext, request: requests.GrantRequest | requests.RevokeRequest
) -> replies.DoneReply:
    """Grant a right to a tenant, or take it back."""
    service = context.service
    change = service.grant if isinstance(request, requests.GrantRequest) else service.revoke
    change(request.name, request.tenant, request.right)
    return replies.DoneReply(request.id, last_time(service))


@handles(requests.InterestRequest)
def follow(context: RequestContext, request: requests.InterestRequest) -> NewInterest:
    """Create an interest."""
    interest = context.service.interest(
        request.name,
        arguments=request.arguments,
        owner=context.owner,
        sharing=request.sharing,
        joins=request.joins,
        granularity=request.granularity,
        log=request.log,
        sink=asdict(request.sink) if request.sink is not None else None,
        limits=limits_of(context, request.limits),
    )
    columns = tuple(parts.ColumnSpec(name, type_name(kind)) for name, kind in interest.columns)
    return NewInterest(interest, replies.InterestedReply(request.id, interest.id, interest.name, columns))


def limits_of(context: RequestContext, limits: dict[str, Any] | None) -> dict[str, float | None] | None:
    """Return the limits of a request. Users may multiply the server's limits by USER_FACTOR, admins may lift them."""
    own = context.service.limits
    defaults = {**asdict(own.query), "rounds": own.query.rounds or own.rounds}
    for name, value in (limits or {}).items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InputError(f"the limit {name} is not a number", detail=f"It is {value!r}.")
        allowed = defaults.get(name)
        if context.holder.role == "admin" or allowed is None:
            continue
        if name == "rounds" and value is None:  # stands for the server's limit
            continue
        if value is None or value > USER_FACTOR * allowed:
            hint = f"A user may raise it to {USER_FACTOR * allowed:,.0f}; the server's option is for all."
            raise NotAuthorised(f"to raise the limit {name} this far needs the role admin", hint=hint)
    return limits


def type_name(kind: str) -> str:
    """Return the engine's name for the type of a column kind."""
    return str(column_type(kind))


def find_interest(context: RequestContext, number: int) -> Interest:
    """Return an interest by its number; raise if an earlier request has just ended it."""
    interest = context.service.interests.get(number)
    if interest is None:
        raise UndefinedName(f"interest {number} has ended")
    return interest


@handles(requests.UninterestRequest)
def uninterest(context: RequestContext, request: requests.UninterestRequest) -> replies.DoneReply:
    """End an interest."""
    context.engine.forget(request.interest)
    context.service.uninterest(find_interest(context, request.interest))
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.TakeRequest)
def take_changes(context: RequestContext, request: requests.TakeRequest) -> ChangePayload | replies.DoneReply:
    """Take the unread changes of an interest; nothing if it has just ended."""
    interest = context.service.interests.get(request.interest)
    if interest is None:
        return replies.DoneReply(request.id, last_time(context.service))
    return context.engine.take(interest)


@handles(requests.AddArgumentsRequest)
def add_arguments(context: RequestContext, request: requests.AddArgumentsRequest) -> replies.DoneReply:
    """Add arguments to an interest."""
    context.service.add_arguments(find_interest(context, request.interest), request.arguments)
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.RemoveArgumentsRequest)
def remove_arguments(context: RequestContext, request: requests.RemoveArgumentsRequest) -> replies.DoneReply:
    """Remove arguments from an interest."""
    context.service.remove_arguments(find_interest(context, request.interest), request.arguments)
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.QueryRequest)
def query(context: RequestContext, request: requests.QueryRequest) -> QueryRows:
    """Return the rows of an answer. Asks for one row more than the limit, to know whether there are more."""
    limit = context.max_rows if request.limit is None else min(request.limit, context.max_rows)
    table = context.service.query(
        request.text,
        language=request.language,
        arguments=request.arguments,
        owner=context.owner or None,  # requests over HTTP have no session
        as_of=request.as_of,
        limit=limit + 1,
        limits=limits_of(context, request.limits),
    )
    time = request.as_of if request.as_of is not None else context.service.time - 1
    return QueryRows(table.slice(0, limit), time, table.num_rows > limit)


@handles(requests.SqlRequest)
def execute_sql(context: RequestContext, request: requests.SqlRequest) -> QueryRows:
    """Execute SQL statements in the session of the client."""
    limit = context.max_rows if request.limit is None else min(request.limit, context.max_rows)
    limits = limits_of(context, request.limits)
    result = context.service.execute_sql(request.text, request.parameters, owner=context.owner, limits=limits)
    table = result.table.rename_columns(distinct_names([column.name for column in result.columns]))
    if len(result) > limit:  # Arrow would give a table without columns as many rows as the slice is long
        table = table.slice(0, limit)
    in_transaction = context.service.in_transaction(context.owner)
    return QueryRows(table, context.service.time - 1, len(result) > limit, result.tag, in_transaction)


def distinct_names(names: list[str]) -> list[str]:
    """Return names for the columns of a message, all different: SQL allows two columns of one name."""
    given: list[str] = []
    for name in names:
        chosen, number = name, 1
        while chosen in given:
            number += 1
            chosen = f"{name}_{number}"
        given.append(chosen)
    return given


@handles(requests.ExplainRequest)
def explain(context: RequestContext, request: requests.ExplainRequest) -> replies.ExplainedReply:
    """Explain how a rule is computed."""
    return replies.ExplainedReply(request.id, context.service.explain(request.name))


@handles(requests.CatalogRequest)
def list_relations(context: RequestContext, request: requests.CatalogRequest) -> replies.CatalogReply:
    """List all relations, attributes and rules with their columns, as they are when the request begins."""
    service = context.service
    rules, relations = set(service.rules.by_name), []
    with service.db.in_turns():
        for number, (name, relation) in enumerate(sorted(service.relations().items())):
            columns = tuple(parts.ColumnSpec(column.name, type_name(column.kind)) for column in relation.columns)
            relations.append(parts.RelationSpec(name, relation_role(name, rules), columns))
            if number % RELATIONS_PER_PAUSE == 0:
                pause()
    return replies.CatalogReply(request.id, tuple(relations), last_time(service))


def relation_role(name: str, rules: set[str]) -> Any:
    """Return whether a name is that of a rule, an attribute or a relation."""
    return "rule" if name in rules else "attribute" if is_attribute(name) else "relation"


@handles(requests.InspectRequest)
def inspect(context: RequestContext, request: requests.InspectRequest) -> QueryRows:
    """Return the state of the server as a table."""
    service, tables = context.service, context.tables
    if tables.has(request.table):
        table = tables.table(request.table, request.name, context.holder.tenant)
    else:
        table = service.inspect(request.table, request.name)
    return QueryRows(table.slice(0, context.max_rows), service.time - 1, table.num_rows > context.max_rows)


@handles(requests.StopRequest)
def stop(context: RequestContext, request: requests.StopRequest) -> replies.DoneReply:
    """Stop the query of an interest or a cursor, or the requests that a session waits for."""
    if (request.number is None) == (request.session is None):
        raise InputError("either number or session must be given", hint="A number is that of a query.")
    if request.number is not None:
        context.engine.run_fetches(context.service.stop(request.number))
    else:
        error = Stopped("the request was stopped", hint="Ask the administrator of the server.")
        context.engine.stop_requests(request.session, with_sqlstate(QUERY_CANCELED, error))
    return replies.DoneReply(request.id, last_time(context.service))


@handles(requests.CancelCallRequest)
def cancel(context: RequestContext, request: requests.CancelCallRequest) -> replies.DoneReply:
    """Stop another request of the same session, if it still waits."""
    context.engine.stop_requests(context.owner, canceled(), label_of(context.owner, request.request))
    return replies.DoneReply(request.id, last_time(context.service))


def canceled() -> KpgError:
    """Return the error of a request that its client does not wait for any more."""
    return with_sqlstate(QUERY_CANCELED, Stopped("the request was canceled", hint="Its client has canceled it."))


def label_of(session: int, request: int) -> str:
    """Return the name of a request in logs and in the engine."""
    return f"{session}-{request}"


@handles(requests.ObserveRequest)
def observe(context: RequestContext, request: requests.ObserveRequest) -> replies.RegisteredReply:
    """Make attributes of the engine's event log relations."""
    return replies.RegisteredReply(request.id, context.service.observe(request.attributes, every=request.every))


@handles(requests.AdvanceRequest)
def advance(context: RequestContext, request: requests.AdvanceRequest) -> replies.DoneReply:
    """Advance the clock."""
    return replies.DoneReply(request.id, context.service.advance(request.to))


@handles(requests.CloseInputRequest)
def close_input(context: RequestContext, request: requests.CloseInputRequest) -> replies.DoneReply:
    """Close a relation: it takes no further changes."""
    context.service.close_input(request.relation)
    return replies.DoneReply(request.id, last_time(context.service))
