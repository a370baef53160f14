"""Random requests in any order to a real server: each gets a reply, and never an internal error."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect as raw

import kpg
from kpg.protocol import parts, requests
from kpg.protocol.message_codec import encode
from kpg.protocol.messages import VERSION
from kpg.server.server_tables import COLUMNS as SERVER_TABLES
from kpg.server.session_limits import SessionLimits
from kpg.service import Limits
from kpg.service.inspection import COLUMNS as SERVICE_TABLES
from tests.protocol.test_value_codec import VALUES
from tests.server.serving import ADMIN, PATIENCE, USER, served

NAMES = st.sampled_from(["a", "a", "base", "base", "p", "q", ":n", "query", "b", "up", "nothing", "@x", ""])
GOOD = NAMES.filter(bool)
TYPES = st.sampled_from(["int64", "string", "float64", "number", "symbol", "bool", "date", "?"])
TEXTS = st.sampled_from([
    "p(x) :- a(x, _).", "p(x, y) :- a(x, y). p(x, z) :- p(x, y), a(y, z).", "q(x) :- p(x), !a(x, x).", "q(x) :- q(x).",
    "[:find ?e :where [?e :n ?v]]", "[:find ?e :in ?v :where [?e :n ?v]]", "p(x) :- ", "", "p(1). p(2).",
    "q() :- a(_, _).", ".decl b(x: number, y: symbol)", "q(n) :- n = count : {a(_, _)}.",
    "up(x) :- a(x, _). up(y) :- up(x), y = x + 1.",
])  # fmt: skip
PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))
ODD = st.lists(VALUES.filter(lambda value: value == value), max_size=3).map(tuple)
ROWS = st.lists(PAIRS, max_size=4) | st.lists(ODD, max_size=3)
ARGUMENT = st.dictionaries(st.sampled_from(["x", "x", "y", "e", "v"]), st.integers(0, 3), max_size=2)
ARGUMENTS = st.none() | st.lists(ARGUMENT, min_size=1, max_size=2).map(tuple)
BLOCKS = st.lists(st.builds(parts.BlockSpec, GOOD, ROWS.map(tuple), st.sampled_from([1, -1, 0, 2])), max_size=3).map(
    tuple
)
COLUMNS = st.lists(st.builds(parts.ColumnSpec, st.sampled_from("xyz"), TYPES), min_size=1, max_size=3).map(tuple)
SEMANTICS = st.sampled_from(["raw", "distinct", "cardinality-one", "last-write-wins"])
LANGUAGES = st.sampled_from(["datalog", "edn", "plan"])
SHARING = st.sampled_from(["auto", "nothing", "answers", "trunk", "tenants", "?"])
KEYS = st.none() | st.just(("x",))
LITTLE = st.none() | st.integers(0, 3)
NUMBER = st.just(0)
INTERESTS = st.integers(1, 6)

REQUESTS = st.one_of(
    st.builds(requests.PingRequest, NUMBER),
    st.builds(requests.CreateRelationRequest, NUMBER, GOOD, COLUMNS, SEMANTICS, KEYS, st.none() | st.just("y")),
    st.builds(requests.CreateAttributeRequest, NUMBER, GOOD, TYPES, SEMANTICS),
    st.builds(requests.DropRelationRequest, NUMBER, GOOD),
    st.builds(
        requests.TransactRequest, NUMBER, BLOCKS, st.none() | st.builds(parts.OriginSpec, GOOD, st.integers(0, 3))
    ),
    st.builds(requests.RegisterRequest, NUMBER, TEXTS, st.none(), LANGUAGES, st.none() | GOOD),
    st.builds(requests.RegisterRequest, NUMBER, st.none(), st.just({"rules": []}), st.just("plan")),
    st.builds(requests.UnregisterRequest, NUMBER, GOOD),
    st.builds(requests.InterestRequest, NUMBER, GOOD, ARGUMENTS, SHARING),
    st.builds(requests.AddArgumentsRequest, NUMBER, INTERESTS, ARGUMENTS.filter(bool)),
    st.builds(requests.RemoveArgumentsRequest, NUMBER, INTERESTS, ARGUMENTS.filter(bool)),
    st.builds(requests.UninterestRequest, NUMBER, INTERESTS),
    st.builds(requests.TakeRequest, NUMBER, INTERESTS),
    st.builds(
        requests.InspectRequest, NUMBER, st.sampled_from([*SERVICE_TABLES, *SERVER_TABLES, "?"]), st.none() | GOOD
    ),
    st.builds(requests.CancelCallRequest, NUMBER, st.integers(0, 20)),
    st.builds(requests.StopRequest, NUMBER, st.none() | INTERESTS, st.none() | st.integers(1, 9)),
    st.builds(requests.QueryRequest, NUMBER, TEXTS, LANGUAGES, ARGUMENTS, limit=st.integers(0, 3)),
    st.builds(requests.QueryRequest, NUMBER, NAMES, st.none(), ARGUMENTS, LITTLE, LITTLE),
    st.builds(requests.ExplainRequest, NUMBER, GOOD),
    st.builds(requests.CatalogRequest, NUMBER),
    st.builds(requests.AdvanceRequest, NUMBER, st.none() | st.integers(0, 5)),
    st.builds(requests.CloseInputRequest, NUMBER, st.sampled_from(["nothing", ":n"])),
)


class Stranger:
    """A client that sends given requests."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.numbers = iter(range(1_000_000))
        self.interests: list[int] = []

    def ask(self, request) -> dict:
        """Return the reply to a request, skipping pushed messages; an interest is given by its index."""
        message = json.loads(encode(request)) | {"id": next(self.numbers)}
        if type(message.get("interest")) is int and self.interests:
            message["interest"] = self.interests[message["interest"] % len(self.interests)]
        self.socket.send(json.dumps(message))
        while True:
            reply = json.loads(self.socket.recv(PATIENCE))
            if reply.get("id") == message["id"] and not reply.get("more"):
                break
        if reply["type"] == "interested":
            self.interests = [*self.interests, reply["interest"]][-20:]
        return reply


def test_each_request_gets_a_reply_and_never_an_internal_error():
    """Bad input: each request is run or refused with a reason; other clients are not affected."""
    soon = SessionLimits(wait_seconds=0.05)  # for times that do not come
    with served(soon, rounds=100, limits=Limits(rounds=100)) as server, kpg.connect(server.url, token=USER) as other:
        with raw(server.url, proxy=None) as socket:
            stranger = Stranger(socket)
            assert stranger.ask(requests.HelloRequest(0, VERSION, ADMIN))["type"] == "welcome"
            other.create_relation("a", {"x": int, "y": int})
            other.create_attribute(":n", int)
            other.register("base(x, y) :- a(x, y). base(x, z) :- base(x, y), a(y, z).")
            other.insert("a", [(0, 1), (1, 2)])
            for arguments in (None, ({"x": 0},), ({"x": 1}, {"x": 2})):  # interests that later requests name
                assert stranger.ask(requests.InterestRequest(0, "base", arguments))["type"] == "interested"

            @settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
            @given(st.lists(REQUESTS, min_size=1, max_size=15))
            def play(requests):
                for request in requests:
                    failure = stranger.ask(request).get("failure", {})
                    assert "the server failed" not in failure.get("what", ""), (request, failure)

            play()
        assert other.ping() is not None
