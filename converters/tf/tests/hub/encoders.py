"""Models that read a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from keras_hub import models

from converters.tf.tests.hub.entry import WORDS, Entry

SIZES: Final = {
    "vocabulary_size": WORDS,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}
"""Of every transformer that names them so."""
LENGTH: Final = {"max_sequence_length": 20}


def _albert() -> Any:
    return models.AlbertBackbone(**SIZES, **LENGTH, embedding_dim=6)


def _bert() -> Any:
    return models.BertBackbone(**SIZES, **LENGTH)


def _deberta() -> Any:
    return models.DebertaV3Backbone(**SIZES, **LENGTH, bucket_size=4)


def _distil_bert() -> Any:
    return models.DistilBertBackbone(**SIZES, **LENGTH)


def _electra() -> Any:
    return models.ElectraBackbone(
        vocab_size=WORDS,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        embedding_dim=6,
        intermediate_dim=16,
        max_sequence_length=20,
    )


def _esm() -> Any:
    return models.ESMBackbone(**SIZES)


def _f_net() -> Any:
    return models.FNetBackbone(
        vocabulary_size=WORDS,
        num_layers=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=20,
    )


def _roberta() -> Any:
    return models.RobertaBackbone(**SIZES, **LENGTH)


def _roformer() -> Any:
    return models.RoformerV2Backbone(**SIZES, head_size=4)


def _xlm_roberta() -> Any:
    return models.XLMRobertaBackbone(**SIZES, **LENGTH)


def _classifier(kind: Any, backbone: Callable[[], Any]) -> Entry:
    return Entry(lambda: kind(backbone(), num_classes=3))


def _masked(kind: Any, backbone: Callable[[], Any]) -> Entry:
    return Entry(lambda: kind(backbone()))


ENTRIES: Final = {
    "AlbertBackbone": Entry(_albert),
    "AlbertMaskedLM": _masked(models.AlbertMaskedLM, _albert),
    "AlbertTextClassifier": _classifier(models.AlbertTextClassifier, _albert),
    "BertBackbone": Entry(_bert),
    "BertMaskedLM": _masked(models.BertMaskedLM, _bert),
    "BertTextClassifier": _classifier(models.BertTextClassifier, _bert),
    "DebertaV3Backbone": Entry(_deberta),
    "DebertaV3MaskedLM": _masked(models.DebertaV3MaskedLM, _deberta),
    "DebertaV3TextClassifier": _classifier(models.DebertaV3TextClassifier, _deberta),
    "DistilBertBackbone": Entry(_distil_bert),
    "DistilBertMaskedLM": _masked(models.DistilBertMaskedLM, _distil_bert),
    "DistilBertTextClassifier": _classifier(models.DistilBertTextClassifier, _distil_bert),
    "ElectraBackbone": Entry(_electra),
    "ESMBackbone": Entry(_esm),
    "ESMProteinClassifier": _classifier(models.ESMProteinClassifier, _esm),
    "FNetBackbone": Entry(_f_net),
    "FNetMaskedLM": _masked(models.FNetMaskedLM, _f_net),
    "FNetTextClassifier": _classifier(models.FNetTextClassifier, _f_net),
    "RobertaBackbone": Entry(_roberta),
    "RobertaMaskedLM": _masked(models.RobertaMaskedLM, _roberta),
    "RobertaTextClassifier": _classifier(models.RobertaTextClassifier, _roberta),
    "RoformerV2Backbone": Entry(_roformer),
    "RoformerV2MaskedLM": _masked(models.RoformerV2MaskedLM, _roformer),
    "RoformerV2TextClassifier": _classifier(models.RoformerV2TextClassifier, _roformer),
    "XLMRobertaBackbone": Entry(_xlm_roberta),
    "XLMRobertaMaskedLM": _masked(models.XLMRobertaMaskedLM, _xlm_roberta),
    "XLMRobertaTextClassifier": _classifier(models.XLMRobertaTextClassifier, _xlm_roberta),
    "XLNetBackbone": Entry(lambda: models.XLNetBackbone(**SIZES), refused=True),
}
