"""Current TVM: exported archives become crates that compute what onnxruntime computes.

TVM is no dependency of the repository: the test makes an environment of its own from
`requirements.txt`, in `$TFP_TVM_CACHE` or `~/.cache/tfp/tvm`.

Run with: tools/bazel test //converters/mlf/tests/tvm_export:tvm_export_test
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def environment() -> Path:
    """Returns the Python of an environment with TVM, made on first use (200 MB fetched)."""
    cache = Path(os.environ.get("TFP_TVM_CACHE", str(Path.home() / ".cache" / "tfp" / "tvm")))
    python = cache / "bin" / "python"
    ready = cache / "ready"
    requirements = (HERE / "requirements.txt").read_text(encoding="utf-8")
    if not ready.exists() or ready.read_text(encoding="utf-8") != requirements:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(cache)], check=True)
        # Isolated, so that pip does not see the packages of the caller's Python.
        install = [str(python), "-I", "-m", "pip", "install", "-q", "-r"]
        install.append(str(HERE / "requirements.txt"))
        subprocess.run(install, check=True)
        ready.write_text(requirements, encoding="utf-8")
    return python


def test_exported_models_equal_onnxruntime() -> None:
    root = Path(__file__).parents[4]
    command = [str(environment()), "-m", "pytest", "-q", "-s", str(HERE / "with_tvm.py")]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=1500)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
