"""Lines by what the tests marked ``gpu`` said; each test holds its limit itself, and these show what it found."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from normbench import units
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.lines import Found, NotShown
from normbench.gpu_acceptance.tested import Ended, Test, Tests
from normbench.reporters.statements import first_few

_SHOWN = 3


def every_test(evidence: Evidence) -> Found:
    """How many passed; which failed, and what was skipped for what reason."""
    tests = _tests(evidence)
    failed, skipped = tests.that(Ended.FAILED), tests.that(Ended.SKIPPED)
    passed = len(tests.that(Ended.PASSED))
    if not passed and not failed:
        raise NotShown("none ran")
    said = [f"{passed} passed", f"{len(failed)} failed{_named(failed)}"]
    if skipped:
        said.append(_reasons(skipped))
    found = Found(figure=", ".join(said), holds=not failed)
    return _of_all(found, len(tests.tests), sum(tests.collected.values()))


def rehearsal(evidence: Evidence) -> str:
    """The same of tests that ran on a stand-in: whether their code works, and nothing of a device."""
    try:
        return f"rehearsed on a stand-in: {every_test(evidence).figure}"
    except NotShown as why:
        return f"rehearsed on a stand-in: {why}"


def off_by(evidence: Evidence, module: str, limit: float) -> Found:
    """The largest relative difference that the tests of a module recorded, and whether all are within the limit."""
    tests, failed = _ran(evidence, module)
    found = [(float(test.figures["off_by"]), test) for test in tests if "off_by" in test.figures]
    if not found:
        if failed:
            return Found(figure=f"no figure: {failed[0].name}: {failed[0].reason}", holds=False)
        raise NotShown("no test recorded a figure")
    beyond = [pair for pair in found if not pair[0] <= limit]  # what is no number is within nothing
    worst, where = max(beyond or found, key=lambda pair: pair[0])
    at = f" ({where.figures['where']})" if "where" in where.figures else ""
    share = units.percent(worst) if isfinite(worst) else str(worst)
    figure = f"{share} at most{at}{_named(failed)}{_skipped(evidence, module)}"
    return _whole(evidence, module, Found(figure=figure, holds=not failed and not beyond))


def all_hold(evidence: Evidence, module: str) -> Found:
    """How many of the tests of a module passed, with the figures that they recorded."""
    tests, failed = _ran(evidence, module)
    figures = [test.figures["figure"] for test in tests if "figure" in test.figures]
    said = f"{len(tests) - len(failed)} of {len(tests)}{_named(failed)}{_skipped(evidence, module)}"
    return _whole(evidence, module, Found(figure="; ".join((said, *figures)), holds=not failed))


def _tests(evidence: Evidence) -> Tests:
    if evidence.tests is None:
        raise NotShown(evidence.unread.get("tests", "the tests did not run"))
    return evidence.tests


def _ran(evidence: Evidence, module: str) -> tuple[tuple[Test, ...], tuple[Test, ...]]:
    """The tests of a module that ran, and those of them that failed."""
    tests = _tests(evidence).of(module)
    ran = tuple(test for test in tests if test.ended is not Ended.SKIPPED)
    if not ran:
        reasons = dict.fromkeys(test.reason for test in tests)
        raise NotShown("; ".join(reasons) or f"no test of {module} was reached")
    return ran, tuple(test for test in ran if test.ended is Ended.FAILED)


def _whole(evidence: Evidence, module: str, found: Found) -> Found:
    """The same where every test of the module was reached, or it fails anyway."""
    tests = _tests(evidence)
    return _of_all(found, len(tests.of(module)), tests.collected.get(module, 0))


def _of_all(found: Found, reached: int, collected: int) -> Found:
    """The same; what holds so far shows nothing where not every test was reached."""
    if found.holds and reached < collected:
        raise NotShown(f"{found.figure}; only {reached} of {collected} tests were reached")
    if found.holds and not collected:
        raise NotShown(f"{found.figure}; of how many tests is not known")
    return found


def _skipped(evidence: Evidence, module: str) -> str:
    skipped = [test for test in _tests(evidence).of(module) if test.ended is Ended.SKIPPED]
    return f"; {_reasons(skipped)}" if skipped else ""


def _reasons(skipped: Sequence[Test]) -> str:
    return f"{len(skipped)} skipped ({_first(list(dict.fromkeys(test.reason for test in skipped)))})"


def _named(tests: Sequence[Test]) -> str:
    """The first of some that failed, in brackets; empty for none."""
    return f" ({_first([f'{test.name}: {test.reason}' for test in tests])})" if tests else ""


def _first(texts: Sequence[str]) -> str:
    """The first of some texts, and how many more there are."""
    return "; ".join(first_few(texts, _SHOWN, "and "))
