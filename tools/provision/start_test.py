from __future__ import annotations

import io
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision import cache, messages, mounts, plan, start, web, wheels
from tools.provision.messages import StartError
from tools.provision.testing.fakes import wheel_bytes

HERE = Path(plan.__file__).parent
WARN = 'echo "WARNING: Remote Cache: no luck" >&2; echo "$FROM_PLAN"'
LAUNCHER = HERE.parent / "bazel"
PIP = """\
import pathlib, sys, zipfile
if "--dest" in sys.argv:
    folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
    for line in (folder / "requirements.txt").read_text().splitlines():
        name, version = line.split()[0].split("==")
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("ziglang/zig" if name == "ziglang" else "about", line)
"""


def launch(
    arguments: list[str], variables: dict[str, str], home: Path, launcher: Path = LAUNCHER
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(launcher), *arguments],
        env={"HOME": str(home), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 36
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("tfp: ")
    return line


def test_no_python(tmp_path: Path) -> None:
    line = one_line(launch([], {"PATH": str(tmp_path)}, tmp_path))
    assert "no python3 of version 3.9 or newer on PATH" in line


def test_a_python_that_does_not_exist(tmp_path: Path) -> None:
    line = one_line(launch([], {"PATH": "/usr/bin:/bin", "TFP_PYTHON": "/no/python"}, tmp_path))
    assert "TFP_PYTHON is /no/python" in line


@pytest.mark.parametrize("version", [(2, 7), (3, 8)])
def test_a_python_that_is_too_old(version: tuple[int, int]) -> None:
    code = (
        "import runpy, sys\n"
        f"sys.version_info = {(*version, 1, 'final', 0)}\n"
        f"runpy.run_path({str(HERE / 'main.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = one_line(done)
    assert f"is Python {version[0]}.{version[1]}, expected 3.9 or newer" in line
    assert "TFP_PYTHON" in line


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("sys.modules['ssl'] = None", "has no ssl; "),
        ("sys.modules['zlib'] = sys.modules['lzma'] = None", "has no zlib, lzma"),
        ("platform.machine = lambda: 'riscv64'", "Linux on riscv64, expected Linux on x86_64"),
        ("platform.system = lambda: 'Darwin'", "Darwin on "),
        ("os.confstr = lambda name: None", "its C library is not glibc"),
        ("os.access = lambda path, mode: False", "is not writable for you"),
    ],
)
def test_a_machine_that_will_not_do_is_one_line_and_nothing_is_written(
    fault: str, said: str, tmp_path: Path
) -> None:
    """A whole start of the launcher's Python, in which one thing is as on another machine."""
    code = (
        f"import os, platform, runpy, sys\n{fault}\n"
        f"runpy.run_path({str(HERE / 'main.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in one_line(done)
    assert not list(tmp_path.iterdir())


def test_inside_the_launcher_bazel_real_is_called_as_it_is(tmp_path: Path) -> None:
    real = program(tmp_path / "real", 'echo "real $*"')
    done = launch(
        ["--version"], {"PATH": "/nowhere", "BAZEL_REAL": str(real), "TFP_INSIDE_LAUNCHER": "1"},
        tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "real --version\n")


def test_a_whole_start_with_a_right_bazel(tmp_path: Path) -> None:
    """From the shell script to the arguments that Bazel gets; nothing has to be fetched."""
    real = program(
        tmp_path / "real/bazel",
        'case "$*" in --version) echo "bazel 7.7.1";; *) for a; do echo "$a"; done;; esac',
    )
    sysroot = tmp_path / "rust"
    program(
        sysroot / "bin/rustc",
        f'case "$*" in --version) echo "rustc 1.95.0 (x)";; *) echo {sysroot};; esac',
    )
    for name in ("cargo", "rustdoc", "rustfmt", "cargo-clippy", "clippy-driver"):
        program(sysroot / "bin" / name, "")
    std = sysroot / "lib/rustlib/x86_64-unknown-linux-gnu/lib"
    std.mkdir(parents=True)
    (std / "libstd-1.rlib").touch()
    program(tmp_path / "bin/buildifier", 'echo "buildifier version: 8.2.1"')
    variables = {
        "PATH": f"{tmp_path / 'bin'}:{sysroot / 'bin'}:/usr/bin:/bin",
        "TFP_PYTHON": sys.executable,
        "TFP_CACHE": str(tmp_path / "cache"),
        "TFP_UPSTREAM": "1",
        "PYTHONPATH": str(tmp_path / "modules"),
        "BAZEL_REAL": str(real),
    }
    checkout = tmp_path / "a checkout"
    sources = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE, checkout / "tools/provision", ignore=sources)
    shutil.copy(LAUNCHER, checkout / "tools/bazel")
    pip = tmp_path / "modules/pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()  # a package without one comes after every other
    (pip / "__main__.py").write_text(PIP)
    before = set(checkout.rglob("*"))
    launcher = checkout / "tools/bazel"
    first = launch(["build", "//a b"], variables, tmp_path, launcher)
    assert first.returncode == 0, first.stderr
    options = first.stdout.splitlines()
    assert options[-2:] == ["build", "//a b"]
    rc = Path(next(one for one in options if "--bazelrc=" in one).removeprefix("--bazelrc="))
    assert f"common --repo_env=TFP_RUST_SYSROOT={sysroot}" in rc.read_text()
    assert "BAZEL_REAL is 7.7.1" in first.stderr
    second = launch(["build", "//a b"], variables, tmp_path, launcher)
    assert (second.stdout, second.stderr) == (first.stdout, "")
    loud = launch(["info"], {**variables, "TFP_VERBOSE": "1"}, tmp_path, launcher)
    assert loud.stderr.count("tfp: ") == 5
    assert set(checkout.rglob("*")) == before


def test_folders_that_a_sandbox_hides_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_folder, rust, elsewhere = (tmp_path / name for name in ("tmp/cache", "tmp/rust", "here"))
    for folder in (cache_folder, rust, elsewhere):
        folder.mkdir(parents=True)
    link = elsewhere / "link"
    link.symlink_to(rust)
    monkeypatch.setattr(mounts, "HIDDEN", tmp_path / "tmp")
    assert mounts.startup_options(elsewhere, {"TFP_RUST_SYSROOT": str(elsewhere)}) == []
    assert mounts.startup_options(elsewhere, {"RUSTUP_HOME": str(tmp_path / "tmp/gone")}) == []
    (option,) = mounts.startup_options(cache_folder, {"TFP_RUST_SYSROOT": str(link)})
    lines = Path(option.removeprefix("--bazelrc=")).read_text().splitlines()[1:]
    assert lines == [
        f'build "--sandbox_add_mount_pair={folder}"' for folder in (cache_folder, rust)
    ]
    monkeypatch.setattr(mounts, "HIDDEN", HERE.parents[2])
    assert mounts.hidden_folders(elsewhere, {}) == [str(HERE.parents[1])]


def test_a_cache_that_fails_is_said_once_by_a_whole_start(tmp_path: Path) -> None:
    """The launcher stays between Bazel and its reader where a remote cache is in use."""
    real = program(tmp_path / "bazel", f"for i in 1 2 3; do {WARN}; done; exit 5")
    made = plan.Plan([str(real)], [], [], [], {"FROM_PLAN": "1"})
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(HERE.parents[1])!r})\n"
        "from tools.provision import plan, start\n"
        f"start.ready_plan = lambda root, environ: plan.Plan(**{asdict(made)!r})\n"
        "sys.exit(start.main(sys.argv[1:]))\n"
    )

    def run(url: str) -> tuple[int, str, list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", code, "build", "--config=ci", "//x"],
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TFP_REMOTE_CACHE": url},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.splitlines()

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(33)
                connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))

        thread = threading.Thread(target=answer)
        thread.start()
        status, out, errors = run(f"grpc://user:secret@127.0.0.1:{port}")
        thread.join()
    assert status == 5
    assert out == "1\n" * 3
    (line,) = errors
    assert line.startswith(f"tfp: the remote cache grpc://127.0.0.1:{port} fails: no luck; ")
    # Left out before Bazel starts: Bazel's own words come through.
    status, _, errors = run(f"grpc://127.0.0.1:{port}")
    assert status == 5
    assert [line.startswith("tfp: the remote cache ") for line in errors] == [True] + 3 * [False]


def test_cache_root(tmp_path: Path) -> None:
    assert start.cache_root({"TFP_CACHE": str(tmp_path)}) == tmp_path
    assert start.cache_root({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tfp"
    assert start.cache_root({}) == Path.home() / ".cache/tfp"
    assert start.cache_root({"TFP_CACHE": "here"}) == Path.cwd() / "here"


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = plan.plan_file(tmp_path, "k")
    for text in ("", "{", "[]", '{"argv": 1}', '{"argv": [], "marks": [[1]]}'):
        cache.write_whole(path, text)
        assert plan.read_plan(tmp_path, "k") == (None, f"{path} cannot be read")
    assert plan.read_plan(tmp_path, "other") == (None, None)


def test_a_fingerprint_follows_path_and_settings(tmp_path: Path) -> None:
    base = {"PATH": str(tmp_path)}
    first = plan.fingerprint(base)
    assert plan.fingerprint({**base, "UNRELATED": "1"}) == first
    assert plan.fingerprint({**base, "TFP_UPSTREAM": "1"}) != first
    program(tmp_path / "rustc", "")
    assert plan.fingerprint(base) != first


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_an_error_is_one_line(step: str, found: str, todo: str) -> None:
    assert len(StartError(step, found, todo).line().splitlines()) == 1


def test_progress_of_a_long_step(capsys: pytest.CaptureFixture[str]) -> None:
    waited = iter(range(1_000_000_000))
    with messages.progress("fetching x", 200_000_000, lambda: 50_000_000, every_s=0.001):
        while next(waited) < 50 and "50 MB of 200 MB" not in capsys.readouterr().err:
            time.sleep(0.02)
    assert next(waited) < 51


def test_a_terminal_shows_all_steps_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    text = ""
    with (
        messages.progress("one", 0, lambda: 1_000_000, every_s=0.001),
        messages.progress("two", 0, lambda: 2_000_000, every_s=0.001),
    ):
        for _ in range(200):
            text = terminal.getvalue()
            if re.search(r"\rtfp: one: 1 MB, \d s \| two: 2 MB, \d s\x1b", text):
                break
            time.sleep(0.02)
        messages.say("three")
    assert re.search(r"\rtfp: one: 1 MB, \d s \| two: 2 MB, \d s\x1b", text)
    assert "\r\x1b[Ktfp: three\n" in terminal.getvalue()


def test_probe_without_an_answer() -> None:
    assert web.probe({"a": "http://127.0.0.1:9/x"}, {}, 0.5) == {"a": False}
    assert web.probe({"a": "http://127.0.0.1:9/x"}, {"TFP_UPSTREAM": "1"}) == {"a": True}


def test_wheels_keep_permissions_and_damage_is_said(tmp_path: Path) -> None:
    file = tmp_path / "x-1-py3-none-any.whl"
    file.write_bytes(wheel_bytes("x==1", {"bin/tool": b"#!/bin/sh"}))
    wheels.unpack_wheel(file, tmp_path / "out")
    assert (tmp_path / "out/bin/tool").stat().st_mode & 0o111
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(StartError, match="it is damaged"):
        wheels.unpack_wheel(file, tmp_path / "torn")


def test_stamps(tmp_path: Path) -> None:
    root = cache.Cache(tmp_path)

    def fill(stage: Path, final: Path) -> None:
        assert not final.exists()
        (stage / "file").write_text("abc")
        (stage / "link").symlink_to("file")

    made = root.make("x-1", "making x", 0, fill)
    assert root.damage(made) is None
    (made / "extra").touch()
    assert root.damage(made) is None
    for name, change, said in (
        ("file", lambda path: path.write_text("abd"), "file has other contents"),
        ("file", lambda path: path.write_text("ab"), "file has 2 bytes, expected 3"),
        ("link", lambda path: (path.unlink(), path.symlink_to("x")), "link points elsewhere"),
        ("file", lambda path: path.unlink(), "file: No such file or directory"),
        (cache.STAMP, lambda path: path.write_text("{}"), "its stamp is missing, cannot be read"),
    ):
        change(made / name)
        damage = root.damage(made)
        assert damage is not None
        assert damage.startswith(said)
        assert root.make("x-1", "making x", 0, fill) == made
        assert root.damage(made) is None
    moved = made.rename(tmp_path / "elsewhere")
    assert "made for another place" in (root.damage(moved) or "")
