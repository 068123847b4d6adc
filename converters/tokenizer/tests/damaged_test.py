"""Damaged files and files of other programs: an error that names the file, and no other one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converters.tokenizer.convert import Request, convert
from converters.tokenizer.errors import FileError, RecordedError
from converters.tokenizer.load import sentence_piece
from tools.codegen.conversion import ConversionError, UnsupportedError, UsageError

GOLDEN = Path(__file__).parent / "golden"
MODEL = (GOLDEN / "deberta/assets/tokenizer/vocabulary.spm").read_bytes()


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name, folder / name, copy_function=shutil.copyfile))


def changed(name: str, folder: Path, **config: Any) -> Path:
    out = copied(name, folder)
    file = out / "tokenizer.json"
    described = json.loads(file.read_text())
    described["config"] |= config
    file.write_text(json.dumps(described))
    return out


def told(path: Path, error: type[ConversionError]) -> str:
    with pytest.raises(error) as caught:
        convert(Request(path))
    return str(caught.value)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(0, len(MODEL) - 1), st.binary(min_size=1, max_size=6), st.booleans())
def test_a_damaged_model_is_read_or_refused(at: int, noise: bytes, cut: bool) -> None:
    content = MODEL[:at] if cut else MODEL[:at] + noise + MODEL[at + len(noise) :]
    try:
        model = sentence_piece.read("model", content)
    except (FileError, UnsupportedError) as err:
        assert "model" in str(err)
    else:
        assert model.pieces[model.unknown].kind.name == "UNKNOWN"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_bytes_are_no_model(content: bytes) -> None:
    with pytest.raises((FileError, UnsupportedError)):
        sentence_piece.read("model", content)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["class_name", "config", "split", "x"]), inner, max_size=4
            )
        ),
    )
)
def test_any_json_is_refused(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "tokenizer.json").write_text(json.dumps(value))
    with pytest.raises(ConversionError):
        convert(Request(folder))


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        ("bert", {"oov_token": "[NONE]"}, "'[NONE]'"),
        ("bert", {"lowercase": "yes"}, "lowercase"),
        ("bert", {"suffix_indicator": None}, "suffix_indicator"),
        ("bert", {"sequence_length": 0}, "sequence_length"),
        ("bert", {"special_tokens": [""]}, "special"),
        ("gpt2", {"unsplittable_tokens": [3]}, "unsplittable_tokens"),
        ("gpt2", {"sequence_length": 1 << 40}, "sequence_length"),
        ("t5", {"add_bos": True}, "add_bos"),
    ],
)
def test_wrong_settings_are_named(
    name: str, config: dict[str, Any], said: str, tmp_path: Path
) -> None:
    assert said in told(changed(name, tmp_path, **config), FileError)


@pytest.mark.parametrize(
    ("name", "file", "content", "said"),
    [
        ("bert", "vocabulary.txt", b"\xff\xfe", "UTF-8"),
        ("bert", "vocabulary.txt", b"", "unknown words"),
        ("gpt2", "vocabulary.json", b"[]", "object"),
        ("gpt2", "vocabulary.json", b"{", "JSON"),
        ("gpt2", "vocabulary.json", b"[" * 100000, "JSON"),
        ("gpt2", "vocabulary.json", b'{"a": "1"}', "integer"),
        ("gpt2", "vocabulary.json", b'{"a": 2147483647}', "2147483647"),
        ("gpt2", "vocabulary.json", b'{"a": -1}', "-1"),
        ("gpt2", "merges.txt", b"#version: 0.2\none two", "line 2"),
        ("gpt2", "merges.txt", b"h", "line 1"),
        ("albert", "vocabulary.spm", b"", "unknown characters"),
    ],
)
def test_wrong_files_are_named(
    name: str, file: str, content: bytes, said: str, tmp_path: Path
) -> None:
    folder = copied(name, tmp_path)
    (folder / "assets/tokenizer" / file).write_bytes(content)
    text = told(folder, FileError)
    assert file in text
    assert said in text


@pytest.mark.parametrize("name", ["assets/tokenizer/vocabulary.txt", "tokenizer.json"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    folder = copied("bert", tmp_path)
    (folder / name).unlink()
    assert name in told(folder, FileError)


def test_half_a_pair_of_utf_16_is_no_text(tmp_path: Path) -> None:
    folder = copied("gpt2", tmp_path)
    file = folder / "assets/tokenizer/vocabulary.json"
    file.write_text(file.read_text()[:-1] + ', "\\ud800": 5}')
    assert "vocabulary.json" in told(folder, FileError)
    text = changed("words", tmp_path, suffix_indicator="\ud800")
    assert "tokenizer.json" in told(text, FileError)


@pytest.mark.parametrize("name", ["CLIPTokenizer", "Own", "WhisperTokenizer"])
def test_other_classes_are_named(name: str, tmp_path: Path) -> None:
    folder = copied("bert", tmp_path)
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace("BertTokenizer", name))
    assert name in told(folder, UnsupportedError)


@pytest.mark.parametrize("content", ["[]", "{", '{"a": 1}', '{"a": [true]}', '{"a": [4294967296]}'])
def test_records_of_another_form_are_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text(content)
    with pytest.raises(RecordedError, match=r"texts\.json"):
        convert(Request(GOLDEN / "bert", recorded=file))


def test_names_become_no_code(tmp_path: Path) -> None:
    hostile = '"]; fn owned() {} //'
    folder = changed("bert", tmp_path, special_tokens=[hostile, "\u202e\n*/"])
    files = convert(Request(folder, "tokens")).files
    code = b"".join(content for path, content in files.items() if path.endswith(".rs"))
    assert b"\nfn owned" not in code
    assert b'"\\"]; fn owned() {} //"' in code
    assert "\u202e".encode() not in code
    with pytest.raises(UsageError, match="crate_name"):
        convert(Request(folder, 'x"; y'))
