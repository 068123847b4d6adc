"""Settings of editors: what is written for which crates and folders."""

import json
import pathlib
from typing import Any

import pytest

from tools.ide import projects, rust_project

EXEC = pathlib.Path("/base/execroot/tfp")


def spec(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "crate_id": f"ID-{name}/lib.rs",
        "display_name": name,
        "edition": "2024",
        "env": {},
        "crate_type": "rlib",
        "is_workspace_member": True,
        "root_module": f"{name}/lib.rs",
        "source": {"include_dirs": [], "exclude_dirs": []},
        "deps": [],
        "aliases": {},
        "cfg": ["test"],
        "target": "x86_64-unknown-linux-gnu",
        **changes,
    }


def test_a_library_and_its_test_are_one_crate(tmp_path: pathlib.Path) -> None:
    test = spec("core", display_name="core_test", crate_type="bin", deps=["ID-core/lib.rs"])
    test["deps"].append("ID-check/lib.rs")
    for order in ([spec("core"), test], [test, spec("core")]):
        found = rust_project.project([*order, spec("check")], EXEC, tmp_path)["crates"]
        assert [crate["display_name"] for crate in found] == ["check", "core"]
        assert found[1]["deps"] == [{"crate": 0, "name": "check"}]


def test_a_generated_crate_lies_below_the_folder_of_outputs(tmp_path: pathlib.Path) -> None:
    ops = spec("ops", root_module="__EXEC_ROOT__/bazel-out/k8-opt/bin/ops/lib.rs")
    renamed = spec("core", deps=["ID-ops/lib.rs"], aliases={"ID-ops/lib.rs": "all_ops"})
    core, generated = rust_project.project([ops, renamed], EXEC, tmp_path)["crates"]
    assert generated["root_module"] == "/base/execroot/tfp/bazel-out/k8-opt/bin/ops/lib.rs"
    assert generated["source"]["include_dirs"] == ["/base/execroot/tfp/bazel-out/k8-opt/bin/ops"]
    assert core["deps"] == [{"crate": 1, "name": "all_ops"}]


def test_sources_of_the_standard_library_are_named_if_they_are_there(
    tmp_path: pathlib.Path,
) -> None:
    assert "sysroot_src" not in rust_project.project([], EXEC, tmp_path)
    library = tmp_path / "lib/rustlib/src/rust/library"
    library.mkdir(parents=True)
    assert rust_project.project([], EXEC, tmp_path)["sysroot_src"] == str(library)


def test_settings_of_a_person_stay() -> None:
    text = projects.merged('{"editor.tabSize": 3}', projects.vscode("rust-project.json"), "x")
    settings = json.loads(text)
    assert settings["editor.tabSize"] == 3
    assert settings["rust-analyzer.linkedProjects"] == ["rust-project.json"]
    assert projects.merged(text, projects.vscode("rust-project.json"), "x") == text


@pytest.mark.parametrize("text", ["// mine\n{}", "[]"])
def test_what_is_not_an_object_is_not_replaced(text: str) -> None:
    with pytest.raises(projects.SettingsError, match=r"settings\.json"):
        projects.merged(text, {"a": 1}, "settings.json")


def test_files_of_a_build_are_read_from_its_events() -> None:
    files = [{"name": "a/x.json", "pathPrefix": ["bazel-out", "k8-opt", "bin"], "uri": "file:///"}]
    events = [
        {"id": {"started": {}}},
        {"id": {"namedSet": {"id": "0"}}, "namedSetOfFiles": {"files": files}},
        {"id": {"namedSet": {"id": "1"}}, "namedSetOfFiles": {"files": files}},
    ]
    lines = "\n".join(map(json.dumps, events))
    assert projects.outputs(lines) == ["bazel-out/k8-opt/bin/a/x.json"]


def test_clangd_gets_a_flag_a_line() -> None:
    flags = projects.compile_flags([pathlib.Path("/tf/include")]).splitlines()
    assert flags[0] == "-std=c11"
    assert flags[-1] == "-I/tf/include"
