from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision.signature import SignatureError, read_keys, signed_text
from tools.provision.testing.archive import pair, sign

KEYS = [pair(1)[0]]
TEXT = "Origin: Debian\n- dashed\n-----BEGIN\ntrailing \t\n\nlast"


def test_a_signed_text_is_given_back_without_trailing_blanks() -> None:
    assert signed_text(sign(TEXT), KEYS) == TEXT.replace(" \t", "")
    assert signed_text(sign(TEXT).replace(b"\n", b"\r\n"), KEYS) == TEXT.replace(" \t", "")


def test_one_of_several_keys_is_enough() -> None:
    assert signed_text(sign("a\nb", 2), [*KEYS, pair(2)[0]]) == "a\nb"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (sign(TEXT, 2), "none of its signatures"),
        (sign(TEXT).replace(b"Debian", b"Debiam"), "none of its signatures"),
        (sign(TEXT, kind=0), "none of its signatures"),
        (sign(TEXT, number=2), "none of its signatures"),
        (b"Origin: Debian\n", "not a signed document"),
        (b"x" + sign(TEXT), "not a signed document"),
        (sign(TEXT) + b"more", "not a signed document"),
        (sign(TEXT).replace(b"\n\nwv", b"\n\n!!"), "cannot be read"),
    ],
)
def test_a_document_that_no_key_signed(document: bytes, said: str) -> None:
    with pytest.raises(SignatureError, match=said):
        signed_text(document, KEYS)


@given(st.integers(0, 400), st.integers(1, 255))
def test_no_changed_byte_is_taken(at: int, change: int) -> None:
    document = bytearray(sign("a\nbc"))
    at = at % len(document)
    document[at] ^= change
    try:
        text = signed_text(bytes(document), KEYS)
    except SignatureError:
        return
    # Blanks at the ends of lines, armor headers and the checksum are signed by nobody.
    assert text == "a\nbc"


def test_the_keys_of_debians_archives() -> None:
    keys = read_keys()
    assert {4096} == {key.modulus.bit_length() for key in keys}
    assert {65537} == {key.exponent for key in keys}
    assert all(release in " ".join(key.name for key in keys) for release in ("bookworm", "trixie"))
