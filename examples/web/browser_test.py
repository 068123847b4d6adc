"""The package and the demo in a browser without a window: `CHROMIUM` names it, or it is on PATH."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import os
import platform
import queue
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
# Of a stage, on a machine that has other work.
_SECONDS = 180
_PAGE = '<!doctype html><meta charset="utf-8"><body><script type="module" src="/{}"></script>'
# Chromium's flag for dark mode: 0 is dark, and 1 is light.
_DARK = "--blink-settings=preferredColorScheme={:d}"
# Of a module, as a server compresses it, with its weights.
_MOST_BYTES = 150_000
# What outputs of weights that are bytes and float16 may differ by from those of Keras.
_ROUNDED = 2e-3
# Which sound of `word_features.npz` is a "yes".
_YES = 2
# V8 has SIMD in WebAssembly only where it may use SSE4.1.
_WITHOUT_SIMD = "--js-flags=--no-enable-sse4-1"


class _Handler(serve.Handler):
    """The demos, the page of the test, its features, and where it says what it does and found.

    Attributes:
        isolation: Headers of every file.
        dark: Whether the browser asks for dark pages.
        found: What the page has found, once it has ended.
        stages: What the page does next; `None` at its end.
    """

    dark: ClassVar[bool] = False
    found: ClassVar[dict[str, object]] = {}
    stages: ClassVar[queue.Queue[str | None]] = queue.Queue()

    @classmethod
    def begin(cls, isolated: bool, dark: bool) -> None:
        """Forgets what was found; the page may then share memory with threads, or may not."""
        cls.dark = dark
        cls.found = {}
        cls.stages = queue.Queue()
        cls.isolation = serve.Handler.isolation if isolated else {}

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:  # noqa: N802 (http.server calls it)
        answers = {
            "/test.html": (_PAGE.format("browser_test.js").encode(), "text/html"),
            "/old.html": (_PAGE.format("old_browser_test.js").encode(), "text/html"),
            "/features.json": (_features(self.dark), "text/json"),
            "/triangle.bmp": (_bitmap(_shape(2)), "image/bmp"),
            "/square.bmp": (_bitmap(_shape(3)), "image/bmp"),
            "/rocket.bmp": (_bitmap(_thing(21)), "image/bmp"),
        }
        if self.path.startswith("/bundled/"):
            self.path = self.path.replace("/bundled/", "/mnist/")
            answers |= {
                "/mnist/worker.js": (self._script("worker", "index", "inner"), "text/javascript"),
                "/mnist/inner.js": (self._script("index", "worker", "none"), "text/javascript"),
            }
        # Servers compress modules, and their lengths are those of what they send.
        module = self.path.startswith("/mnist/") and self.path.endswith(".wasm")
        file = Path(self.translate_path(self.path))
        if module and file.is_file():
            answers[self.path] = (gzip.compress(file.read_bytes(), 1), "application/wasm")
        if self.path not in answers:
            super().do_GET()
            return
        content, kind = answers[self.path]
        self.send_response(200)
        if module:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _script(self, name: str, named: str, instead: str) -> bytes:
        """Returns a script of a package that names another file.

        So does webpack: in the worker's script, the address of the worker is wrong.
        """
        script = Path(self.translate_path(f"/mnist/{name}.js")).read_text("utf-8")
        assert f"./{named}.js" in script
        return script.replace(f"./{named}.js", f"./{instead}.js").encode()

    def do_POST(self) -> None:  # noqa: N802 (http.server calls it)
        length = int(self.headers["Content-Length"])
        told = json.loads(self.rfile.read(length))
        ended = self.path == "/result"
        if ended:
            _Handler.found = told
        else:
            _Handler.stages.put(told)
        self.send_response(204)
        self.end_headers()
        if ended:
            _Handler.stages.put(None)


def _features(dark: bool) -> bytes:
    found: dict[str, object] = {"tolerance": 1e-5, "rounded": _ROUNDED, "dark": dark}
    for file, given, name, answer in (
        ("features.npz", "image", "images", "digits"),
        ("sound_features.npz", "samples", "samples", "kinds"),
        ("word_features.npz", "samples", "spoken", "words"),
        ("shape_features.npz", "image", "pictures", "shapes"),
        ("thing_features.npz", "image", "drawings", "things"),
    ):
        with np.load(_HERE.parent / "tf2rust" / file) as arrays:
            found[name] = arrays[given].ravel().tolist()
            found[answer] = arrays["predictions"].ravel().tolist()
    return json.dumps(found).encode()


def _shape(kind: int) -> Picture:
    """Returns one of the first pictures of `shape_features.npz`, which has a kind each."""
    return _enlarged("shape_features.npz", kind)


def _thing(kind: int) -> Picture:
    """Returns a picture of `thing_features.npz`, whose kinds take turns."""
    return _enlarged("thing_features.npz", kind)


def _enlarged(file: str, number: int) -> Picture:
    with np.load(_HERE.parent / "tf2rust" / file) as arrays:
        pixels = np.rint(arrays["image"][number] * 255)
    return np.asarray(pixels.repeat(6, 0).repeat(6, 1), np.uint8)


def _bitmap(picture: Picture) -> bytes:
    """Returns a BMP file: rows from below, blue first."""
    height, width, _ = picture.shape
    pixels = picture[::-1, :, ::-1].tobytes()
    head = struct.pack("<2sIII", b"BM", 54 + len(pixels), 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0) + pixels


def _write_video(path: Path, *pictures: Picture) -> None:
    """Writes a video, a second of each picture, which the browser takes for a camera."""
    height, width, _ = pictures[0].shape
    frames = b"".join(10 * _frame(picture) for picture in pictures)
    path.write_bytes(f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420jpeg\n".encode() + frames)


def _frame(picture: Picture) -> bytes:
    red, green, blue = np.moveaxis(picture.astype(np.float64), -1, 0)
    light = 0.299 * red + 0.587 * green + 0.114 * blue
    planes = [
        16 + light * 219 / 255,
        (128 + (blue - light) / 1.772 * 224 / 255)[::2, ::2],
        (128 + (red - light) / 1.402 * 224 / 255)[::2, ::2],
    ]
    return b"FRAME\n" + b"".join(np.rint(plane).astype(np.uint8).tobytes() for plane in planes)


def _write_sound(path: Path) -> None:
    """Writes what the browser takes for a microphone: two tones that rise, and a word."""
    rate = 48000
    time = np.arange(rate) / rate
    phase = 2 * np.pi * np.cumsum(800 * 1.8**time) / rate
    tone = np.sin(phase) * np.clip(np.minimum(time, 1 - time) / 0.1, 0, 1)
    with np.load(_HERE.parent / "tf2rust" / "word_features.npz") as arrays:
        word = arrays["samples"][_YES]
    said = np.interp(np.arange(rate) / 3, np.arange(len(word)), word / np.abs(word).max())
    sound = np.concatenate([tone, tone, said])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound * 16000).astype("<i2").tobytes())


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


def _await_end() -> None:
    """Waits until the page has ended; fails where a stage takes too long."""
    stage: str | None = "the start of the browser"
    while stage is not None:
        try:
            before, stage = stage, _Handler.stages.get(timeout=_SECONDS)
        except queue.Empty:
            pytest.fail(f"the page said nothing for {_SECONDS} s, in the stage: {stage}")
        print("ended:", before)


def _browser() -> str:
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.fail("no browser: install chromium, or name one with CHROMIUM")
    return found


def _run(address: str, folder: Path, *flags: str) -> dict[str, object]:
    """Opens a page in the browser; returns what it has found at its end."""
    fixed = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}")
    with _served() as port:
        command = [_browser(), *fixed, *flags, f"http://127.0.0.1:{port}{address}"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as browser:
            try:
                _await_end()
            finally:
                browser.terminate()
    return _Handler.found


def test_the_network_of_digits_is_small() -> None:
    files = sorted((_HERE.parent / "tf2rust" / "mnist_web").glob("*.wasm"))
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in files}
    assert len(sizes) == 4
    assert max(sizes.values()) <= _MOST_BYTES, sizes


@pytest.mark.parametrize("isolated", [True, False])
def test_page_computes_what_keras_does(isolated: bool, tmp_path: Path) -> None:
    dark = isolated
    _Handler.begin(isolated, dark)
    _write_sound(tmp_path / "sound.wav")
    _write_video(tmp_path / "camera.y4m", _shape(4), _thing(19))
    found = _run(
        "/test.html",
        tmp_path,
        _DARK.format(not dark),
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-audio-capture={tmp_path / 'sound.wav'}",
        f"--use-file-for-fake-video-capture={tmp_path / 'camera.y4m'}",
    )
    assert found == {"failures": [], "isolated": isolated, "checks": 112}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flag is of x86-64's V8")
def test_pages_say_which_browser_they_need(tmp_path: Path) -> None:
    _Handler.begin(isolated=False, dark=False)
    assert _run("/old.html", tmp_path, _WITHOUT_SIMD) == {"failures": []}
