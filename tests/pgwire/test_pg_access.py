"""Who may connect, over TLS and without, and what limits do to a connection of PostgreSQL's protocol."""

import subprocess

import psycopg
import pytest

import kpg
from kpg.pgwire.scram_exchange import read_secret, scram_secret
from kpg.server.listener import ListenAddress
from kpg.server.pg_users import read_users
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import tokens_of
from tests.server.serving import ADMIN, USER, served


def connect(server, password, user="someone", **options):
    given = {"dbname": "kpg", "connect_timeout": 30, "autocommit": True} | options
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user=user, password=password, **given)


def test_any_token_is_a_password_and_others_are_refused(pg_server):
    for token in (ADMIN, USER):
        with connect(pg_server, token) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    for wrong in ("wrong", ADMIN + " ", "x" * 2000):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(pg_server, wrong)


def test_users_of_a_file_have_their_own_passwords(tmp_path):
    file = tmp_path / "users"
    secret = "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$"
    file.write_text("# users\nadmin ann a-long-password\nuser bob another-password\nuser tom third-password acme\n")
    with served(pg_port=0, pg_users=file) as server:
        with connect(server, "a-long-password", "ann") as connection:
            connection.execute("CREATE TABLE of_ann (a integer)")
        with connect(server, "another-password", "bob") as connection:
            assert connection.execute("SELECT count(*) FROM of_ann").fetchone() == (0,)
        for user, password in (("ann", "another-password"), ("eve", "a-long-password"), ("ann", ADMIN)):
            with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                connect(server, password, user)
        with pytest.raises(psycopg.OperationalError, match="tenant"):
            connect(server, "third-password", "tom")
    for line in ("admin ann", "user ann short", f"user ann {secret}", "boss ann a-long-password"):
        file.write_text(line)
        with pytest.raises(kpg.KpgError):
            read_users(file)


def test_a_secret_of_postgresql_is_read():
    secret = scram_secret("password", b"0123456789abcdef")
    encoded = "SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$"
    assert read_secret(
        encoded + "mjzSH2ED7FStNewdEfaDtUdAEbvCxpRxbjTuqjQPOvQ=:RZsK+zQIIYQXGhr0YmMZUzQnDiYMgaL7mnW66hNaauE="
    ).salt == secret.salt  # fmt: skip
    with pytest.raises(kpg.InputError):
        read_secret(encoded)


def test_without_tokens_no_password_is_asked_for():
    with served(pg_port=0, tokens=tokens_of([]), open_to_all=True) as server:
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="me", dbname="kpg") as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("kpg",)


def test_with_a_certificate_only_tls_is_accepted(tmp_path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem", "-days", "2", "-subj", "/CN=kpg",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    address = ListenAddress(port=0, tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
    with served(pg_port=0, address=address) as server:
        with connect(server, USER, sslmode="verify-full", sslrootcert=str(tmp_path / "cert.pem")) as connection:
            assert connection.pgconn.ssl_in_use and connection.execute("SELECT 1").fetchone() == (1,)
            assert len(connection.execute("SELECT repeat('x', 3000000)").fetchone()[0]) == 3_000_000
        with pytest.raises(psycopg.OperationalError, match="encrypted connections only"):
            connect(server, USER, sslmode="disable")


def test_settings_of_the_start_are_set_or_refused(pg_server):
    options = "-c statement_timeout=5s -c extra_float_digits=3"
    with connect(pg_server, USER, options=options, application_name="a test") as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("5000",)
        assert connection.info.parameter_status("application_name") == "a test"
        assert connection.info.parameter_status("TimeZone") == "UTC"
        connection.execute("SET application_name TO 'another'")
        assert connection.info.parameter_status("application_name") == "another"
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("SET search_path TO elsewhere")
    with pytest.raises(psycopg.OperationalError, match='unrecognized configuration parameter "nothing"'):
        connect(pg_server, USER, options="-c nothing=1")


TOO_LARGE = r"may send 100,000(?s:.)*kpg serve --max-message-bytes N"


def test_limits_of_a_session_apply():
    limits = SessionLimits(sessions=2, rows=100, message_bytes=100_000, copy_bytes=1_000)
    with served(limits, pg_port=0) as server, connect(server, USER) as connection:
        with pytest.raises(psycopg.Error, match=r"may have 100(?s:.)*kpg serve --max-rows N"):
            connection.execute("SELECT * FROM generate_series(1, 101)")
        connection.execute("CREATE TABLE bounded (a text)")
        with pytest.raises(psycopg.Error, match=r"more than 1,000 bytes(?s:.)*kpg serve --max-copy-bytes N"):
            with connection.cursor().copy("COPY bounded FROM STDIN") as copy:
                copy.write("x" * 2000 + "\n")
        assert connection.execute("SELECT count(*) FROM bounded").fetchone() == (0,)
        with kpg.connect(server.url, token=USER):
            with pytest.raises(
                psycopg.OperationalError, match=r"too many clients(?s:.)*2 sessions(?s:.)*kpg serve --max-sessions N"
            ):
                connect(server, USER)
        with connect(server, USER) as other, pytest.raises(psycopg.Error, match=TOO_LARGE):
            other.execute("SELECT '" + "x" * 200_000 + "'")


def test_a_connection_that_is_lost_leaves_nothing(pg_server):
    with connect(pg_server, USER) as observer:
        observer.execute("CREATE TABLE left_alone (a integer)")
        lost = connect(pg_server, USER)
        lost.execute("BEGIN")
        lost.execute("INSERT INTO left_alone VALUES (1)")
        lost.execute("DECLARE c CURSOR FOR SUBSCRIBE left_alone")
        lost.pgconn.finish()
        for _ in range(600):
            if pg_server.hub.session_count == 1:
                break
            observer.execute("SELECT pg_backend_pid()")
        assert observer.execute("SELECT count(*) FROM left_alone").fetchone() == (0,)
        observer.execute("DROP TABLE left_alone")  # refused while a subscription reads it
