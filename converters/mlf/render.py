"""Loads the templates next to this file; undefined names are errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

from tools.codegen.rust import check_one_line

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=check_one_line,
    )


def render(template: str, **values: object) -> str:
    """Returns the text of a template; raises jinja2.UndefinedError for a value it lacks."""
    return _environment().get_template(template).render(**values)


def static_text(name: str) -> str:
    """Returns a file of the template folder as it is."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
