"""The package and the demo in a browser without a window: `CHROMIUM` names it, or it is on PATH."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import struct
import subprocess
import threading
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from examples.web import serve

Picture: TypeAlias = npt.NDArray[np.uint8]

_HERE = Path(__file__).parent
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 120
_PAGE = (
    b'<!doctype html><meta charset="utf-8"><body>'
    b'<script type="module" src="/browser_test.js"></script>'
)


class _Handler(serve.Handler):
    """The demos, the page of the test, its features, and where it says what it found."""

    found: ClassVar[dict[str, object]] = {}
    done = threading.Event()

    @classmethod
    def begin(cls, isolated: bool) -> None:
        """Forgets what was found; the page may then share memory with threads, or may not."""
        cls.found = {}
        cls.done.clear()
        cls.isolation = serve.Handler.isolation if isolated else {}

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:  # noqa: N802 (http.server calls it)
        answers = {
            "/test.html": (_PAGE, "text/html"),
            "/features.json": (_features(), "text/json"),
            "/triangle.bmp": (_bitmap(_picture(2)), "image/bmp"),
        }
        if self.path not in answers:
            super().do_GET()
            return
        content, kind = answers[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:  # noqa: N802 (http.server calls it)
        length = int(self.headers["Content-Length"])
        _Handler.found = json.loads(self.rfile.read(length))
        self.send_response(204)
        self.end_headers()
        _Handler.done.set()


def _features() -> bytes:
    found: dict[str, object] = {"tolerance": 1e-5}
    for file, given, name, answer in (
        ("features.npz", "image", "images", "digits"),
        ("sound_features.npz", "samples", "samples", "kinds"),
        ("shape_features.npz", "image", "pictures", "shapes"),
    ):
        with np.load(_HERE.parent / "tf2rust" / file) as arrays:
            found[name] = arrays[given].ravel().tolist()
            found[answer] = arrays["predictions"].ravel().tolist()
    return json.dumps(found).encode()


def _picture(kind: int) -> Picture:
    """Returns one of the first pictures of `shape_features.npz`, which has a kind each."""
    with np.load(_HERE.parent / "tf2rust" / "shape_features.npz") as arrays:
        pixels = np.rint(arrays["image"][kind] * 255)
    return np.asarray(pixels.repeat(4, 0).repeat(4, 1), np.uint8)


def _bitmap(picture: Picture) -> bytes:
    """Returns a BMP file: rows from below, blue first."""
    height, width, _ = picture.shape
    pixels = picture[::-1, :, ::-1].tobytes()
    head = struct.pack("<2sIII", b"BM", 54 + len(pixels), 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0) + pixels


def _write_video(path: Path, picture: Picture) -> None:
    """Writes a video of one picture that stands still, which the browser takes for a camera."""
    height, width, _ = picture.shape
    red, green, blue = np.moveaxis(picture.astype(np.float64), -1, 0)
    light = 0.299 * red + 0.587 * green + 0.114 * blue
    planes = [
        16 + light * 219 / 255,
        (128 + (blue - light) / 1.772 * 224 / 255)[::2, ::2],
        (128 + (red - light) / 1.402 * 224 / 255)[::2, ::2],
    ]
    frame = b"FRAME\n" + b"".join(np.rint(plane).astype(np.uint8).tobytes() for plane in planes)
    path.write_bytes(f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420jpeg\n".encode() + 10 * frame)


def _write_tone(path: Path) -> None:
    """Writes two seconds of a tone that rises in each, which the browser takes for a microphone."""
    rate = 48000
    time = np.arange(rate) / rate
    phase = 2 * np.pi * np.cumsum(800 * 1.8**time) / rate
    second = np.sin(phase) * np.clip(np.minimum(time, 1 - time) / 0.1, 0, 1)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.tile(second, 2) * 16000).astype("<i2").tobytes())


@contextlib.contextmanager
def _served() -> Iterator[int]:
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield web.server_port
    finally:
        web.shutdown()
        web.server_close()


def _browser() -> str:
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.fail("no browser: install chromium, or name one with CHROMIUM")
    return found


@pytest.mark.parametrize("isolated", [True, False])
def test_page_computes_what_keras_does(isolated: bool, tmp_path: Path) -> None:
    _Handler.begin(isolated)
    with _served() as port:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        _write_tone(tmp_path / "tone.wav")
        _write_video(tmp_path / "star.y4m", _picture(4))
        flags += [
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={tmp_path / 'tone.wav'}",
            f"--use-file-for-fake-video-capture={tmp_path / 'star.y4m'}",
        ]
        command = [_browser(), *flags, f"http://127.0.0.1:{port}/test.html"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as browser:
            answered = _Handler.done.wait(_SECONDS)
            browser.terminate()
    assert answered, f"the page said nothing in {_SECONDS} s"
    assert _Handler.found["failures"] == []
    assert _Handler.found["isolated"] == isolated
    assert _Handler.found["checks"] == 50
