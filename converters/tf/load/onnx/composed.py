"""Operators that onnx itself says in others."""

from __future__ import annotations

from typing import Any

# Without the domain, as in the registry for others.
COMPOSED = frozenset(
    [
        *("Attention", "BlackmanWindow", "CausalConvWithState", "CenterCropPad", "HammingWindow"),
        *("HannWindow", "LinearAttention", "NegativeLogLikelihoodLoss", "RotaryEmbedding"),
        *("SoftmaxCrossEntropyLoss", "SwiGLU", "ai.onnx.preview.FlexAttention"),
    ]
)
# How deep such operators are said in others of them.
_DEEPEST = 4
# The domain of the functions that a model gets for a while.
_ASIDE = "tf2rust.composed"


class ComposedError(ValueError):
    """onnx can't say an operator in others.

    Attributes:
        op: The operator.
    """

    def __init__(self, op: str, what: str) -> None:
        """Keeps the operator and says what failed."""
        self.op = op
        super().__init__(what)


def decomposed(model: Any, onnx: Any) -> Any:
    """Returns a model with these operators in others.

    Args:
        model: The model; it may change.
        onnx: The package.

    Raises:
        ComposedError: onnx has no words for a form of one of them.
    """
    for _ in range(_DEEPEST):
        nodes = [node for node in model.graph.node if _name(node) in COMPOSED]
        if not nodes:
            break
        model = _inlined(model, onnx)
    return model


def _name(node: Any) -> str:
    domain = "" if node.domain == "ai.onnx" else node.domain
    return f"{domain}.{node.op_type}" if domain else str(node.op_type)


def _inlined(model: Any, onnx: Any) -> Any:
    """Returns a model with a function for each of the nodes, and the functions in their places.

    onnx's own inliner of schemas stops at operands that are left out.
    """
    types = _types(model, onnx)
    versions = {_plain(o.domain): o.version for o in model.opset_import}
    for number, node in enumerate(model.graph.node):
        op = _name(node)
        if op not in COMPOSED:
            continue
        for attribute in list(node.attribute):
            # onnx's function caps by a negative number, its reference and onnxruntime do not.
            if op == "Attention" and attribute.name == "softcap" and attribute.f < 0:
                node.attribute.remove(attribute)
        try:
            function = _function(node, types, versions.get(_plain(node.domain), 1), onnx)
        except Exception as err:  # Some forms are more than onnx itself can say in others.
            raise ComposedError(op, str(err)) from err
        function.domain, function.name = _ASIDE, f"{node.op_type}_{number}"
        node.domain, node.op_type = _ASIDE, function.name
        del node.attribute[:]
        model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid(_ASIDE, 1))
    # To convert functions from another operator set, the inliner needs the types of constants, too.
    graph = model.graph
    known = {value.name for value in (*graph.value_info, *graph.input, *graph.output)}
    graph.value_info.extend(
        onnx.helper.make_value_info(name, kind) for name, kind in types.items() if name not in known
    )
    found = onnx.inliner.inline_local_functions(model, convert_version=True)
    kept = [o for o in found.opset_import if o.domain != _ASIDE]
    del found.opset_import[:]
    found.opset_import.extend(kept)
    return found


def _plain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _types(model: Any, onnx: Any) -> dict[str, Any]:
    """Returns the types of all tensors by their names."""
    found = onnx.shape_inference.infer_shapes(model).graph
    types = {t.name: _type_of(t, onnx) for t in found.initializer}
    for value in (*found.value_info, *found.output, *found.input):
        types[value.name] = value.type
    return types


def _type_of(tensor: Any, onnx: Any) -> Any:
    return onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def _function(node: Any, types: dict[str, Any], version: int, onnx: Any) -> Any:
    """Returns the function that a node is, for the types of its operands."""
    domain = _plain(node.domain)
    schema = onnx.defs.get_schema(node.op_type, version, domain)
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        empty = onnx.TypeProto()
        given = [types.get(name, empty).SerializeToString() for name in node.input]
        text = schema.get_context_dependent_function(node.SerializeToString(), given)
        body.ParseFromString(text)
    elif schema.has_function:
        body.ParseFromString(schema.function_body.SerializeToString())
    else:
        raise ValueError("it has no words for it")
    _bound(body.node, {a.name: a for a in node.attribute}, _defaults(schema))
    del body.attribute[:]
    del body.attribute_proto[:]
    return body


def _defaults(schema: Any) -> dict[str, Any]:
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}


def _bound(nodes: Any, given: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Gives nodes the attributes of the function that they are in; what it lacks is left out."""
    for node in nodes:
        for attribute in list(node.attribute):
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _bound(graph.node, given, defaults)
            name = attribute.ref_attr_name
            if not name:
                continue
            own, value = attribute.name, given.get(name, defaults.get(name))
            if value is None:
                node.attribute.remove(attribute)
                continue
            attribute.CopyFrom(value)
            attribute.name = own
