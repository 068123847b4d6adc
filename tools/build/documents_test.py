"""Files, packages, targets, flags and environment variables that documents name are there."""

import functools
import os
import pathlib
import re
from collections.abc import Iterator

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()

FOREIGN_FLAGS = {
    # Flag of a program that nothing here calls: the program.
    "all-targets": "cargo",
    "baseline-rev": "cargo semver-checks",
    "bin": "cargo",
    "git": "cargo",
    "nocache_test_results": "Bazel",
    "path": "cargo",
    "remote_default_exec_properties": "Bazel",
    "strategy": "Bazel",
    "toggle-collect": "valgrind",
    "tool": "valgrind",
}

FOREIGN_NAMES = {
    # Name in capitals that no code has: what it is.
    "NOT_SERVING": "a state of gRPC's health service",
    "PKG_CONFIG_PATH": "a variable of pkg-config",
    "QEMU_CPU": "a variable of QEMU",
    "TENSORFLOW_FOLDER": "a placeholder",
}

UNLISTED = {
    # Program of `examples` without a row in their list: why.
    "examples/firmware/build.rs": "a build script",
    "examples/training/digits_csv.py": "a step of `digits`",
    "examples/web/serve.py": "shows the pages, which are listed",
}

PROGRAMS = {
    # Program: the room that defines its flags.
    "tf2rust": "converters/tf/",
    "mlf2rust": "converters/mlf/",
    "tokenizer2rust": "converters/tokenizer/",
    "python -m tfp_plugin.check": "plugin/python/",
}

_CODE_ENDS = (
    ".py",
    ".rs",
    ".bzl",
    ".sh",
    ".source",
    ".c",
    ".h",
    ".toml",
    ".j2",
    ".bazelrc",
    "bazel",
)


def _text(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@functools.cache
def documents() -> dict[str, str]:
    found = {str(path.relative_to(TREE)): _text(path) for path in sorted(TREE.rglob("*.md"))}
    assert "README.md" in found
    return found


@functools.cache
def code() -> dict[str, str]:
    """The text of every source and build file but this one."""
    return {
        str(path.relative_to(TREE)): _text(path)
        for path in sorted(TREE.rglob("*"))
        if path.name.endswith(_CODE_ENDS) and path.is_file() and path.name != "documents_test.py"
    }


def snippets(text: str) -> Iterator[str]:
    """Gives the code of a page: a line of a block, or what is between backticks."""
    fence = re.compile(r"^ *```.*?\n(.*?)^ *```", re.S | re.M)
    for block in fence.findall(text):
        yield from re.sub(r"\s*\\\n\s*", " ", block).splitlines()
    yield from re.findall(r"`([^`]+)`", fence.sub("", text))


def flags_in(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--([a-zA-Z][\w-]*)", text)


def defined(text: str) -> set[str]:
    """The flags that code defines, or hands to a program."""
    found = set(re.findall(r'DEFINE_\w+\(\s*"([\w-]+)"', text))
    found |= {f"no{name}" for name in re.findall(r'DEFINE_bool\w*\(\s*"([\w-]+)"', text)}
    return found | set(re.findall(r"[\"'`( ]--([a-zA-Z][\w-]*)", text))


def test_links_between_documents_exist() -> None:
    broken = []
    for name, text in documents().items():
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            path = (TREE / name).parent / target
            package = path.name in ("BUILD", "WORKSPACE")
            if not (path.exists() or (package and path.with_name(path.name + ".source").exists())):
                broken.append(f"{name}: {target}")
    assert not broken


def test_paths_from_the_root_are_there() -> None:
    """Such as `tools/bazel`, in backticks and in blocks of code."""
    tops = {path.name for path in TREE.iterdir() if path.is_dir()}
    gone = []
    for name, text in documents().items():
        for snippet in snippets(text):
            for path in re.findall(r"(?<![\w/.@:$<-])((?:[\w.-]+/)+[\w.-]*)", snippet):
                places = [TREE / path, (TREE / name).parent / path]
                places += [place.with_name(f"{place.name}.source") for place in places]
                there = "NAME" in path or any(place.exists() for place in places)
                if path.partition("/")[0] in tops and not there:
                    gone.append(f"{name}: {path}")
    assert not gone


def is_target(package: str, target: str) -> bool:
    """Whether a package has a file, a name in its BUILD, or one that a macro makes of it."""
    build = TREE / package / "BUILD.source"
    if (TREE / package / target).exists():
        return True
    text = _text(build)
    named = re.findall(r'(?:\bname = |\bouts = \[|^ +)"([\w.-]+)"', text, re.M)
    macros = [body for file, body in code().items() if file.endswith(".bzl")]
    ends = {end for body in macros for end in re.findall(r'name \+ "([\w.]+)"', body)}
    # Macros of rules_python.
    ends.add(".update")
    return target in named or any(f"{name}{end}" == target for name in named for end in ends)


def test_labels_are_of_packages_and_targets_that_are_there() -> None:
    """Such as `//tools:ide`."""
    gone = []
    for name, text in documents().items():
        for package, target in re.findall(r"(?<![\w:@/])//(\w[\w/-]*)(?::([\w.-]*\w))?", text):
            build = TREE / package / "BUILD.source"
            folder = f"{package.rstrip('/')}/..." in text
            if target and not (build.exists() and is_target(package, target)):
                gone.append(f"{name}: //{package}:{target}")
            elif not target and not (build.exists() or (folder and (TREE / package).is_dir())):
                gone.append(f"{name}: //{package}")
    assert not gone


def test_flags_are_defined() -> None:
    known = defined("\n".join(code().values()))
    unknown = [
        f"{name}: --{flag}"
        for name, text in documents().items()
        for snippet in snippets(text)
        for flag in flags_in(snippet)
        if flag not in known and flag not in FOREIGN_FLAGS
    ]
    assert not unknown


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Gives the room whose code defines a command's flags, and what follows the program."""
    for snippet in snippets(text):
        if match := re.match(r".*tools/bazel .*?run .*?//([\w/-]+)[\w:.-]* -- (.*)", snippet):
            room = "/".join(match.group(1).split("/")[:2])
            yield f"{room}/", match.group(2)
        for program, room in PROGRAMS.items():
            if snippet.startswith(f"{program} "):
                yield room, snippet.removeprefix(program).partition(" && ")[0]


def test_commands_have_flags_of_their_program() -> None:
    wrong, count = [], 0
    for name, text in documents().items():
        for room, rest in commands(text):
            count += 1
            own = defined("\n".join(body for file, body in code().items() if file.startswith(room)))
            wrong += [f"{name}: {room}: --{flag}" for flag in flags_in(rest) if flag not in own]
    assert count > 50
    assert not wrong


def test_variables_of_the_environment_are_read() -> None:
    """Names in capitals with an underscore, such as `TFP_CACHE`, whatever they are."""
    words = set(re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", "\n".join(code().values())))
    unknown = [
        f"{name}: {word}"
        for name, text in documents().items()
        for word in re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", text)
        if word not in words and word not in FOREIGN_NAMES
    ]
    assert not unknown


def test_the_list_of_examples_has_every_program() -> None:
    listed = documents()["examples/README.md"]
    programs = {
        name
        for name, text in code().items()
        if name.startswith("examples/")
        and re.search(r"^(?:async )?fn main\(|^if __name__ == ", text, re.M)
    }
    programs |= {str(path.relative_to(TREE)) for path in (TREE / "examples").rglob("*.html")}
    assert len(programs) > 15
    lost = {name for name in programs if f"({name.removeprefix('examples/')})" not in listed}
    assert lost == UNLISTED.keys()


def test_every_exception_is_needed() -> None:
    text = "\n".join(documents().values())
    known = defined("\n".join(code().values()))
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", "\n".join(code().values())))
    used = set(flags_in(text))
    assert not [flag for flag in FOREIGN_FLAGS if flag in known or flag not in used]
    assert not [name for name in FOREIGN_NAMES if name in words or name not in text]


def test_code_of_a_page_is_found() -> None:
    page = "a `b --c` d\n\n```sh\ntools/bazel run //x/y:z \\\n  -- --e=1\n```\n--f\n"
    assert list(snippets(page)) == ["tools/bazel run //x/y:z -- --e=1", "b --c"]
    assert list(commands(page)) == [("x/y/", "--e=1")]
    assert flags_in("a --b=1 --no-c -d e--f") == ["b", "no-c"]
    assert defined('DEFINE_bool("a", 1) "--b" x--c') == {"a", "noa", "b"}
