"""TVM half of tvm_export: a Relax module -> a plan. The only file that imports TVM.

Written for apache-tvm 0.27.0.post1; other versions name passes and classes differently.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from converters.mlf.errors import FormatError
from converters.mlf.parse.c_header import C_KEYWORDS
from converters.mlf.rules import DTYPES, MIN_ALIGNMENT
from converters.mlf.tvm_export_plan import Call, ConstantPool, Place, Plan, TensorPlan
from converters.mlf.tvm_export_tensorflow import KERAS_SUFFIXES, to_tflite
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError, UsageError
from tools.codegen.rust import one_line

_STATIC = "shapes have to be static, the batch size too"
#: What C's headers and compilers define, besides keywords.
_C_MACROS = frozenset({"NULL", "linux", "unix"})

VERSION = "0.27.0.post1"
#: Operators that give another view of their first argument.
_VIEWS = frozenset(
    {"relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset", "relax.flatten"}
)
_NO_CODE = frozenset({"relax.memory.kill_tensor", "relax.memory.kill_storage"})


def _tvm() -> Any:
    try:
        return importlib.import_module("tvm")
    except ImportError as err:
        raise UsageError(
            Problem("tvm_export", "TVM is not installed", f"pip install apache-tvm=={VERSION}")
        ) from err


@dataclass(frozen=True)
class Loaded:
    """A model that TVM has read.

    Attributes:
      origin: its file or folder, for messages.
      module: the `tvm.IRModule` with a function `main`, weights bound.
      outputs: names of its results, in order; empty where the format has none.
    """

    origin: str
    module: Any
    outputs: tuple[str, ...] = ()


def load_model(path: Path, signature: str = "serving_default") -> Loaded:
    """Reads a model into a Relax module with its weights bound.

    Args:
      path: an `.onnx`, `.tflite`, `.keras` or `.h5` file, or the folder of a SavedModel.
      signature: which of a SavedModel's signatures.

    Raises:
      UsageError: the model cannot be read, has another form, or a package for it is missing.
      UnsupportedError: the format's own library or TVM's frontend refuses the model.
    """
    _tvm()
    tensorflow = path.suffix in KERAS_SUFFIXES or (path / "saved_model.pb").is_file()
    if not tensorflow and path.suffix not in (".onnx", ".tflite"):
        what = "neither an .onnx, .tflite, .keras or .h5 file nor the folder of a SavedModel"
        raise UsageError(Problem(str(path), what))
    try:
        path.stat()
        content = to_tflite(path, signature) if tensorflow else path.read_bytes()
        if path.suffix == ".onnx":
            onnx = importlib.import_module("onnx")
            frontend = importlib.import_module("tvm.relax.frontend.onnx")
            model = onnx.load_from_string(content)
            module = frontend.from_onnx(model, keep_params_in_input=False)
            return Loaded(str(path), module, tuple(o.name for o in model.graph.output))
        tflite = importlib.import_module("tflite")
        frontend = importlib.import_module("tvm.relax.frontend.tflite")
        source = tflite.Model.GetRootAs(content, 0)
        return Loaded(str(path), frontend.from_tflite(source), tflite_outputs(source))
    except ImportError as err:
        raise UsageError(
            Problem(str(path), f"{err.name} is not installed", f"pip install {err.name}")
        ) from err
    except OSError as err:
        raise UsageError(Problem(str(path), f"cannot be read: {err}")) from err
    except ConversionError:
        raise
    except Exception as err:  # The frontends raise whatever their libraries raise.
        what = f"the frontend refuses it: {type(err).__name__}: {_reason(err)}"
        raise UnsupportedError(Problem(str(path), what, _advice(err))) from err


def _reason(err: Exception) -> str:
    """Returns what an error says, less the stack that TVM puts before it."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    shown = lines[-1:] if type(err).__module__.startswith(("tvm", "tvm_ffi")) else lines
    return one_line(" ".join(shown), 400)


def _advice(err: Exception) -> str:
    if type(err).__name__ == "OpNotImplemented":
        return "TVM has no such operator; tf2rust converts TensorFlow and ONNX models without TVM"
    return _STATIC


def tflite_outputs(model: Any) -> tuple[str, ...]:
    """Returns the names of a TFLite model's outputs: those of its signature, else its tensors'."""
    graph = model.Subgraphs(0)
    tensors = [graph.Outputs(i) for i in range(graph.OutputsLength())]
    names = {t: (graph.Tensors(t).Name() or b"").decode("utf-8", "replace") for t in tensors}
    for number in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(number)
        if signature.SubgraphIndex() == 0:
            named = [signature.Outputs(i) for i in range(signature.OutputsLength())]
            names |= {o.TensorIndex(): o.Name().decode("utf-8", "replace") for o in named}
            break
    return tuple(names[t] for t in tensors)


def plan_module(loaded: Loaded, name: str) -> Plan:
    """Lowers a model and plans its memory.

    Args:
      loaded: the model; its shapes have to be static.
      name: module name of the archive, a lower-case C identifier.

    Raises:
      UnsupportedError: dynamic shapes, dtypes without a C type, or operators left after lowering.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(Problem("--name", f"{name!r}; expected a lower-case C identifier"))
    tvm = _tvm()
    target = tvm.target.Target("c")
    _check_static(loaded)
    try:
        planned = _planned(tvm, target, loaded.module)
        kernels, prototypes = _kernels(tvm, target, planned, name)
        return _walk(tvm, planned, name, kernels, prototypes, loaded.outputs)
    except ConversionError:
        raise
    except Exception as err:  # TVM raises whatever its passes raise.
        what = f"TVM can't compile it: {type(err).__name__}: {_reason(err)}"
        raise UnsupportedError(Problem(loaded.origin, what, _advice(err))) from err


def _check_static(loaded: Loaded) -> None:
    """Refuses inputs of unknown shape, before TVM fails somewhere inside."""
    problems: list[Problem] = []
    for param in loaded.module["main"].params:
        _tensor(f"input {str(param)!r}", _type(param), problems)
    if problems:
        raise UnsupportedError(
            *(Problem(f"{loaded.origin}: {p.where}", p.what, p.advice) for p in problems)
        )


def _planned(tvm: Any, target: Any, module: Any) -> Any:
    passes = tvm.relax.transform
    names = (
        "LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR",
        "RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite",
        "StaticPlanBlockMemory",
    )  # fmt: skip
    with target:
        return tvm.transform.Sequential([getattr(passes, n)() for n in names])(module)


def _kernels(tvm: Any, target: Any, module: Any, name: str) -> tuple[str, tuple[str, ...]]:
    tir = importlib.import_module("tvm.tirx")
    s_tir = importlib.import_module("tvm.s_tir").transform
    functions = {
        gv.name_hint: f.with_attr("global_symbol", f"tvmgen_{name}_{gv.name_hint}")
        for gv, f in module.functions.items()
        if isinstance(f, tir.PrimFunc)
    }
    low = tir.transform.BindTarget(target.with_host(target))(tvm.IRModule(functions))
    low = tvm.transform.Sequential(
        [
            *(getattr(s_tir, n)() for n in (
                "CanonicalizeLoop", "LowerInitBlock", "PlanAndUpdateBufferAllocationLocation",
                "ConvertBlocksToOpaque", "CompactBufferAllocation", "LowerMatchBuffer",
                "StmtSimplify", "LowerOpaqueBlock",
            )),
            tir.transform.FlattenBuffer(), tir.transform.NarrowDataType(32),
            tir.transform.VectorizeLoop(False), tir.transform.StorageRewrite(),
            tir.transform.UnrollLoop(), tir.transform.StmtSimplify(), tir.transform.RemoveNoOp(),
            s_tir.RewriteUnsafeSelect(),
        ]
    )(low)  # fmt: skip
    low = tvm.IRModule({gv.name_hint: _unpacked(tir, f) for gv, f in low.functions.items()})
    low = tir.transform.LowerIntrin()(low)
    text = tvm.get_global_func("target.build.c")(low, target).inspect_source()
    text = re.sub(
        r'#define TVM_EXPORTS\n(?:#include "tvm/[^\n]*\n)+', "#include <stdint.h>\n", text
    )
    text = re.sub(
        r"void\* __tvm_ffi__library_ctx = NULL;\n",
        "#ifndef TVM_DLL\n#define TVM_DLL\n#endif\n",
        text,
    )
    prototypes = tuple(re.findall(r"^TVM_DLL (void tvmgen_\w+\([^)]*\);)$", text, re.M))
    if len(prototypes) != len(functions) or "__tvm_ffi" in text:
        raise FormatError(
            Problem(
                "TVM's C code generator",
                f"{len(prototypes)} of {len(functions)} kernels have the expected form",
                f"tvm_export is written for apache-tvm {VERSION}, this is {tvm.__version__}",
            )
        )
    return text, prototypes


def _unpacked(tir: Any, function: Any) -> Any:
    """Turns buffer parameters into typed data pointers."""
    buffers = importlib.import_module("tvm.tirx.buffer")
    params, body = [], function.body
    for param in function.params:
        if buffers.is_buffer_var(param):
            # The name is an input's, and C's code generator prints it as it is.
            pointer = tir.Var(_word(param.name) + "_ptr", buffers.buffer_data_pointer_type(param))
            body = tir.SeqStmt([tir.DeclBuffer(param, data=pointer), body])
            params.append(pointer)
        else:
            params.append(param)
    return tir.PrimFunc(params, body, attrs=function.attrs)


def _tensor(name: str, kind: Any, problems: list[Problem]) -> TensorPlan:
    dtype = str(kind.dtype)
    try:
        shape = tuple(int(d) for d in kind.shape.values)
    except (AttributeError, TypeError, ValueError):
        sizes = getattr(getattr(kind, "shape", None), "values", None)
        shown = "of unknown rank" if sizes is None else f"({', '.join(map(_size, sizes))})"
        problems.append(Problem(name, f"shape {shown} is not static", _STATIC))
        shape = ()
    if dtype not in DTYPES:
        problems.append(Problem(name, f"dtype {dtype}; supported are {', '.join(sorted(DTYPES))}"))
        dtype = "uint8"
    return TensorPlan(name, dtype, shape)


def _size(dimension: Any) -> str:
    """Returns a number, or the name of a size that TVM does not know."""
    return str(getattr(dimension, "value", dimension))


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _identifier(name: str, taken: set[str]) -> str:
    text = _word(name) or "tensor"
    # What TensorFlow adds to a name in a TFLite file.
    text = re.sub(r"^serving_default_(.+)_0$", r"\1", text)
    text = re.sub(r"^(?:Stateful)?PartitionedCall(?:_[0-9]+)?_[0-9]+$", "output", text)
    text = f"t_{text}" if text[0].isdigit() else text
    while text in taken | C_KEYWORDS | _C_MACROS:
        text += "_"
    taken.add(text)
    return text


def _type(value: Any) -> Any:
    return value.ty if hasattr(value, "ty") else value.struct_info


def _walk(
    tvm: Any,
    module: Any,
    name: str,
    kernels: str,
    prototypes: tuple[str, ...],
    output_names: tuple[str, ...],
) -> Plan:
    main = module["main"]
    bindings = [b for block in main.body.blocks for b in block.bindings]
    problems: list[Problem] = []
    taken: set[str] = set()
    inputs = [_tensor(_identifier(str(p.name), taken), _type(p), problems) for p in main.params]
    taken = set()
    values: dict[Any, Any] = {b.var: b.value for b in bindings}

    def root(var: Any) -> Any:
        while True:
            value: Any = values.get(var)
            if type(value).__name__ in ("Var", "DataflowVar"):
                var = value
            elif getattr(getattr(value, "op", None), "name", "") in _VIEWS:
                var = value.args[0]
            else:
                return var

    result = root(main.body.body)
    value = values.get(result, result)
    returned = list(value.fields) if hasattr(value, "fields") else [main.body.body]
    labels = ["output"] if len(returned) == 1 else [f"output{i}" for i in range(len(returned))]
    if len(output_names) == len(returned):
        labels = [own or label for own, label in zip(output_names, labels, strict=True)]
    outputs = [
        _tensor(_identifier(n, taken), _type(r), problems)
        for n, r in zip(labels, returned, strict=True)
    ]
    result_of: dict[Any, int] = {}
    for index, item in enumerate(returned):
        result_of.setdefault(root(item), index)
    walker = _Walker(name, result_of)
    walker.where.update({p: Place("input", i) for i, p in enumerate(main.params)})
    for binding in bindings:
        walker.step(binding, tvm.ir.Op, problems)
    for index, (item, tensor) in enumerate(zip(returned, outputs, strict=True)):
        source = walker.place(root(item))
        if source != Place("output", index):
            walker.calls.append(Call("", (Place("output", index), source), tensor.size))
    if problems:
        raise UnsupportedError(*problems)
    return Plan(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        constants=walker.constants.content(),
        workspace_size=walker.workspace,
        calls=tuple(walker.calls),
        kernels=kernels,
        prototypes=prototypes,
        producer=str(tvm.__version__),
        script=str(module.script()),
    )


class _Walker:
    """Follows the planned main function and gives every value its place."""

    def __init__(self, name: str, result_of: Mapping[Any, int]) -> None:
        self._name = name
        self._result_of = result_of
        self._storage: dict[Any, int] = {}
        self.where: dict[Any, Place] = {}
        self.constants = ConstantPool()
        self.calls: list[Call] = []
        self.workspace = 0

    def place(self, value: Any) -> Place:
        """Returns where a variable or constant lives."""
        if type(value).__name__ in ("Constant", "GenericConst"):
            data = value.value if hasattr(value, "value") else value.data
            return self.constants.add(data.numpy().tobytes())
        return self.where[value]

    def step(self, binding: Any, operator: Any, problems: list[Problem]) -> None:
        """Handles one binding of the main function."""
        var, value = binding.var, binding.value
        if hasattr(value, "fields"):
            return
        if not hasattr(value, "op"):
            self.where[var] = self.place(value)
            return
        if not isinstance(value.op, operator):
            kernel = f"tvmgen_{self._name}_{value.op.name_hint}"
            self.calls.append(Call(kernel, tuple(self.place(a) for a in value.args)))
            return
        handlers: dict[str, Callable[[Any, Any], None]] = {
            "relax.memory.alloc_storage": self._alloc_storage,
            "relax.memory.alloc_tensor": self._alloc_tensor,
            "relax.builtin.alloc_tensor": self._alloc_result,
        }
        name = value.op.name
        if name in handlers:
            handlers[name](var, value)
        elif name in _VIEWS:
            self.where[var] = self.place(value.args[0])
        elif name not in _NO_CODE:
            problems.append(Problem(f"operator {name}", "is left after lowering; no C for it"))
            self.where[var] = Place("workspace", 0)

    def _reserve(self, size: int) -> int:
        self.workspace = -(-self.workspace // MIN_ALIGNMENT) * MIN_ALIGNMENT
        offset = self.workspace
        self.workspace += size
        return offset

    def _alloc_storage(self, var: Any, value: Any) -> None:
        self._storage[var] = self._reserve(int(value.args[0].values[0]))

    def _alloc_tensor(self, var: Any, value: Any) -> None:
        offset = int(getattr(value.args[1], "value", 0))
        self.where[var] = Place("workspace", self._storage[value.args[0]] + offset)

    def _alloc_result(self, var: Any, value: Any) -> None:
        index = self._result_of.get(var)
        if index is not None:
            self.where[var] = Place("output", index)
            return
        kind = _type(var)
        size = prod(int(d) for d in kind.shape.values) * DTYPES[str(kind.dtype)].bits // 8
        self.where[var] = Place("workspace", self._reserve(size))
