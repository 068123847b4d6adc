"""Remote servers: the cache of ``--config=ci`` and the engine of ``--config=remote``.

TFP_REMOTE_CACHE and TFP_REMOTE_EXECUTOR say where they are; both are asked whether they answer.

A cache that is down when a build starts is left out, with one line. One that fails later costs
time, never the build: Bazel computes what it cannot fetch. After a dozen failures that are more
than one request in a hundred, it asks no more. Its warnings go through ``relay.py``, which says one
line of them.

An engine has to answer: a build that asks for it is not the one that runs here.
"""

from __future__ import annotations

import hashlib
import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tools.provision.cache import write_whole
from tools.provision.messages import StartError, say

URL = "TFP_REMOTE_CACHE"
EXECUTOR = "TFP_REMOTE_EXECUTOR"
WRITE = "TFP_REMOTE_CACHE_WRITE"
SCHEMES = ("grpc", "grpcs", "http", "https")
EXECUTOR_SCHEMES = ("grpc", "grpcs")
PATIENCE_S = 3.0

# The first words of an HTTP/2 client: the preface and an empty frame of settings.
_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_HTTP2_SETTINGS = 4

OPTIONS = (
    # What was built or fetched lies on this disk: a server that dies later breaks no build.
    "--remote_download_outputs=all",
    "--remote_verify_downloads",
    "--remote_local_fallback",
    "--remote_timeout=15s",
    "--remote_retries=1",
    "--remote_retry_max_delay=1s",
    # A dozen failures, whenever they were, and more than one request in a hundred: a build asks no
    # more.
    "--experimental_circuit_breaker_strategy=failure",
    "--experimental_remote_failure_window_interval=1d",
    "--experimental_remote_failure_rate_threshold=1",
)


def wanted(arguments: Sequence[str], config: str) -> bool:
    """Whether a command line asks for a configuration."""
    return f"--config={config}" in arguments or ("--config", config) in zip(
        arguments, arguments[1:]
    )


def _split(text: str, schemes: Sequence[str]) -> SplitResult | None:
    """The parts of an address; None if it is none or has another scheme."""
    try:
        url = urlsplit(text)
        known = url.scheme in schemes and bool(url.hostname)
        return url if known and (url.port is None or url.port > 0) else None
    except ValueError:
        return None


def read_url(environ: Mapping[str, str]) -> SplitResult | None:
    """The cache's address; None if there is none.

    Raises:
        StartError: it is not an address of a cache.
    """
    text = environ.get(URL, "").strip()
    if not text:
        return None
    url = _split(text, SCHEMES)
    if url is None:
        raise StartError(
            f"checking {URL}",
            f"{text} is not an address of a cache, expected one such as grpc://cache.example:9092 "
            f"or http://cache.example:8080 (schemes: {', '.join(SCHEMES)})",
            "correct it or unset it",
        )
    return url


def read_executor(environ: Mapping[str, str]) -> SplitResult:
    """The engine's address.

    Raises:
        StartError: there is none, or it is not an address of an engine.
    """
    text = environ.get(EXECUTOR, "").strip()
    url = _split(text, EXECUTOR_SCHEMES)
    if url is None:
        raise StartError(
            f"checking {EXECUTOR}",
            f"it is {text or 'not set'}, expected the address of an engine such as "
            f"grpc://engine.example:8980 (schemes: {', '.join(EXECUTOR_SCHEMES)})",
            "correct it, or build without --config=remote",
        )
    return url


def may_write(environ: Mapping[str, str]) -> bool:
    """Whether what is built here goes into the cache.

    Raises:
        StartError: the variable says neither.
    """
    text = environ.get(WRITE, "").strip()
    if text not in ("", "0", "1"):
        raise StartError(f"checking {WRITE}", f"it is {text}, expected 0 or 1", "correct it")
    return text == "1"


def public(url: SplitResult) -> str:
    """The address without a password."""
    host = url.netloc.rpartition("@")[2]
    return f"{url.scheme}://{host}{url.path}"


def shown(environ: Mapping[str, str]) -> str:
    """The cache's address as people may see it; empty if there is none."""
    url = read_url(environ)
    return public(url) if url is not None else ""


def silence(url: SplitResult, patience_s: float = PATIENCE_S) -> str | None:
    """Why a cache can't be used, in a few words; None if it answers."""
    try:
        if url.scheme == "grpc":
            return _ask_http2(url, patience_s)
        if url.scheme == "grpcs":
            socket.create_connection((url.hostname, url.port or 443), patience_s).close()
            return None
        return _ask_http(url, patience_s)
    except http.client.HTTPException:
        return "it speaks no HTTP"
    except socket.timeout:
        return f"no answer in {patience_s:g} s"
    except OSError as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, socket.timeout):
            return f"no answer in {patience_s:g} s"
        return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def _ask_http2(url: SplitResult, patience_s: float) -> str | None:
    with socket.create_connection((url.hostname, url.port or 80), patience_s) as connection:
        connection.settimeout(patience_s)
        connection.sendall(_HTTP2_HELLO)
        head = b""
        while len(head) < 9:
            part = connection.recv(9 - len(head))
            if not part:
                return "it hangs up, so it speaks no gRPC"
            head += part
    return None if head[3] == _HTTP2_SETTINGS else "it speaks no gRPC"


def _ask_http(url: SplitResult, patience_s: float) -> str | None:
    """Asks for an action that nobody has; "not found" is the right answer."""
    base = public(url).rstrip("/")
    request = urllib.request.Request(f"{base}/ac/{'0' * 64}", method="GET")
    if url.username:
        password = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        password.add_password(None, base, url.username, url.password or "")
        opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(password))
    else:
        opener = urllib.request.build_opener()
    try:
        opener.open(request, timeout=patience_s).close()
    except urllib.error.HTTPError as error:
        with error:
            return None if error.code == 404 else f"it answers {error.code}"
    return None


def lines(url: SplitResult, write: bool) -> list[str]:
    """The bazelrc lines that make ``--config=ci`` use a cache."""
    options = [
        f"--remote_cache={url.geturl()}",
        f"--remote_upload_local_results={'true' if write else 'false'}",
        *OPTIONS,
    ]
    return [f"build:ci {option}" for option in options]


def startup_options(root: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """What to put before the user's arguments.

    Args:
        root: the cache folder.
        environ: the environment of the start.
        arguments: the user's arguments.

    Raises:
        StartError: a variable means nothing.
    """
    if not wanted(arguments, "ci"):
        return []
    url, write = read_url(environ), may_write(environ)
    if url is None:
        return []
    why = silence(url)
    if why is not None:
        say(f"the remote cache {public(url)} is not used: {why}; this build goes on without it")
        return []
    return [_bazelrc(root, lines(url, write))]


def executor_options(root: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """What to put before the user's arguments for ``--config=remote``.

    Args:
        root: the cache folder.
        environ: the environment of the start.
        arguments: the user's arguments.

    Raises:
        StartError: no engine is named, or it does not answer.
    """
    # Who names an engine to Bazel itself needs nothing of this.
    named = any(argument.startswith("--remote_executor") for argument in arguments)
    if named or not wanted(arguments, "remote"):
        return []
    url = read_executor(environ)
    why = silence(url)
    if why is not None:
        raise StartError(
            f"asking the engine {public(url)}",
            why,
            f"start it, correct {EXECUTOR}, or build without --config=remote",
        )
    return [_bazelrc(root, [f"build:remote --remote_executor={url.geturl()}"])]


def _bazelrc(root: Path, texts: Sequence[str]) -> str:
    """Writes options into a file that only the user can read; returns the option that names it."""
    text = "# Generated by tools/bazel.\n" + "".join(f"{line}\n" for line in texts)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    rc = root / "plans" / f"remote-{name}.bazelrc"
    write_whole(rc, text)
    rc.chmod(0o600)
    return f"--bazelrc={rc}"
