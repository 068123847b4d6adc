"""Fetches files with Python's own client, and makes Bazel's Java trust what that client trusts.

Proxies come from the usual variables (``HTTPS_PROXY``), authorities from one file with all of them.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import re
import socket
import ssl
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tools.provision.cache import sha256 as digest_of_file
from tools.provision.cache import write_bytes_whole
from tools.provision.messages import StartError

WAIT_S = 30.0
PAUSES_S = (1.0, 3.0, 9.0)
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",
)
TODO = "check the network (behind a proxy: HTTPS_PROXY and SSL_CERT_FILE), then start again"
# Of a file's transfer; other system errors are those of the disk it is written to.
_FAULTS = (urllib.error.URLError, http.client.HTTPException, ConnectionError, ValueError)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\s.*?-----END CERTIFICATE-----", re.DOTALL)


def bundle(environ: Mapping[str, str]) -> Path | None:
    """The file with the certificate authorities of this machine: SSL_CERT_FILE, else the system's.

    Raises:
        StartError: SSL_CERT_FILE names a file that cannot be read.
    """
    told = environ.get("SSL_CERT_FILE")
    if told:
        if not Path(told).is_file():
            raise StartError(
                "checking SSL_CERT_FILE", f"{told} is not a file", "name a file of PEM certificates"
            )
        return Path(told)
    return next((Path(name) for name in BUNDLES if Path(name).is_file()), None)


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that make other programs (pip, cargo) trust that file; what is set stays."""
    file = bundle(environ)
    if file is None:
        return {}
    told = {"SSL_CERT_FILE": str(file)}
    if not environ.get("PIP_CERT"):
        told["REQUESTS_CA_BUNDLE"] = str(file)
    return {name: value for name, value in told.items() if not environ.get(name)}


def trust_store(authorities: Path) -> bytes:
    """The certificates of a PEM file in the form that every Java reads (JKS, no password)."""
    text = authorities.read_text(encoding="latin-1")
    found = []
    for block in dict.fromkeys(_CERTIFICATE.findall(text)):
        try:
            found.append(ssl.PEM_cert_to_DER_cert(block))
        except ValueError:
            continue
    kind = b"X.509"
    parts = [struct.pack(">III", 0xFEEDFEED, 2, len(found))]
    for number, data in enumerate(found):
        alias = f"ca{number}".encode()
        parts.append(struct.pack(">IH", 2, len(alias)) + alias + bytes(8))
        parts.append(struct.pack(">H", len(kind)) + kind + struct.pack(">I", len(data)) + data)
    body = b"".join(parts)
    # Java checks this digest only where a password is given; the store has none.
    return body + hashlib.sha1(b"Mighty Aphrodite" + body, usedforsecurity=False).digest()


def java_options(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Startup options by which Bazel's Java trusts what this machine trusts.

    Args:
        root: the cache folder; the store is written below it.
        environ: the environment of the start.
    """
    file = bundle(environ)
    if file is None:
        return []
    data = trust_store(file)
    store = root / "trust" / f"{hashlib.sha256(data).hexdigest()[:16]}.jks"
    if not store.exists():
        write_bytes_whole(store, data)
    return [
        f"--host_jvm_args=-Djavax.net.ssl.trustStore={store}",
        "--host_jvm_args=-Djavax.net.ssl.trustStoreType=JKS",
    ]


class Client:
    """Fetches files over HTTP and HTTPS.

    Attributes:
        received: bytes that have arrived so far, for a display of progress.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        wait_s: float = WAIT_S,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        """Keeps how this machine reaches others.

        Args:
            environ: the environment of the start.
            wait_s: seconds without a byte after which a transfer has failed.
            pauses_s: seconds before each further try of a transfer.
        """
        self.received = 0
        self._wait_s = wait_s
        self._pauses_s = tuple(pauses_s)
        file = bundle(environ)
        context = ssl.create_default_context(cafile=str(file) if file else None)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def reaches(self, url: str) -> bool:
        """Whether the first byte of a file arrives, redirections followed."""
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
        try:
            with self._opener.open(request, timeout=self._wait_s) as answer:
                return bool(answer.read(1))
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def read(self, url: str, step: str, limit: int) -> bytes:
        """The contents of a file of at most ``limit`` bytes.

        Raises:
            StartError: it did not arrive, or is larger.
        """
        buffer = io.BytesIO()
        self._transfer(url, buffer, limit, step)
        return buffer.getvalue()

    def fetch(self, url: str, file: Path, sha256: str, size: int, step: str) -> None:
        """Fetches a file of at most ``size`` bytes and checks its hash.

        Raises:
            StartError: it did not arrive, or is another file; ``file`` is gone then.
        """
        try:
            with file.open("w+b") as out:
                self._transfer(url, out, size, step)
            found = digest_of_file(file)
            if found != sha256:
                raise StartError(step, f"{url} has the sha256 {found}, expected {sha256}", TODO)
        except StartError:
            file.unlink()
            raise

    def _transfer(self, url: str, out: IO[bytes], limit: int, step: str) -> None:
        """Writes a file to ``out``; tries again where the network is at fault.

        Raises:
            StartError: it did not arrive, or is larger than ``limit`` bytes.
        """
        for pause_s in (*self._pauses_s, None):
            out.seek(0)
            out.truncate()
            have = 0
            try:
                with self._opener.open(url, timeout=self._wait_s) as answer:
                    for block in iter(lambda: answer.read(1 << 16), b""):
                        have += len(block)
                        if have > limit:
                            raise StartError(step, f"{url} is larger than expected", TODO)
                        out.write(block)
                        self.received += len(block)
                    return
            except (*_FAULTS, socket.timeout) as error:
                refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if refused or pause_s is None:
                    raise StartError(step, f"{url}: {_words(error)}", TODO) from error
            time.sleep(pause_s)


def _words(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    return str(reason) or type(reason).__name__


def probe(
    urls: Mapping[str, str], environ: Mapping[str, str], wait_s: float = 3.0
) -> dict[str, bool]:
    """Asks all sites for a byte in parallel; what has not answered in time counts as not reached.

    ``TFP_UPSTREAM=1`` or ``0`` in the environment answers for all of them without asking.
    """
    told = environ.get("TFP_UPSTREAM", "")
    if told in ("0", "1"):
        return dict.fromkeys(urls, told == "1")
    client = Client(environ, wait_s)
    answers = dict.fromkeys(urls, False)

    def ask(name: str, url: str) -> None:
        answers[name] = client.reaches(url)

    threads = [
        threading.Thread(target=ask, args=(name, url), daemon=True) for name, url in urls.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(wait_s + 0.5)
    return dict(answers)
