"""A client of TensorFlow Serving's gRPC interface; messages are described by numbers of fields.

The messages of TensorFlow come from its wheel.
"""

from __future__ import annotations

from typing import Any

import grpc
import tensorflow as tf
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from tensorflow.core.example import example_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from tests.e2e.client.served import Server

_T = ".tensorflow."
_S = ".tensorflow.serving."
_MESSAGES = {
    "tensorflow.serving": {
        "ModelSpec": (
            "name:1:string version:2:.google.protobuf.Int64Value signature_name:3:string"
            " version_label:4:string"
        ),
        "PredictRequest": (
            f"model_spec:1:{_S}ModelSpec inputs:2:map:{_T}TensorProto output_filter:3*:string"
        ),
        "PredictResponse": f"outputs:1:map:{_T}TensorProto model_spec:2:{_S}ModelSpec",
        "ExampleList": f"examples:1*:{_T}Example",
        "ExampleListWithContext": f"examples:1*:{_T}Example context:2:{_T}Example",
        "Input": (
            f"example_list:1:{_S}ExampleList example_list_with_context:2:{_S}ExampleListWithContext"
        ),
        "ClassificationRequest": f"model_spec:1:{_S}ModelSpec input:2:{_S}Input",
        "Class": "label:1:string score:2:float",
        "Classifications": f"classes:1*:{_S}Class",
        "ClassificationResult": f"classifications:1*:{_S}Classifications",
        "ClassificationResponse": (f"result:1:{_S}ClassificationResult model_spec:2:{_S}ModelSpec"),
        "Regression": "value:1:float",
        "RegressionResult": f"regressions:1*:{_S}Regression",
        "RegressionResponse": f"result:1:{_S}RegressionResult model_spec:2:{_S}ModelSpec",
        "GetModelMetadataRequest": f"model_spec:1:{_S}ModelSpec metadata_field:2*:string",
        "GetModelMetadataResponse": (
            f"model_spec:1:{_S}ModelSpec metadata:2:map:.google.protobuf.Any"
        ),
        "SignatureDefMap": f"signature_def:1:map:{_T}SignatureDef",
        "GetModelStatusRequest": f"model_spec:1:{_S}ModelSpec",
        "StatusProto": "error_code:1:int32 error_message:2:string",
        "ModelVersionStatus": f"version:1:int64 state:2:int32 status:3:{_S}StatusProto",
        "GetModelStatusResponse": f"model_version_status:1*:{_S}ModelVersionStatus",
    },
    "grpc.health.v1": {
        "HealthCheckRequest": "service:1:string",
        "HealthCheckResponse": "status:1:int32",
    },
}
"""Fields by message: name, number (with a star if repeated), type; `map:` for values by name."""


def _described(package: str, messages: dict[str, str]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"tests/{package}.proto",
        package=package,
        syntax="proto3",
        dependency=[
            each.DESCRIPTOR.name
            for each in (any_pb2, wrappers_pb2, example_pb2, meta_graph_pb2)
            if package.startswith("tensorflow")
        ],
    )
    if package.startswith("tensorflow"):
        file.dependency.append("tensorflow/core/framework/tensor.proto")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            key, number, kind = field.split(":", 2)
            many = number.endswith("*") or kind.startswith("map:")
            added = message.field.add(name=key, number=int(number.rstrip("*")))
            added.label = added.LABEL_REPEATED if many else added.LABEL_OPTIONAL
            if kind.startswith("map:"):
                entry = message.nested_type.add(
                    name="".join(part.capitalize() for part in key.split("_")) + "Entry"
                )
                entry.options.map_entry = True
                for at, (part, of) in enumerate((("key", "string"), ("value", kind[4:])), 1):
                    _typed(entry.field.add(name=part, number=at, label=added.LABEL_OPTIONAL), of)
                kind = f".{package}.{name}.{entry.name}"
            _typed(added, kind)
    return file


def _typed(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind.startswith("."):
        field.type, field.type_name = field.TYPE_MESSAGE, kind
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")


def _messages() -> dict[str, Any]:
    pool = descriptor_pool.Default()
    found = {}
    for package, messages in _MESSAGES.items():
        pool.Add(_described(package, messages))
        for name in messages:
            described = pool.FindMessageTypeByName(f"{package}.{name}")
            found[name] = message_factory.GetMessageClass(described)
    return found


M = _messages()
"""The classes of messages, by name."""

METHODS = {
    "Predict": ("tensorflow.serving.PredictionService", "PredictRequest", "PredictResponse"),
    "Classify": (
        "tensorflow.serving.PredictionService",
        "ClassificationRequest",
        "ClassificationResponse",
    ),
    "Regress": (
        "tensorflow.serving.PredictionService",
        "ClassificationRequest",
        "RegressionResponse",
    ),
    "GetModelMetadata": (
        "tensorflow.serving.PredictionService",
        "GetModelMetadataRequest",
        "GetModelMetadataResponse",
    ),
    "GetModelStatus": (
        "tensorflow.serving.ModelService",
        "GetModelStatusRequest",
        "GetModelStatusResponse",
    ),
    "Check": ("grpc.health.v1.Health", "HealthCheckRequest", "HealthCheckResponse"),
    "MultiInference": (
        "tensorflow.serving.PredictionService",
        "PredictRequest",
        "PredictResponse",
    ),
}


class Client:
    """A connection to a server."""

    def __init__(self, server: Server) -> None:
        """Connects when it is used first."""
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc}")

    def call(self, method: str, timeout: float = 60, **fields: Any) -> Any:
        """Calls a method with the fields of its request."""
        service, request, response = METHODS[method]
        call = self.channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=M[request].SerializeToString,
            response_deserializer=M[response].FromString,
        )
        return call(M[request](**fields), timeout=timeout)

    def predict(self, signature: str = "", timeout: float = 60, **inputs: Any) -> dict[str, Any]:
        """Returns the results of a signature as arrays."""
        spec = M["ModelSpec"](name="m", signature_name=signature)
        tensors = {name: tf.make_tensor_proto(value) for name, value in inputs.items()}
        found = self.call("Predict", timeout, model_spec=spec, inputs=tensors)
        return {name: tf.make_ndarray(value) for name, value in found.outputs.items()}

    def health(self) -> int:
        """Returns the state of the whole server."""
        return int(self.call("Check").status)
