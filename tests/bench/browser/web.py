"""Compares npm packages that tf2rust writes with onnxruntime-web and tfjs, in node.

Batch 1, float32, random weights, with one thread or `--threads`; tfjs has one in node. All
implementations of a model are in one process and take turns. The peers are what `npm install
onnxruntime-web @tensorflow/tfjs @tensorflow/tfjs-backend-wasm` puts into a folder, which `--peers`
names; one that is not there is left out. Needs a Rust with `rustup target add
wasm32-unknown-unknown`.
"""

from __future__ import annotations

import datetime
import gzip
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from absl import app, flags

from tests.bench.browser.prepare import FACTS, ONNX, TFJS, TFJS_WEIGHTS, prepare
from tests.bench.machine import processor
from tests.bench.models.zoo import ZOO

_PEERS = flags.DEFINE_string("peers", None, "Folder with the node_modules of the peers.")
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds of calls per model.", lower_bound=3)
_SECONDS = flags.DEFINE_float("round_seconds", 0.15, "Time of a round of one, about.")
_THREADS = flags.DEFINE_integer("threads", 1, "Threads of each.", 1, 16)
_STARTS = flags.DEFINE_integer("starts", 5, "Processes for the time of the first result.")
_ONLY = flags.DEFINE_list("only", [], "Measure only models whose names hold one of these texts.")
_FOLDER = flags.DEFINE_string("folder", "", "Keep the prepared models here, and use those here.")
_WRITE = flags.DEFINE_string("write", None, "Markdown file to write.")
_JSON = flags.DEFINE_bool("json", False, "Print the results as JSON on standard output.")

OURS = "ours"
# Each peer's package, and what a page loads of it before the model.
_LOADED = {
    "onnxruntime-web": (
        "onnxruntime-web",
        (
            "onnxruntime-web/dist/ort.wasm.min.mjs",
            "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
            "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
        ),
    ),
    "tfjs": (
        "@tensorflow/tfjs-backend-wasm",
        (
            "@tensorflow/tfjs-core/dist/tf-core.min.js",
            "@tensorflow/tfjs-converter/dist/tf-converter.min.js",
            "@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js",
            "@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm",
        ),
    ),
}
_MODEL_FILES = {"onnxruntime-web": (ONNX,), "tfjs": (TFJS, TFJS_WEIGHTS)}
# What a result may differ from Keras' before it counts as wrong, of outputs up to about 1.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Row:
    """What was measured of a model, by implementation.

    Attributes:
        model: Name of the model.
        weights: Bytes of its weights.
        seconds: Of a call, by rounds.
        first: Milliseconds from an empty process to the first result, by processes.
        loaded: Bytes that a page loads, and the same compressed by gzip.
        missing: Why one is not there.
    """

    model: str
    weights: int
    seconds: dict[str, list[float]]
    first: dict[str, list[float]]
    loaded: dict[str, tuple[int, int]]
    missing: dict[str, str]


def _node() -> str:
    found = shutil.which("node")
    if not found:
        raise app.UsageError("node is not on PATH: install Node.js 18 or newer")
    return found


def _ask(folder: Path, mode: str, who: Sequence[str]) -> dict[str, Any]:
    script = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / "tests/bench/browser/time.mjs"
    peers = _peers() or folder
    command = [_node(), str(script.absolute()), str(folder.absolute()), str(peers)]
    command += [str(_THREADS.value), mode, *who]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if "Error" in line]
        return {"fails": (last or ["node fails"])[0].strip()[:160]}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _peers() -> Path | None:
    if not _PEERS.value:
        return None
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), _PEERS.value).absolute()


def _present() -> list[str]:
    peers = _peers()
    names = [OURS]
    for name, (package, _) in _LOADED.items():
        alone = name == "tfjs" and _THREADS.value > 1
        if peers and not alone and (peers / "node_modules" / package).is_dir():
            names.append(name)
    return names


def _versions() -> str:
    peers = _peers()
    node = subprocess.run([_node(), "--version"], capture_output=True, text=True, check=True)
    found = [f"node {node.stdout.strip()}"]
    for name in _present()[1:]:
        package, _ = _LOADED[name]
        file = peers / "node_modules" / package / "package.json" if peers else None
        if file and file.is_file():
            found.append(f"{name} {json.loads(file.read_text('utf-8'))['version']}")
    return ", ".join(found)


def _loaded(name: str, folder: Path) -> tuple[int, int]:
    if name == OURS:
        web = folder / "web"
        module = "*.threads-relaxed.wasm" if _THREADS.value > 1 else "*.relaxed.wasm"
        files = [web / "index.js", web / "runtime.js", *web.glob(module)]
        files += web.glob("*.weights")
    else:
        peers = _peers()
        assert peers is not None
        files = [peers / "node_modules" / path for path in _LOADED[name][1]]
        files += [folder / path for path in _MODEL_FILES[name]]
    contents = [file.read_bytes() for file in files]
    return sum(map(len, contents)), sum(len(gzip.compress(c, 9)) for c in contents)


def measure(folder: Path) -> Row:
    """Measures a model that was prepared."""
    facts = json.loads((folder / FACTS).read_text("utf-8"))
    row = Row(facts["name"], facts["weights"], {}, {}, {}, dict(facts["missing"]))
    names = [name for name in _present() if name not in row.missing]
    told = _ask(folder, f"rounds={_ROUNDS.value},seconds={_SECONDS.value}", names)
    for name in names:
        answer = told if "fails" in told else told[name]
        if "fails" in answer:
            row.missing[name] = answer["fails"]
        elif answer["difference"] > _TOLERANCE:
            row.missing[name] = f"differs from Keras by {answer['difference']:.2g}"
        else:
            row.seconds[name] = answer["seconds"]
            row.loaded[name] = _loaded(name, folder)
            row.first[name] = []
    for _ in range(_STARTS.value):
        for name, starts in row.first.items():
            starts.append(_ask(folder, "first", [name])["milliseconds"])
    times = ", ".join(f"{n} {1e3 * statistics.median(s):.3g} ms" for n, s in row.seconds.items())
    print(f"{row.model}: {times} {row.missing or ''}", file=sys.stderr)
    return row


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def _table(rows: Sequence[Row], title: str, cells: Any, ratio: Any) -> list[str]:
    """Returns a table with a column per implementation, and ratios of the peers to ours."""
    peers = list(dict.fromkeys(n for row in rows for n in row.seconds if n != OURS))
    heads = [OURS, *(part for peer in peers for part in (peer, "ratio"))]
    lines = ["", title, "", f"| model | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    ratios: dict[str, list[float]] = {peer: [] for peer in peers}
    for row in rows:
        if OURS not in row.seconds:
            continue
        line = [cells(row, OURS)]
        for peer in peers:
            if peer not in row.seconds:
                line += ["fails", ""]
                continue
            found = ratio(row, peer) / ratio(row, OURS)
            ratios[peer].append(found)
            mark = "**" if found < 1 else ""
            line += [cells(row, peer), f"{mark}{found:.2f}{mark}"]
        lines.append(f"| {row.model} | {' | '.join(line)} |")
    means = [
        part
        for peer in peers
        for part in ("", f"{math.exp(statistics.mean(map(math.log, ratios[peer] or [1]))):.2f}")
    ]
    lines.append(f"| geometric mean | | {' | '.join(means)} |")
    return lines


def page(rows: Sequence[Row]) -> str:
    """Returns the page."""
    several = _THREADS.value > 1
    threads = f"{_THREADS.value} threads" if several else "One thread"
    lines = [
        f"# npm packages against onnxruntime-web, {threads}"
        if several
        else "# npm packages against onnxruntime-web and tfjs",
        "",
        f"Written on {datetime.date.today()} by",
        f"`tools/bazel run //tests/bench:web -- --peers FOLDER"
        f"{f' --threads {_THREADS.value}' if several else ''} --write {_WRITE.value}`,",
        f"on {processor()}, with {_versions()}.",
        "",
        f"{threads}, batch 1, float32, random weights. All implementations of a model are in one",
        "process of node and take turns; each result was compared with Keras' before. A ratio is",
        "the peer's over ours: above 1, ours is faster or smaller; below 1 it is in bold.",
    ]
    lines += _table(
        rows,
        f"## Milliseconds of a call: the median of {_ROUNDS.value} rounds (lowest to highest)",
        lambda row, who: _spread([1e3 * s for s in row.seconds[who]]),
        lambda row, who: statistics.median(row.seconds[who]),
    )
    lines += _table(
        rows,
        f"## Milliseconds to the first result, of {_STARTS.value} new processes",
        lambda row, who: _spread(row.first[who]),
        lambda row, who: statistics.median(row.first[who]),
    )
    lines += [
        "",
        "Files are on the disk, so that no network counts. It includes the import of the library,",
        "the compilation of its WebAssembly, and the model.",
    ]
    lines += _table(
        rows,
        "## Kilobytes that a page loads, and by gzip",
        lambda row, who: f"{row.loaded[who][0] / 1e3:,.0f} ({row.loaded[who][1] / 1e3:,.0f})",
        lambda row, who: row.loaded[who][1],
    )
    lines += ["", "Scripts, WebAssembly and weights; the ratios are of the compressed sizes."]
    missing = [f"- {row.model}, {who}: {why}" for row in rows for who, why in row.missing.items()]
    if missing:
        lines += ["", "## What is missing", "", *missing]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> None:
    """Prepares, measures and writes."""
    del argv
    entries = [
        entry
        for entry in ZOO
        if not _ONLY.value or any(t.lower() in entry.name.lower() for t in _ONLY.value)
    ]
    if not entries:
        raise app.UsageError("no model has such a name")
    base = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    with tempfile.TemporaryDirectory() as temporary:
        folder = base / _FOLDER.value if _FOLDER.value else Path(temporary)
        places = []
        for entry in entries:
            print(f"  preparing {entry.name}", file=sys.stderr, flush=True)
            places.append(folder / re.sub(r"\W+", "_", entry.name))
            prepare(entry, places[-1])
        rows = [measure(place) for place in places]
    if _JSON.value:
        print(json.dumps([asdict(row) for row in rows]))
    if _WRITE.value:
        root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
        (root / _WRITE.value).write_text(page(rows), "utf-8")
        print(f"written: {_WRITE.value}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
