from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import grades
from normbench.records import ImplementationInfo, Op, Run, RunHeader, Source
from normbench.reporters import brought, checks_markdown, differences, document, html, markdown
from tests.checked import make_check_run
from tests.runs import make_run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = Source(file="kernels/rms.py", line=12, commit=COMMIT, digest="ab" * 32)
MINE = ImplementationInfo(name="mine", op=Op.RMSNORM, provider="mine", summary="RMSNorm in one pass", source=SOURCE)


def header_with(info: ImplementationInfo) -> RunHeader:
    header = make_run().header
    *others, last = header.implementations
    return replace(header, implementations=(*others, replace(info, name=last.name)))


def run_with(info: ImplementationInfo) -> Run:
    return replace(make_run(), header=header_with(info))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (SOURCE, "kernels/rms.py:12 at commit 0123456789"),
        (replace(SOURCE, has_changes=True), "kernels/rms.py:12 at commit 0123456789, with uncommitted changes"),
        (replace(SOURCE, line=None), "kernels/rms.py at commit 0123456789"),
        (replace(SOURCE, commit=None), "kernels/rms.py:12"),
        (Source(file="kernels.rms", line=3, package="kernels 1.2"), "kernels.rms:3 of kernels 1.2"),
        (Source(file="kernels.rms"), "kernels.rms"),
    ],
)
def test_a_source_says_file_line_package_and_commit_as_far_as_they_are_known(source: Source, said: str) -> None:
    assert str(source) == said


def test_there_is_a_row_for_what_was_brought_and_none_for_what_is_built_in() -> None:
    built_in = ImplementationInfo(name="nn-rmsnorm", op=Op.RMSNORM, provider="nn", summary="torch.nn.RMSNorm")

    assert brought.rows([built_in, MINE]) == (
        ("mine", "RMSNorm in one pass (rmsnorm)", "kernels/rms.py:12 at commit 0123456789"),
    )


def test_what_torch_compile_compiles_is_called_so() -> None:
    ((_name, what, _where),) = brought.rows([replace(MINE, compiled=True)])

    assert what == "RMSNorm in one pass (rmsnorm, compiled by torch.compile)"


def test_every_report_of_a_run_says_whose_code_it_was() -> None:
    run = run_with(MINE)

    assert "| kernels/rms.py:12 at commit 0123456789 |" in markdown.render(run)
    assert "kernels/rms.py:12 at commit 0123456789" in html.render(document.of_run(run), ())


def test_reports_of_built_in_implementations_have_no_such_section() -> None:
    assert "Brought along" not in markdown.render(make_run())


def test_a_check_says_whose_code_it_was() -> None:
    run = make_check_run()
    infos = (*run.header.implementations[:-1], replace(run.header.implementations[-1], source=SOURCE))
    shown = replace(run, header=replace(run.header, implementations=infos))

    assert "| kernels/rms.py:12 at commit 0123456789 |" in checks_markdown.render(grades.of_run(shown))


def test_two_runs_of_other_code_under_one_name_differ_in_it() -> None:
    later = header_with(replace(MINE, source=replace(SOURCE, line=14)))
    (found,) = differences.differences(header_with(MINE), later)

    assert (found.base, found.head) == (
        "kernels/rms.py:12 at commit 0123456789",
        "kernels/rms.py:14 at commit 0123456789",
    )
