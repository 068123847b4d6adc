"""What cannot become a crate is refused with every reason, both values, and advice."""

# A row of the table stays whole.
# ruff: noqa: E501

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from converters.mlf.arguments import parse_overrides
from converters.mlf.convert import Request, convert
from converters.mlf.errors import FormatError, MismatchError
from converters.mlf.golden_vectors import read_npz
from converters.mlf.options import Options
from converters.mlf.parse.archive import read_archive
from converters.mlf.tests.dialects import DIALECTS, tar_of
from converters.mlf.tests.requests import TESTDATA, request_of
from tools.codegen.conversion import ConversionError, UnsupportedError, UsageError

H = "codegen/host/include/tvmgen_default.h"
C0 = "codegen/host/src/default_lib0.c"
C1 = "codegen/host/src/default_lib1.c"
META = "metadata.json"


def files_of(name: str) -> dict[str, str]:
    return {k: str(v) for k, v in DIALECTS[name]().files.items()}


def refused(
    files: dict[str, str], tmp_path: Path, options: Options | None = None
) -> ConversionError:
    (tmp_path / "model.tar").write_bytes(tar_of(files))
    with pytest.raises(ConversionError) as caught:
        convert(Request(mlf=tmp_path / "model.tar", options=options or Options()))
    assert all("model.tar" in p.where for p in caught.value.problems)
    return caught.value


def changed(name: str, member: str, old: str, new: str) -> dict[str, str]:
    files = files_of(name)
    assert old in files[member], files[member]
    return {**files, member: files[member].replace(old, new)}


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        (changed("plain_v7", META, '"size": 16', '"size": 20'), MismatchError, "size 20 bytes.*: 16 bytes"),
        (changed("plain_v7", H, "Y_SIZE 16", "Y_SIZE 24"), MismatchError, "16 bytes.*says 24"),
        (changed("plain_v7", META, '"float32"', '"int32"'), MismatchError, "int32 in metadata, float32 in"),
        (changed("plain_v7", META, '"x": {', '"z": {'), MismatchError, "inputs are z .*, x in the header"),
        (changed("plain_v7", META, '"float32"', '"bfloat16"'), UnsupportedError, "'bfloat16'; supported are"),
        (changed("plain_v7", C0, "_run(", "_go("), FormatError, "no C source defines tvmgen_default_run"),
        (changed("plain_v7", C0, "tvmgen_default_run(", "tvmgen_other_run("), MismatchError,
         "declares tvmgen_default_run, the source defines tvmgen_other_run"),
        (changed("plain_v7", C0, "tvmgen_default_run(", "tvmgen_my-net_run("), UnsupportedError,
         "not a C identifier.*'tvmgen_my-net'"),
        (changed("plain_v7", C1, "return 0", "TVMBackendParallelLaunch(0, 0, 0); return 0"),
         UnsupportedError, "TVMBackendParallelLaunch.*num-cores"),
        (changed("plain_v7", C1, "return 0", "TVMBackendMystery(); return 0"), UnsupportedError,
         "TVMBackendMystery, which this crate cannot provide"),
        (changed("plain_v7", META, '"aot"', '"graph"'), UnsupportedError, "graph executor.*AOT|graph executor"),
        (changed("plain_v7", META, '"full-model"', '"operator"'), UnsupportedError, "operator-style"),
        (changed("io_in_pools", C0, "sram)[16],\n\t.bias", "sram)[32],\n\t.bias"), MismatchError,
         "ends at byte 48 of pool 'sram' of 40 bytes"),
        (changed("io_in_pools", C0, "sram)[16],\n\t.bias", "sram)[8],\n\t.bias"), MismatchError,
         "offset 8 is not a multiple of 16"),
        (changed("io_in_pools", C0, "dtcm)[0]", "sram)[16]"), MismatchError, "'bias'.*overlaps 'x_0'"),
        (changed("io_in_pools", C0, ".bias = ", ".bias:0 = "), FormatError,
         "'bias:0' is not a C identifier.*rename the input"),
        (changed("plain_v7", H, "void* x;", "void* x;\n  void* mask;"), UnsupportedError,
         "input 'mask'.*nothing tells its dtype and size.*--shape default.mask="),
        (changed("plain_v7", META, '"x": {', '"x": {"size": 4, "dtype": "int8"}, "z": {'), MismatchError,
         "2 inputs in metadata.json .x, z., 1 in the header"),
        (changed("io_in_pools", H, "DTCM_WORKSPACE_POOL_SIZE 16", "DTCM_WORKSPACE_POOL_SIZE many"),
         FormatError, "pool 'dtcm' has 'many'"),
        (changed("packed", C1, "0L /* num_workspace_pools*/", "2L /* num_workspace_pools*/"),
         UnsupportedError, "external workspace pools.*: 2"),
        (changed("packed", C1, "{2, 32, 1}", "{4, 16, 1}"), FormatError, "DLDataType {4, 16, 1}"),
        (changed("packed", META, '"size": 16', '"size": 12'), MismatchError, "16.*here.*12.*metadata"),
        (changed("packed", C1, "struct TVMMetadata ", "struct Other "), UnsupportedError,
         "neither an interface header nor kTvmgenMetadata"),
    ],
)  # fmt: skip
def test_refused(
    files: dict[str, str], kind: type[ConversionError], message: str, tmp_path: Path
) -> None:
    import re

    error = refused(files, tmp_path)
    assert type(error) is kind
    assert re.search(message, str(error), re.S), str(error)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (changed("packed", META, '"default"', '"a\\nb"'), "cannot be printed"),
        (changed("packed", META, '"default"', '"a*/b"'), "not a C identifier.*'a\\*/b'"),
        (changed("packed", META, '"default"', '""'), "not a C identifier.*''"),
        (changed("plain_v7", META, '"0.14.0"', '"0.14\\n}"'), "version_spec.*cannot be printed"),
        ({**files_of("plain_v7"), 'codegen/host/src/a"b.c': ""}, "backslash, quote"),
        ({**files_of("plain_v7"), "codegen/host/src/x.S": ""}, "object files"),
        ({**files_of("plain_v7"), "codegen/host/lib/x.a": ""}, "object files"),
        ({k: v for k, v in files_of("plain_v7").items() if k != C1},
         "calls tvmgen_default___tvm_main__, and no source of the archive defines it"),
        (changed("plain_v7", "src/default.relay", "(1, 4)", "(999999999999, 4)"), "999999999999, 4"),
        (changed("packed", C1, "{\n1L, \n4L}", "{\n0L, \n4L}"), "size 0 bytes; expected 1"),
    ],
)  # fmt: skip
def test_what_no_crate_could_be_made_of(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    import re

    assert re.search(message, str(refused(files, tmp_path)), re.S)


def test_unplanned_memory_of_unknown_size_is_refused(tmp_path: Path) -> None:
    """Both interfaces: an arena of a size that nothing tells cannot serve the C."""
    for name, member in (("plain_v7", C1), ("packed", "codegen/host/src/default_lib2.c")):
        files = changed(
            name, member, "return 0", "TVMBackendAllocWorkspace(1, 0, 4, 0, 8); return 0"
        )
        files[META] = files[META].replace('"main": [', '"main": [], "old": [')
        assert "nothing tells how much it needs" in str(refused(files, tmp_path))


def test_object_files_are_refused(tmp_path: Path) -> None:
    files = files_of("plain_v7")
    del files[C0], files[C1]
    files["codegen/host/lib/default_lib0.o"] = "ELF"
    error = refused(files, tmp_path)
    assert "object files" in str(error) and "interface-api c" in str(error)


def test_cpp_sources_are_refused(tmp_path: Path) -> None:
    files = files_of("plain_v7")
    files["codegen/host/src/default_lib2.cc"] = ""
    assert "C++ sources" in str(refused(files, tmp_path))


def test_shape_cannot_change_the_archives_layout(tmp_path: Path) -> None:
    """Of the same size, so the C would read other elements without a word."""
    options = Options(overrides=parse_overrides(["x=float32[4,1]"]))
    error = refused(files_of("plain_v7"), tmp_path, options)
    assert "shape [1, 4] in the model text, [4, 1] in --shape" in str(error)


def test_an_archive_without_metadata_says_what_it_needs(tmp_path: Path) -> None:
    files = files_of("plain_v7")
    del files[META], files["src/default.relay"]
    error = refused(files, tmp_path)
    assert [p.what for p in error.problems] == [
        "16 bytes by the header's macro; nothing tells its dtype"
    ] * 2
    assert "--shape default.x=float32[4]" in error.problems[0].advice
    del files[H]
    advice = refused(files, tmp_path).problems[0]
    assert "neither 'metadata.json' nor" in advice.what and "codegen/host/src" in advice.advice


def test_every_untyped_tensor_is_named(tmp_path: Path) -> None:
    files = files_of("tvm_0_8")
    del files["src/relay.txt"]
    error = refused(files, tmp_path)
    assert [p.where.split()[-1] for p in error.problems] == ["'x'", "'y'"]
    assert all("--shape default." in p.advice for p in error.problems)


def test_all_modules_are_judged(tmp_path: Path) -> None:
    files = files_of("plain_v7")
    top = json.loads(files[META])
    top["modules"]["other"] = {
        **top["modules"]["default"],
        "model_name": "other",
        "executors": ["graph"],
    }
    top["modules"]["default"]["executors"] = ["graph"]
    files[META] = json.dumps(top)
    assert len(refused(files, tmp_path).problems) == 2


@pytest.mark.parametrize(("align", "kind"), [(24, UnsupportedError), (1 << 20, UnsupportedError)])
def test_alignment_is_checked(align: int, kind: type[ConversionError], tmp_path: Path) -> None:
    error = refused(files_of("plain_v7"), tmp_path, Options(alignment=align))
    assert type(error) is kind and str(align) in str(error)


def test_alignment_below_the_archives_is_refused(tmp_path: Path) -> None:
    error = refused(files_of("all_dtypes"), tmp_path, Options(alignment=16))
    assert "alignment 16 asked for, the C says aligned(64)" in str(error)


def test_constant_pool_of_another_size_is_refused(tmp_path: Path) -> None:
    archive = read_archive(TESTDATA / "constant_pool.tar")
    files = dict(archive.files)
    text = files[H].decode().replace("CONSTANT_POOL_SIZE 2816", "CONSTANT_POOL_SIZE 2832")
    (tmp_path / "model.tar").write_bytes(tar_of({**files, H: text}))
    with pytest.raises(MismatchError, match="'flash' has size 2832, its data has 2816 bytes"):
        convert(Request(mlf=tmp_path / "model.tar"))


def test_workspace_size_of_another_value_is_refused(tmp_path: Path) -> None:
    files = dict(read_archive(TESTDATA / "plain.tar").files)
    text = files[H].decode().replace("WORKSPACE_SIZE 2240", "WORKSPACE_SIZE 64")
    (tmp_path / "model.tar").write_bytes(tar_of({**files, H: text}))
    with pytest.raises(MismatchError, match="2240, the header's macro says 64"):
        convert(Request(mlf=tmp_path / "model.tar"))


def test_firmware_needs_drivers_of_devices(tmp_path: Path) -> None:
    request = replace(request_of(DIALECTS["device_hooks"](), tmp_path), target="cortex-m4")
    with pytest.raises(UsageError, match="model 'default' needs drivers of 'ethos_u'"):
        convert(request)


def test_unknown_section_pool_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no pool 'ram'; pools are .*sram"):
        convert(Request(mlf=TESTDATA / "constant_pool.tar", sections={"ram": ".x"}))


def test_golden_of_another_size_is_refused(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "g.npz", input=np.zeros(3, np.float32))
    with pytest.raises(MismatchError, match="12 bytes; the tensor is float32, 64 bytes"):
        convert(Request(mlf=TESTDATA / "constant_pool.tar", golden=tmp_path / "g.npz"))
    np.savez(tmp_path / "g.npz", input=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match="expected plain numbers"):
        read_npz((tmp_path / "g.npz").read_bytes(), "g.npz")


def test_a_link_prefix_has_to_be_an_identifier(tmp_path: Path) -> None:
    request = request_of(DIALECTS["internal_pools"](), tmp_path)
    with pytest.raises(UsageError, match="'a-b'; expected a C identifier"):
        convert(replace(request, link_prefix="a-b"))


def test_object_code_takes_no_link_prefix(tmp_path: Path) -> None:
    request = request_of(DIALECTS["vendor_async"](), tmp_path)
    with pytest.raises(UsageError, match="object code"):
        convert(replace(request, link_prefix="app_"))
