from __future__ import annotations

import os
import warnings
from pathlib import Path
from textwrap import dedent

import pytest

from normbench.implementations.describing import Contents, Description, contents, describe


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "norms.py"


def described(file: Path, source: str, attribute: str = "rms") -> Description:
    file.write_text(dedent(source), encoding="utf-8")
    return describe(file, attribute)


def test_a_function_is_where_its_first_decorator_is_and_what_its_docstring_begins_with(file: Path) -> None:
    source = '''
        import functools

        @functools.cache
        @functools.wraps(len)
        def rms(x):
            """Root mean square.

            More.
            """
    '''
    assert described(file, source) == Description(line=4, summary="Root mean square")


def test_a_class_an_assignment_and_an_import_have_a_line_too(file: Path) -> None:
    source = """
        from kernels import fast as rms
        a, (b, *c) = 1, (2, 3)
        d: int = 4
        e = f = rms
        import pkg.sub, other as g
        for h in range(3): pass
        with open(__file__) as i: pass
        class Rms:
            '''A class'''
    """
    lines = {"rms": 2, "a": 3, "b": 3, "c": 3, "d": 4, "e": 5, "f": 5, "pkg": 6, "g": 6, "h": None, "i": 8, "Rms": 9}
    file.write_text(dedent(source))

    assert {name: describe(file, name).line for name in lines} == {**lines, "h": 7}
    assert describe(file, "Rms").summary == "A class"
    assert describe(file, "rms").summary is None
    assert contents(file) == Contents(names=tuple(lines), is_complete=True)


def test_what_is_only_annotated_or_is_part_of_something_else_is_no_definition(file: Path) -> None:
    file.write_text("later: int\nbox.rms = 1\nbox['rms'] = 2\n")

    assert contents(file) == Contents(names=(), is_complete=True)
    assert describe(file, "rms") == Description()


def test_dots_lead_into_classes(file: Path) -> None:
    source = """
        class Outer:
            class Inner:
                if True:
                    @staticmethod
                    def rms(x):
                        '''Inside'''
        class Other:
            pass
        value = 3
    """
    assert described(file, source, "Outer.Inner.rms") == Description(line=5, summary="Inside")
    assert describe(file, "Other.rms") == describe(file, "value.rms") == describe(file, "none.rms") == Description()


def test_of_several_definitions_the_last_counts(file: Path) -> None:
    assert described(file, "def rms(): 'one'\ndef rms(): 'two'\nclass A: pass\nrms = rms\n").line == 4
    assert described(file, "if x:\n    def rms(): 'one'\ndef rms(): 'two'\n") == Description(line=3, summary="two")
    assert described(file, "def rms(): 'one'\nwith y:\n    def rms(): 'two'\n").line == 3


@pytest.mark.parametrize(
    "source",
    [
        "if x:\n    def rms(): 'one'\nelse:\n    def rms(): 'two'\n",
        "if x:\n    def rms(): 'one'\nelif y:\n    def rms(): 'two'\n",
        "try:\n    from fast import rms\nexcept ImportError:\n    def rms(): 'two'\n",
        "def rms(): 'one'\nif x:\n    def rms(): 'two'\n",
        "match x:\n    case 1:\n        def rms(): 'one'\n    case _:\n        def rms(): 'two'\n",
    ],
)
def test_where_it_depends_on_the_machine_which_one_counts_no_line_is_said(file: Path, source: str) -> None:
    assert described(file, source).line is None


@pytest.mark.parametrize(
    "source",
    [
        "if x:\n    def rms(): 'it'\n",
        "try:\n    def rms(): 'it'\nfinally:\n    pass\n",
        "try:\n    pass\nfinally:\n    def rms(): 'it'\n",
        "try:\n    pass\nexcept E:\n    def rms(): 'it'\n",
        "while x:\n    pass\nelse:\n    def rms(): 'it'\n",
        "with a as b:\n    with c:\n        def rms(): 'it'\n",
        "async def rms(): 'it'\n",
    ],
)
def test_a_definition_is_found_below_other_statements(file: Path, source: str) -> None:
    found = described(file, source)

    assert found.line == source.splitlines().index(next(line for line in source.splitlines() if "rms" in line)) + 1
    assert found.summary == "it"
    assert "rms" in contents(file).names


def test_a_function_inside_another_is_none_of_the_file_s(file: Path) -> None:
    assert described(file, "def make():\n    def rms(): 'no'\n") == Description()
    assert contents(file).names == ("make",)


@pytest.mark.parametrize(
    "source",
    [
        "from kernels import *\n",
        "def __getattr__(name): return 1\n",
        "globals()['rms'] = len\n",
        "import sys\nsetattr(sys.modules[__name__], 'rms', len)\n",
        "exec('rms = len')\n",
        "vars().update(rms=len)\n",
        "def set():\n    global rms\n    rms = len\nset()\n",
    ],
)
def test_a_file_that_may_define_more_than_it_says_is_not_complete(file: Path, source: str) -> None:
    file.write_text(source)

    assert not contents(file).is_complete


def test_an_empty_file_certainly_has_nothing(file: Path) -> None:
    file.touch()

    assert contents(file) == Contents(names=(), is_complete=True)


@pytest.mark.parametrize(
    "text",
    [
        b"def rms(:\n",
        b"\x00\x01\x02",
        b"# coding: no-such-coding\nrms = 1\n",
        b"rms = '\xff\xfe'\n",
        b"x = " + b"(" * 5000,
        b"x = " + b"-" * 100_000 + b"1",
        b"x = 1\n" + b"if x: pass\n" + b"elif x: pass\n" * 20_000,
        b"\x7fELF\x02\x01\x01",
    ],
)
def test_what_is_no_python_says_nothing(file: Path, text: bytes) -> None:
    file.write_bytes(text)

    assert describe(file, "rms") == Description()
    assert contents(file) == Contents()


def test_what_is_not_there_or_no_file_says_nothing(tmp_path: Path) -> None:
    assert describe(tmp_path / "none.py", "rms") == describe(tmp_path, "rms") == Description()
    assert contents(tmp_path) == Contents()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_can_t_be_read_says_nothing(file: Path) -> None:
    file.write_text("rms = 1")
    file.chmod(0)

    assert describe(file, "rms") == Description()


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfdef rms(): 'Gr\xc3\xb6\xc3\x9fe'\n",
        "# -*- coding: latin-1 -*-\ndef rms(): 'Größe'\n".encode("latin-1"),
        "# vim: set fileencoding=utf-16 :\ndef rms(): 'Größe'\n".replace("utf-16", "cp1252").encode("cp1252"),
        "def rms(): 'Größe'\r\n".encode(),
    ],
)
def test_codings_are_those_that_python_knows(file: Path, text: bytes) -> None:
    file.write_bytes(text)

    assert describe(file, "rms").summary == "Größe"


def test_a_huge_file_is_read(file: Path) -> None:
    file.write_text("".join(f"def f{n}(): return {n}\n" for n in range(30_000)) + "def rms(): 'last'\n")

    assert describe(file, "rms") == Description(line=30_001, summary="last")


def test_a_long_docstring_is_cut_and_an_empty_one_is_none(file: Path) -> None:
    assert len(described(file, f"def rms(): '{'x' * 500}'").summary or "") == 120
    assert described(file, "def rms(): ''").summary is None


def test_nothing_in_a_docstring_acts_on_a_terminal(file: Path) -> None:
    assert described(file, "def rms(): 'red \\x1b[31m \\u202e'").summary == r"red \x1b[31m \u202e"


def test_nothing_is_warned_of_that_importing_will_warn_of(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert described(file, r"def rms(): return '\d' is 1").line == 1


COMPILED = [
    "@torch.compile\ndef rms(x): return x\n",
    "@torch.compile(dynamic=False, fullgraph=True)\ndef rms(x): return x\n",
    "@torch.compile(disable=False)\ndef rms(x): return x\n",
    "rms = torch.compile(len)\n",
    "rms: object = torch.compile(len, mode='max-autotune')\n",
    "class rms:\n    @torch.compile\n    def forward(self, x): return x\n",
    "class rms:\n    def __init__(self):\n        self.f = torch.compile(self.g)\n",
    "def rms(dim):\n    return torch.compile(Norm(dim))\n",
    "import functools\n@functools.partial(torch.compile, dynamic=True)\ndef rms(x): return x\n",
    "import torch as th\n@th.compile\ndef rms(x): return x\n",
    "from torch import compile\n@compile\ndef rms(x): return x\n",
    "from torch import compile as fast\nrms = fast(len)\n",
    "rms = " + "1 + " * 900 + "torch.compile\n",
]
NOT_COMPILED = [
    "def rms(x): return x\nother = torch.compile(rms)\n",
    "rms = compile('1', '', 'eval')\n",
    "import re\nrms = re.compile('x')\n",
    "@torch.compiler.disable\ndef rms(x): return x\n",
    "@torch.compile(disable=True)\ndef rms(x): return x\n",
    "def rms(x, fast=False):\n    if fast:\n        return torch.compile(len)(x)\n    return x\n",
    "class rms:\n    def __init__(self, fast=False):\n        self.f = torch.compile(len) if fast else len\n",
    "def rms(x):\n    'As torch.compile would.'\n",
]


@pytest.mark.parametrize("source", COMPILED)
def test_what_calls_torch_compile_is_compiled(file: Path, source: str) -> None:
    assert described(file, source).compiled


@pytest.mark.parametrize("source", NOT_COMPILED)
def test_what_may_not_come_to_it_is_not(file: Path, source: str) -> None:
    found = described(file, source)

    assert found.line is not None
    assert not found.compiled
