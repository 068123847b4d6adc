from __future__ import annotations

import hashlib
import http.server
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.provision import web
from tools.provision.messages import StartError

DATA = b"0123456789" * 1000
ASKED: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/gone":
            self.send_error(404)
            return
        if self.path == "/busy" and len(ASKED) < 2:
            ASKED.append(self.path)
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(DATA)))
        self.end_headers()
        self.wfile.write(DATA[:100] if self.path == "/cut" else DATA)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> web.Client:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return web.Client({}, 5, (0.0, 0.0))


def test_a_file_that_is_the_right_one(client: web.Client, site: str, tmp_path: Path) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    client.fetch(f"{site}/x", tmp_path / "x", digest, len(DATA), "fetching")
    assert (tmp_path / "x").read_bytes() == DATA
    assert client.read(f"{site}/x", "reading", len(DATA)) == DATA
    assert client.reaches(f"{site}/x")


@pytest.mark.parametrize(
    ("path", "limit", "said"),
    [
        ("/gone", 10**6, "404"),
        ("/cut", 10**6, "sha256|IncompleteRead"),
        ("/x", 10**6, "expected 00"),
        ("/x", 10, "larger than expected"),
    ],
)
def test_a_wrong_file_leaves_nothing(
    path: str, limit: int, said: str, client: web.Client, site: str, tmp_path: Path
) -> None:
    with pytest.raises(StartError, match=said):
        client.fetch(site + path, tmp_path / "x", "00", limit, "fetching")
    assert not (tmp_path / "x").exists()


def test_a_network_that_fails_for_a_moment(client: web.Client, site: str) -> None:
    ASKED.clear()
    assert client.read(f"{site}/busy", "reading", len(DATA)) == DATA
    assert len(ASKED) == 2


def test_a_site_that_is_not_there(client: web.Client, site: str) -> None:
    assert not client.reaches("http://127.0.0.1:9/x")
    assert not client.reaches(f"{site}/gone")
    with pytest.raises(StartError, match="refused"):
        client.read("http://127.0.0.1:9/x", "reading", 1)
    with pytest.raises(StartError, match="larger than expected"):
        client.read(f"{site}/x", "reading", 10)


def test_authorities_that_are_named_come_before_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, own = tmp_path / "system.crt", tmp_path / "own.crt"
    system.touch()
    own.touch()
    monkeypatch.setattr(web, "BUNDLES", ("/no/file", str(system)))
    assert web.bundle({}) == system
    assert web.bundle({"SSL_CERT_FILE": str(own)}) == own
    with pytest.raises(StartError, match="/no/such is not a file"):
        web.bundle({"SSL_CERT_FILE": "/no/such"})
    assert web.variables({}) == {"SSL_CERT_FILE": str(system), "REQUESTS_CA_BUNDLE": str(system)}
    assert web.variables({"SSL_CERT_FILE": str(own), "PIP_CERT": "x"}) == {}
    monkeypatch.setattr(web, "BUNDLES", ())
    assert web.variables({}) == {}
    assert web.java_options(tmp_path, {}) == []


PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


def test_a_trust_store_holds_every_certificate_once(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("# a comment\n" + PEM.format("AAEC") + PEM.format("AwQ=") + PEM.format("AAEC"))
    store = web.trust_store(file)
    assert struct.unpack(">III", store[:12]) == (0xFEEDFEED, 2, 2)
    assert b"\0\5X.509\0\0\0\3\0\1\2" in store
    assert store[-20:] == hashlib.sha1(b"Mighty Aphrodite" + store[:-20]).digest()
    options = web.java_options(tmp_path, {"SSL_CERT_FILE": str(file)})
    written = Path(options[0].split("trustStore=")[1])
    assert written.read_bytes() == store
    assert web.java_options(tmp_path, {"SSL_CERT_FILE": str(file)}) == options


@pytest.mark.skipif(shutil.which("keytool") is None, reason="only a JDK has keytool")
def test_java_reads_a_trust_store(tmp_path: Path) -> None:
    bundle = next((Path(name) for name in web.BUNDLES if Path(name).is_file()), None)
    if bundle is None:
        pytest.skip("this machine has no file of authorities")
    store = tmp_path / "store.jks"
    store.write_bytes(web.trust_store(bundle))
    done = subprocess.run(
        ["keytool", "-list", "-keystore", str(store), "-storetype", "JKS"],
        input="\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"contains {store.read_bytes().count(b'X.509')} entries" in done.stdout


def test_a_probe_that_is_answered_by_the_user() -> None:
    assert web.probe({"a": "http://127.0.0.1:9/x"}, {"TFP_UPSTREAM": "1"}) == {"a": True}
    assert web.probe({"a": "http://127.0.0.1:9/x"}, {}, 0.5) == {"a": False}
