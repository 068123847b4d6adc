"""The machine-readable report of a conversion."""

from __future__ import annotations

from converters.mlf.api import ModelApi, TensorApi
from converters.mlf.convert import Result
from converters.mlf.rules import C_FLAGS


def success_report(result: Result) -> dict[str, object]:
    """Returns what was made, as JSON values: models, files, and how to compile the C."""
    return {
        "ok": True,
        "crate": result.crate.name,
        "models": [_model(m) for m in result.crate.models],
        "files": list(result.output.files),
        "c": {
            "units": list(result.output.units),
            "guards": list(result.output.guards),
            "include": result.output.include,
            "flags": list(C_FLAGS),
            "libraries": list(result.output.libraries),
        },
    }


def _model(api: ModelApi) -> dict[str, object]:
    model = api.model
    return {
        "name": model.name,
        "module": api.module,
        "entry": model.entry.value,
        "producer": model.producer,
        "alignment": model.alignment,
        "inputs": [_tensor(t) for t in api.inputs],
        "outputs": [_tensor(t) for t in api.outputs],
        "pools": [
            {
                "name": p.pool.name,
                "kind": p.pool.kind.value,
                "size": p.pool.size,
                "type": p.type_name,
            }
            for p in api.pools
        ],
        "io_in_pools": api.io_in_pools,
        "devices": [
            {"name": d.device.name, "driver": "rust" if d.generic else "raw"} for d in api.devices
        ],
        "exists_once": api.once,
        "hidden_state": [{"what": s.what, "size": s.size} for s in model.hidden_state],
        "missing_headers": list(model.missing_headers),
    }


def _tensor(tensor: TensorApi) -> dict[str, object]:
    source = tensor.tensor
    return {
        "name": source.name,
        "dtype": source.dtype,
        "size": source.size,
        "shape": list(source.shape) if source.shape is not None else None,
        "type": tensor.type_name,
    }
