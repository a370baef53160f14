"""TLS with real certificates: clients that trust the server's connect, others do not."""

import subprocess

import pytest

import kpg
from kpg.server.listener import ListenAddress
from kpg.server.running_server import Settings
from tests.server.serving import USER, served


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=kpg",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem", folder / "key.pem"


def test_who_trusts_the_certificate_talks_in_secret_and_others_are_warned(certificate):
    cert, key = certificate
    with served(address=ListenAddress(port=0, tls_cert=cert, tls_key=key)) as server:
        assert server.url.startswith("wss://")
        with kpg.connect(server.url, token=USER, authorities=cert) as db:
            db.create_relation("edge", {"x": int})
            assert db.insert("edge", [(1,)]) == 0
        with pytest.raises(kpg.Unreachable, match="certificate") as caught:
            kpg.connect(server.url, token=USER)
        assert "authorities=" in caught.value.hint
        with pytest.raises(kpg.Unreachable):
            kpg.connect(server.url.replace("wss", "ws"), token=USER)


def test_a_certificate_that_cannot_be_used_is_said_before_anything_is_opened(certificate, tmp_path):
    cert, key = certificate
    with pytest.raises(kpg.InputError, match="both"):
        ListenAddress(tls_cert=cert).context()
    with pytest.raises(kpg.Unavailable, match="cannot use the certificate"):
        served(address=ListenAddress(port=0, tls_cert=cert, tls_key=tmp_path / "none")).start()
    (tmp_path / "bad").write_text("not a key")
    with pytest.raises(kpg.Unavailable, match="cannot use the certificate"):
        Settings(address=ListenAddress(tls_cert=cert, tls_key=tmp_path / "bad")).address.context()
    with pytest.raises(kpg.Unavailable, match="cannot read the certificates"):
        kpg.connect("wss://127.0.0.1:1", authorities=tmp_path / "none")
