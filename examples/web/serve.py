"""Serves the demo pages and their models' npm packages on this machine.

Exit codes: 0 ended by Ctrl-C; 2 wrong usage or a port that is taken.
"""

from __future__ import annotations

import functools
import http.server
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from absl import app, flags

_PORT = flags.DEFINE_integer("port", 8000, "port on this machine; 0 for any that is free", 0, 65535)

_TYPES = {".js": "text/javascript", ".wasm": "application/wasm"}
_PAGE = Path(__file__).parent
_NAMES = ("mnist", "shapes", "sounds", "things", "words")
_MODELS = _PAGE.parent / "tf2rust"
# Address of a package -> its folder.
_PACKAGES = {f"/{name}/": _MODELS / f"{name}_web" for name in _NAMES}
# What the drawings of a page consist of.
_THINGS = "/things.json"


class Handler(http.server.SimpleHTTPRequestHandler):
    """The pages at `/`, and each package at its name, such as `/mnist/`."""

    # What lets pages share memory with threads.
    isolation: ClassVar[Mapping[str, str]] = {
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
    }

    def translate_path(self, path: str) -> str:
        """Returns the file of an address."""
        package = next((prefix for prefix in _PACKAGES if path.startswith(prefix)), None)
        folder = _MODELS if path == _THINGS else _PAGE
        self.directory = str(_PACKAGES[package] if package else folder)
        return super().translate_path(path[len(package) - 1 :] if package else path)

    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """Returns the types that browsers insist on."""
        return _TYPES.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        """Adds the isolation, and that nothing is kept, so that a new build is seen."""
        for name, value in self.isolation.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def server(port: int) -> http.server.ThreadingHTTPServer:
    """Returns a server of the pages on a port of this machine."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler))


def _main(_: Sequence[str]) -> int:
    try:
        web = server(_PORT.value)
    except OSError as err:
        print(f"serve: port {_PORT.value}: {err.strerror}; pass --port 0", file=sys.stderr)
        return 2
    print(f"serve: open http://127.0.0.1:{web.server_port}/ (Ctrl-C ends)", flush=True)
    try:
        web.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        web.server_close()
    return 0


if __name__ == "__main__":
    app.run(_main)
