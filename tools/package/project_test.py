import pytest

from tools.package import project, wheel

TEXT = """\
[build-system]
requires = []

[project]
name = "some-thing"
dynamic = ["version"]
description = "A thing."
readme = "README.md"
requires-python = ">=3.10"
license = "Apache-2.0"
authors = [{ name = "A" }, { name = "B" }]
keywords = ["k", "l"]
classifiers = ["Typing :: Typed"]
dependencies = ["numpy"]

[project.optional-dependencies]
more = ["x>=1"]

[project.scripts]
run = "a.b:c"

[project.urls]
Source = "over/there"
"""


def described(text: str) -> wheel.Wheel:
    return project.described(text, version="1.2", tag="py3-none-any", readme="# R\n", licences={})


def test_a_project_becomes_metadata() -> None:
    made = described(TEXT)
    assert made.file_name() == "some_thing-1.2-py3-none-any.whl"
    assert made.scripts == {"run": "a.b:c"}
    assert wheel.metadata(made) == (
        "Metadata-Version: 2.4\n"
        "Name: some-thing\n"
        "Version: 1.2\n"
        "Summary: A thing.\n"
        "Author: A, B\n"
        "License-Expression: Apache-2.0\n"
        "Keywords: k,l\n"
        "Classifier: Typing :: Typed\n"
        "Project-URL: Source, over/there\n"
        "Requires-Python: >=3.10\n"
        "Requires-Dist: numpy\n"
        "Requires-Dist: x>=1; extra == 'more'\n"
        "Provides-Extra: more\n"
        "Description-Content-Type: text/markdown\n"
        "\n"
        "# R\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "some-thing"\n', "", "lacks name"),
        ('keywords = ["k", "l"]', 'entry-points = ["k"]', "has entry-points, not known here"),
        ('dynamic = ["version"]', 'dynamic = ["readme"]', "needs dynamic"),
        ("[project]", "[project", "is not in TOML"),
    ],
)
def test_what_is_no_project_says_why(old: str, new: str, said: str) -> None:
    with pytest.raises(wheel.WheelError, match=said):
        described(TEXT.replace(old, new))
