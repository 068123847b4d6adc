"""The parsers on snippets: what they read, and where they put the blame."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from converters.mlf.errors import ArchiveError, FormatError
from converters.mlf.parse import archive as archive_module
from converters.mlf.parse.archive import member_name, parse_archive, read_archive
from converters.mlf.parse.c_calls import Operator, callers
from converters.mlf.parse.c_header import Define, parse_header
from converters.mlf.parse.c_source import parse_sources
from converters.mlf.parse.c_text import split_comments
from converters.mlf.parse.metadata import natural_key, parse_metadata
from converters.mlf.parse.relay import parse_main_signature
from converters.mlf.tests.dialects import DIALECTS, header, metadata, tar_of
from converters.mlf.tests.requests import REAL, TESTDATA
from tools.codegen.conversion import UnsupportedError


def tar_with(kind: bytes, name: str = "evil", link: str = "/etc/passwd") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = link
        file.addfile(info)
    return buffer.getvalue()


@pytest.mark.parametrize("name", REAL)
def test_reads_what_tarfile_reads(name: str) -> None:
    path = TESTDATA / f"{name}.tar"
    archive = read_archive(path)
    with tarfile.open(path) as file:
        expected = {
            m.name.removeprefix("./"): file.extractfile(m).read()  # type: ignore[union-attr]
            for m in file.getmembers()
            if m.isfile()
        }
    assert archive.files == expected


def zip_of(
    files: dict[str, str],
    mode: int = 0,
    method: int = zipfile.ZIP_DEFLATED,
    damaged: tuple[bytes, bytes] = (b"", b""),
) -> bytes:
    """A zip file of members with a Unix mode, in which bytes are replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, text in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = method
            file.writestr(info, text)
    assert damaged[0] in buffer.getvalue()
    return buffer.getvalue().replace(*damaged) if damaged[0] else buffer.getvalue()


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the memory for it is taken, whatever its headers say."""
    monkeypatch.setattr(archive_module, "MAX_ARCHIVE_BYTES", 1 << 16)
    with pytest.raises(ArchiveError, match="more than 65536 bytes when decompressed"):
        parse_archive("model.tar.gz", gzip.compress(bytes(1 << 20)))
    with pytest.raises(ArchiveError, match="more than 65536 bytes when decompressed"):
        parse_archive("model.tar.gz", gzip.compress(bytes(1 << 15)) * 3)
    monkeypatch.setattr(archive_module, "MAX_MEMBER_BYTES", 1 << 10)
    data = zip_of({"a": "x" * 2000})
    with pytest.raises(ArchiveError, match="size 2000 bytes; at most 1024"):
        parse_archive("model.zip", data)
    size = (2000).to_bytes(4, "little")
    with pytest.raises(ArchiveError, match=r"damaged zip file|its header says 100"):
        parse_archive("model.zip", data.replace(size, (100).to_bytes(4, "little")))


@pytest.mark.parametrize("top", ["", "model/", "some/model/"])
def test_a_top_folder_is_left_out(top: str) -> None:
    files = {f"{top}metadata.json": "{}", f"{top}runtime/src/a.c": "x", f"{top}src/a.relay": ""}
    added = {"__MACOSX/._model": "", f"{top}.DS_Store": "x", f"{top}src/._a.relay": ""}
    for data in (tar_of(files | added), gzip.compress(tar_of(files)), zip_of(files | added)):
        expected = {"metadata.json": b"{}", "runtime/src/a.c": b"", "src/a.relay": b""}
        assert parse_archive("x", data).files == expected


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_of_every_tar_form(form: int) -> None:
    name = "/".join(["folder" * 6] * 4) + "/file.c"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        info = tarfile.TarInfo(name)
        info.size = 5
        file.addfile(info, io.BytesIO(b"hello"))
    assert parse_archive("x", buffer.getvalue()).files == {name: b"hello"}


def test_folder_is_read_like_the_tar(tmp_path: Path) -> None:
    with tarfile.open(TESTDATA / "multi.tar") as file:
        file.extractall(tmp_path / "model")
    assert read_archive(tmp_path / "model").files == read_archive(TESTDATA / "multi.tar").files


def test_folder_with_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").symlink_to("/etc/passwd")
    with pytest.raises(ArchiveError, match=r"metadata\.json: symbolic link"):
        read_archive(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tar_of({"../evil": "x"}), "path traversal"),
        (tar_of({"a/../../evil": "x"}), "path traversal"),
        (tar_with(tarfile.SYMTYPE), "symbolic link; only files and folders"),
        (tar_with(tarfile.LNKTYPE), "hard link; only files and folders"),
        (tar_with(tarfile.CHRTYPE), "character device; only files and folders"),
        (tar_with(tarfile.FIFOTYPE), "FIFO; only files and folders"),
        (tar_with(tarfile.REGTYPE, name="/etc/shadow"), "absolute path"),
        (tar_with(tarfile.DIRTYPE, name="../up"), "path traversal"),
        (b"\x1f\x8b" + bytes(600), "damaged gzip data"),
        (gzip.compress(tar_of({"a": "x"}))[:-9], "truncated: the gzip data"),
        (gzip.compress(gzip.compress(tar_of({"a": "x"}))), "not a tar file"),
        (bz2.compress(tar_of({"a": "x"})), "compressed by bzip2; read are tar, tar.gz"),
        (lzma.compress(tar_of({"a": "x"})), "compressed by xz"),
        (zip_of({"../evil": "x"}), "path traversal"),
        (zip_of({"/etc/shadow": "x"}), "absolute path"),
        (zip_of({"a": "x"}, mode=0o120777), "neither a file nor a folder"),
        (zip_of({"a": "x"}, damaged=(b"\x14\3\x14\0\0\0", b"\x14\3\x14\0\1\0")), "encrypted"),
        (zip_of({"a": "x"}, method=zipfile.ZIP_STORED, damaged=(b"ax", b"ay")), "Bad CRC"),
        (zip_of({"a": "x"})[:-9], "damaged zip file"),
        (zip_of({}), "no member at all"),
        (bytes(2048), "no member at all"),
        (b"worthless file" * 100, "not a tar file.*tvm_export"),
        (b"PK\x03\x04" + bytes(600), "damaged zip file"),
        (tar_of({"a": "x"})[:1024], "truncated: ends after 1024 bytes"),
        (tar_of({"a": "x"})[:1400], "no tar file|truncated"),
        (tar_of({"a": "x" * 200})[:600], "only 88 left"),
        (tar_of({"a": "x"})[:-1024][:1024] * 2, "is there twice"),
    ],
)
def test_hostile_archive_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        parse_archive("model.tar", data)


def test_what_the_system_does_not_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArchiveError, match="mem: cannot be read: "):
        read_archive(Path("/proc/self/mem"))

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "metadata.json").write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ArchiveError, match=r"cannot be read: .*metadata\.json"):
        read_archive(tmp_path)


def resized(data: bytes, field: bytes) -> bytes:
    """A tar whose first header claims another size, with a right checksum."""
    header_bytes = bytearray(data[:512])
    header_bytes[124:136] = field
    header_bytes[148:156] = b" " * 8
    header_bytes[148:156] = b"%06o\0 " % sum(header_bytes)
    return bytes(header_bytes) + data[512:]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (b"77777777777\0", "at most 268435456 are accepted"),
        (b"\xff" * 12, "negative or absurd size"),
        (b"\x80" + b"\xff" * 11, "at most 268435456 are accepted"),
        (b"00000010000\0", "4096 bytes, but the file has only"),
        (b"99999999999\0", "is not octal"),
    ],
)
def test_absurd_size_is_refused(field: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        parse_archive("model.tar", resized(tar_of({"a": "x"})[:2048], field))


def test_too_many_members_are_refused() -> None:
    one = tar_of({"a": ""})[:512]
    with pytest.raises(ArchiveError, match=r"is there twice|more than"):
        parse_archive("model.tar", one * 9000)


@pytest.mark.parametrize(
    "name", ["a\\b", "a\nb", "C:/x", "/x", "..", "x/../y", "a" * 2000, "a/" * 40 + "b"]
)
def test_member_name_is_refused(name: str) -> None:
    with pytest.raises(ArchiveError):
        member_name("x", name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1", "not JSON"),
        ("[]", "expected an object, found a list"),
        ('{"version": 7, "version": 6}', "'version' is there twice"),
        ("[" * 100000, "nested deeper"),
        ('{"version": 7, "modules": {}}', "at least one model"),
        ('{"version": 7, "modules": {"a": 1}}', r"modules\.a: expected an object, found 1"),
        (metadata({"a": {"io_size_bytes": 1, "surprise": 1}}), "unknown key 'surprise'"),
        (
            metadata({"a": {"inputs": {"x": {"dtype": "int8", "size": -1}}}}),
            "-1 bytes; expected 0 to",
        ),
        (metadata({"a": {"inputs": {"x": {"dtype": "int8", "size": 1.5}}}}), r"found 1\.5"),
        (metadata({"a": {"workspace_size_bytes": 1 << 60}}), "1152921504606846976 bytes"),
        (
            metadata({"a": {}}).replace('"model_name": "a"', '"model_name": "b"'),
            "'b', but its key is 'a'",
        ),
    ],
)
def test_bad_metadata_is_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_metadata(text, "model.tar:metadata.json")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 8, "7", None, True])
def test_other_versions_are_refused(version: object) -> None:
    import json

    with pytest.raises(UnsupportedError, match="versions 5, 6 and 7 are supported"):
        parse_metadata(json.dumps({"version": version, "modules": {}}), "m")


def test_outputs_are_in_natural_order() -> None:
    names = ["output10", "output2", "output0", "output1"]
    assert sorted(names, key=natural_key) == ["output0", "output1", "output2", "output10"]


def test_header_facts() -> None:
    text = header("default", ["b_0", "a"], ["y"], pools={"sram": 8, "Flash": 16}, devices=["npu"])
    facts = parse_header(text, "h")
    assert facts.prefix == "tvmgen_default"
    assert facts.structs["inputs"] == ("b_0", "a")
    assert facts.structs["workspace_pools"] == ("sram", "Flash")
    assert facts.functions["run"].params[3] == "struct tvmgen_default_devices * devices"
    assert facts.defines["TVMGEN_DEFAULT_FLASH_WORKSPACE_POOL_SIZE"].integer() == 16


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("void* x;", "void* 1x;"), "'1x' is not a C identifier"),
        (("void* x;", "void* default;"), "'default' is a C keyword"),
        (("void* x;", "void* x-y;"), "expected `void\\* name;`"),
        (("void* x;", "int x;"), "expected `void\\* name;`, found `int x`"),
        (("void* x;", "void* x; void* x;"), "field 'x' is there twice"),
        (("default_run", "default_go"), "expected one entry point"),
        (("#endif // ", "// "), "#if without #endif"),
        ((");\n", "\n"), "unbalanced|does not end"),
    ],
)
def test_bad_header_is_refused(damage: tuple[str, str], message: str) -> None:
    text = header("default", ["x"], ["y"])
    assert damage[0] in text
    with pytest.raises(FormatError, match=message):
        parse_header(text.replace(*damage), "h")


def test_a_macro_defined_twice_has_no_value() -> None:
    defines = "#define TVMGEN_DEFAULT_X_SIZE 32\n#define TVMGEN_DEFAULT_X_SIZE 12\n"
    facts = parse_header(header("default", ["x"], ["x"], defines=defines), "h")
    assert facts.defines["TVMGEN_DEFAULT_X_SIZE"].integer() is None


def test_source_facts() -> None:
    files = {k: str(v) for k, v in DIALECTS["io_in_pools"]().files.items() if k.endswith(".c")}
    facts = parse_sources(files, "m")
    assert facts.io_offsets == {
        ("inputs", "x_0"): ("sram", 16),
        ("inputs", "bias"): ("dtcm", 0),
        ("outputs", "y"): ("sram", 16),
    }
    files = {k: str(v) for k, v in DIALECTS["internal_pools"]().files.items() if k.endswith(".c")}
    assert parse_sources(files, "m").static_workspaces == (("global_workspace", 48),)


def test_nothing_inside_comments_and_strings_is_code() -> None:
    code, comments = split_comments('a /* static uint8_t x[1]; */ "// y" // z\nb')
    assert "static" not in code and "static" in comments and "z" not in code
    assert code.endswith("\nb") and len(code) == len(comments)


def test_relay_signature() -> None:
    text = (
        "def @main(%a:0: Tensor[(1, 8), int8] /* ty=Tensor[(1, 8), int8] */, %s: Tensor[(), "
        "float32]) -> (Tensor[(1, 4), int8], Tensor[(2), float32]) {\n}\n"
    )
    found = parse_main_signature(text)
    assert found is not None and found.outputs is not None
    assert [(t.name, t.shape, t.dtype) for t in found.inputs] == [
        ("a:0", (1, 8), "int8"),
        ("s", (), "float32"),
    ]
    assert [t.shape for t in found.outputs] == [(1, 4), (2,)]
    assert parse_main_signature("no main") is None


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("0x01, 0xFf , 0X3", b"\x01\xff\x03"),
        (" 0x00 , ", b"\x00"),
        ("", b""),
        ("0x", None),
        ("0x123", None),
        ("0x0 5", None),
        ("0x01 0x02", None),
        ("0x01,,0x02", None),
        ("1", None),
    ],
)
def test_constant_pools_are_lists_of_octets(text: str, octets: bytes | None) -> None:
    assert Define(text, 1).octets() == octets


def test_facts_between_weights_are_found() -> None:
    weights = f"static const float w[] = {{{'-0x1.8p-3f, ' * 100}}};\n"
    code = (
        f"{weights}static uint8_t pool[64];\n{weights}"
        f"int32_t tvmgen_default_run(void) {{\n{weights}return TVMFuncCall(1);\n}}\n{weights}"
    )
    facts = parse_sources({"a.c": code}, "x")
    assert facts.run_symbol == "tvmgen_default_run"
    assert facts.static_workspaces == (("pool", 64),)
    assert facts.calls == {"TVMFuncCall"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("static uint8_t ws[64];", ["ws"]),
        ("static uint8_t __attribute__((aligned(16))) ws[64];", ["ws"]),
        ('static __attribute__((section(".bss.x"), aligned(16))) uint8_t ws[64];', ["ws"]),
        ("static float ws[64];", ["ws"]),
        ("static int8_t ws[0x40];", ["ws"]),
        ("#define N 64\nstatic uint8_t ws[N];", ["ws"]),
        ("uint8_t ws[4 * 16];", ["ws"]),
        ("static int counter;", ["counter"]),
        ("int f(void) { static int n[2][2] = {{0, 1}, {2, 3}}; return ++n[0][0]; }", ["n"]),
        ("static struct { int a[4]; } st = { { 1, 2 } };", ["st"]),
        ("struct state { int a; };\nstruct state now;", ["now"]),
        ("static int32_t (*hook)(void*) = 0;", ["hook"]),
        ('extern "C" {\nint seen;\n}', ["seen"]),
        ("static const float w[2] = {1.0f, 2.0f};", []),
        ("const static float w[2] = {1.0f};", []),
        ('__attribute__((section(".rodata.tvm"), aligned(16))) static int8_t w[2] = "ab";', []),
        ("static inline int f(int a) { int b = a; return b; }\nstatic int g(void);", []),
        ("extern volatile int32_t finished;", ["finished"]),
        ("typedef struct { int a; } T;\nenum { A, B };\nstruct S { const int a; };", []),
        ("static const float* last;", ["last"]),
        ("static const float* const first = 0;", []),
        ("static const int8_t* tab[2];", ["tab"]),
        ("static const int8_t* const tab[2] = {0, 0};", []),
        ("static float ring[sizeof(const int)];", ["ring"]),
        ("static const int (*hook)(const int);", ["hook"]),
        ("static int (*const hooks[2])(int) = {0, 0};", []),
        ("static const int a = 1, *p, b;", ["p"]),
        ("static float (ring)[4];", ["ring"]),
        ("static ring_t (ring);", ["ring"]),
        ("extern float shared[4];", ["shared"]),
        ("void f(void) { extern float shared[4]; shared[0] = 1; }", ["shared"]),
        ("extern const float shared[4];\nextern void f(const float* x);", []),
        ("static _Thread_local int n;", ["n"]),
        ("void f(void) { static const int t[2] = {1, 2}, *p; }", ["p"]),
        ("void f(void) { const static int t = 1; static const struct { int a; } s = {1}; }", []),
        ("_Alignas(16) static float r[4];", ["r"]),
        ("static float a[4] , w[2] __attribute__((section(\".rodata\")));", ["a"]),
        ("STATE(float, ring, 4);", ["STATE"]),
        ("STATE(ring)\nint f(void) { return 0; }", ["STATE"]),
        ("STATE ring[4];", ["ring"]),
        ("#define KEPT static\nvoid f(void) { KEPT float ring[4]; }", ["ring"]),
        ("#define W static const\nW float w[4] = {1};\nvoid f(void) { W int v = 1; }", []),
        ("#define W static const float*\nW p;", ["p"]),
        ("#define S static\n#define T S\nvoid f(void) { T int n; }", ["n"]),
        ("#define RING(n) static float n[4]\nvoid f(void) { RING(x); }", ["RING"]),
        ("#define RING(n) static float n[4]\nvoid f(void) { }", []),
        ("#define CALL static inline\nCALL int f(int a) { return a; }", []),
        ('#ifdef X\n#define E extern "C"\n#else\n#define E extern\n#endif\nE int f(int a);', []),
        ("#define API extern\nAPI int f(int (*call)(int), int b);", []),
        ("int32_t f(int (*call)(int));\nint get_t(void);\nconst float* (g)(int a, int b);", []),
        ("static TVMBackendPackedCFunc _tvm_func_array[] = { (TVMBackendPackedCFunc)f, };", []),
        ("int32_t f(void* x) __attribute__((noinline));\nvoid* __tvm_module_ctx = NULL;", []),
    ],
)  # fmt: skip
def test_what_the_c_keeps_between_calls(code: str, names: list[str]) -> None:
    """Two runs that overlap would race on it, so a model that has any exists once."""
    facts = parse_sources(
        {"a.c": f"#include <stdint.h>\n{code}\nint32_t g(void) {{ return 0; }}"}, "m"
    )
    assert [name for name, _ in facts.static_workspaces] == names


def test_a_macro_of_a_header_makes_state_of_a_source() -> None:
    source = "void f(void) { KEPT float ring[4]; }\nextern uint8_t pool[64];"
    files = {"a.c": source, "b.c": "uint8_t pool[64];\nint32_t g(void) { return 0; }"}
    facts = parse_sources(files, "m", ["#define KEPT static\n"])
    assert facts.static_workspaces == (("pool", 64), ("ring", 0))


def test_operators_are_what_the_main_function_calls() -> None:
    kernels = (
        "/* int32_t tvmgen_m_c(float* x) { */\n"
        "TVM_DLL void tvmgen_m_a(const float* x, struct s * y_1) { tvmgen_m_b(0); }\n"
        "static float tvmgen_m_f(float x) { return x; }\n"
        "TVM_DLL int32_t tvmgen_m_b(void) { return 0; }\n"
        "TVM_DLL int32_t tvmgen_m_d(float x[4]) { return 0; }\n"
        "TVM_DLL int32_t tvmgen_m_unused(float* x) { return 0; }\n"
    )
    entry = (
        "TVM_DLL void tvmgen_m_a(const float* x, struct s * y_1);\n"
        "int32_t tvmgen_m_run(float* x) {\n"
        '  if (tvmgen_m_b() != 0) { puts("}"); }\n'
        "  tvmgen_m_a(x, 0); tvmgen_m_f(1.0f); tvmgen_m_a(x, 0); tvmgen_m_d(x);\n"
        "  return 0;\n}\nint after;\n"
    )
    sources = {"lib1.c": kernels, "lib0.c": entry}
    (caller,) = callers(sources, ("tvmgen_m_run", "tvmgen_m___tvm_main__"))
    assert caller.operators == (
        Operator("tvmgen_m_b", "int32_t", "void", ()),
        Operator("tvmgen_m_a", "void", "const float* x, struct s * y_1", ("x", "y_1")),
    )
    assert (caller.file, entry[caller.start : caller.end].splitlines()[-1]) == ("lib0.c", "}")
    assert entry[caller.start :].startswith("int32_t tvmgen_m_run(")
    assert entry[caller.end :] == "\nint after;\n"
    assert callers({"lib1.c": kernels}, ("tvmgen_m_run",)) == ()
