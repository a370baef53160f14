"""Malformed and hostile bytes: each connection ends or is answered, and others go on."""

import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import Tokens
from tests.pgwire.raw_client import SYNC, RawClient, bind, describe, execute, message, parse, query
from tests.server.serving import served

KINDS = [bytes([code]) for code in b"QPBDECHSXFdcfp?\x00\xff"]
STATEMENTS = ["SELECT 1", "", "BEGIN", "COMMIT", "SELECT nothing", "COPY nowhere FROM STDIN", "COPY fuzzed FROM STDIN",
              "COPY fuzzed TO STDOUT", "FETCH c", "DECLARE c CURSOR FOR SELECT 1", "SELECT $1::integer", "DISCARD ALL",
              "SELECT '\x01'", "SET x = 1"]  # fmt: skip
SENSIBLE = st.one_of(
    st.sampled_from(STATEMENTS).map(query),
    st.sampled_from(STATEMENTS).map(parse),
    st.builds(bind, st.lists(st.none() | st.binary(max_size=9), max_size=2).map(tuple),
              st.lists(st.integers(-1, 2), max_size=2).map(tuple), st.lists(st.integers(-1, 2), max_size=2).map(tuple)),
    st.sampled_from([describe("S"), describe("P"), describe("S", "x"), execute(), execute(1), SYNC, message(b"H")]),
    st.sampled_from([message(b"d", b"1\n"), message(b"c"), message(b"f", b"no\0"), message(b"C", b"Sx\0")]),
)  # fmt: skip
SENSELESS = st.one_of(
    st.builds(message, st.sampled_from(KINDS), st.binary(max_size=40)),
    st.builds(lambda kind, length: kind + struct.pack("!i", length), st.sampled_from(KINDS),
              st.sampled_from([-1, 0, 3, 2**31 - 1, 5000])),
    st.binary(max_size=30),
)  # fmt: skip


@pytest.fixture(scope="module")
def address():
    limits = SessionLimits(message_bytes=100_000, greeting_seconds=2.0)
    with served(limits, pg_port=0, tokens=Tokens(), open_to_all=True) as server:
        client = RawClient(("127.0.0.1", server.pg_port))
        client.socket.sendall(query("CREATE TABLE fuzzed (a integer)"))
        client.until_ready()
        client.close()
        yield "127.0.0.1", server.pg_port


def check_alive(address):
    client = RawClient(address)
    client.socket.sendall(query("SELECT 42"))
    assert [kind for kind, _ in client.until_ready()] == [b"T", b"D", b"C", b"Z"]
    client.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SENSIBLE, max_size=8), st.lists(SENSELESS, max_size=1))
def test_no_sequence_of_messages_makes_the_server_fail_or_hang(address, sensible, senseless):
    client = RawClient(address)
    client.socket.sendall(b"".join(sensible) + b"".join(senseless) + message(b"c") + SYNC + message(b"X"))
    client.socket.settimeout(2)
    try:
        data = client.until_end()
    except TimeoutError:  # a length that promises more bytes
        client.socket.shutdown(socket.SHUT_WR)
        client.socket.settimeout(60)
        data = client.until_end()
    assert b"the server failed" not in data
    client.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(
    st.binary(min_size=1, max_size=60),
    st.builds(lambda code, rest: struct.pack("!ii", len(rest) + 8, code) + rest,
              st.sampled_from([196608, 196610, 131072, 80877103, 80877104, 80877102, 0, -1]), st.binary(max_size=30)),
))  # fmt: skip
def test_no_first_packet_makes_the_server_fail_or_hang(address, data):
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        assert b"the server failed" not in received


def test_a_client_that_says_nothing_is_closed_and_a_large_message_refused(address):
    with socket.create_connection(address, timeout=60) as connection:
        assert connection.recv(1) == b""
    client = RawClient(address)
    client.socket.sendall(query("SELECT '" + "x" * 200_000 + "'"))
    assert b"may send 100,000" in client.until_end()
    check_alive(address)


def test_a_cancel_request_with_a_wrong_secret_has_no_effect(address):
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(struct.pack("!iiII", 16, 80877102, 1, 12345))
        assert connection.recv(1) == b""
    check_alive(address)
