"""What a crate can't have whose inputs are text or whose dimensions are open."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.emit.options import Options, Profile
from converters.tf.ir.fixed import counted_dims, multiples, open_dims
from converters.tf.ir.longest import longest_dims
from tools.codegen.conversion import Problem


def text_problem(graph: ir.Graph, options: Options) -> Problem | None:
    """Returns what a crate without std can't do with the model's text."""
    written = [port.name for port in graph.outputs if port.value.dtype is ir.DType.STR]
    if written and options.profile is Profile.NO_STD:
        what = f"a crate without std has no strings, and the output {written[0]} is text"
        return Problem("--profile=no_std", what, "end the model before it, at numbers or words")
    read = [port.name for port in graph.inputs if port.dtype is ir.DType.STR]
    if not read or options.embedded is None:
        return None
    what = f"tensors of tfp-embedded own their elements, and the input {read[0]} borrows its text"
    return Problem("--embedded_from", what, "leave it out")


def open_problem(graph: ir.Graph, options: Options) -> Problem | None:
    """Returns what a crate can't have whose dimensions are open."""
    dims, counts = open_dims(graph), counted_dims(graph)
    bare = options.profile is Profile.NO_STD
    unknown = [name for name, _ in options.most if name not in dims]
    if unknown:
        there = f"there are {', '.join(dims)}" if dims else "it leaves none open"
        return Problem("--max", f"the model has no open dimension {unknown[0]!r}; {there}")
    for name, step in multiples(graph).items():
        most = dict(options.most).get(name, step)
        if most % step:
            what = f"{name} is a multiple of {step}, and {most} is not one"
            return Problem(f"--max {name}={most}", what, f"take {-(-most // step) * step}")
    unbound = [name for name in dims if name not in dict(options.most)]
    names = ", ".join([*(unbound if bare else dims), *counts])
    if not names:
        return None
    advice = sizes_advice(graph)
    if counts:
        advice = "end the model before the values say how large a result is"
    if bare:
        if unbound and not counts:
            advice = f"say how large it may be, such as --max {unbound[0]}=512, or {advice}"
        what = f"a crate without std has fixed memory, and the model leaves {names} open"
        return Problem("--profile=no_std", what, advice)
    if options.binary:
        what = f"confidence levels are for fixed sizes, and the model leaves {names} open"
        return Problem("--binary_classification", what, advice)
    return None


def fixed_sizes(options: Options, web: bool) -> str:
    """Returns why all sizes have to be fixed, whatever the model, or nothing.

    Args:
        options: What the crate is asked to be.
        web: Whether it becomes an npm package.
    """
    if web:
        return "a package has fixed sizes"
    if options.binary:
        return "confidence levels are for fixed sizes"
    if options.profile is Profile.NO_STD and not options.most:
        return "a crate without std has fixed memory, unless --max says how large each size may be"
    return ""


def sizes_advice(graph: ir.Graph) -> str:
    """Returns how the open dimensions of a model are fixed."""
    told = longest_dims(graph)
    given = ["give the sizes with --input_shape"] if set(open_dims(graph)) - set(told) else []
    named = ["give TextVectorization an output_sequence_length"] if told else []
    return ", and ".join([*given, *named])
