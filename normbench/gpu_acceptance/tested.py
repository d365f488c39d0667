"""What pytest said, read from its JUnit report: outcomes, reasons, and the figures that tests recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree as ET

from normbench.private import scrubbed

COLLECTED = "collected "
"""Begins the name of the property that says how many tests of a module there are."""


class Ended(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Test:
    """One test.

    Args:
        module: Its file's name without folder and ending: ``test_do_bench``.
        name: Its own, with its parameters.
        ended: How.
        reason: Why it failed or was skipped, in a line.
        figures: What it recorded, by name.
    """

    __test__ = False  # it is no test of this project, whatever its name

    module: str
    name: str
    ended: Ended
    reason: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tests:
    """All that ran or were skipped.

    Args:
        tests: In their order.
        collected: How many there were to be, by module; empty where that is not known.
    """

    __test__ = False

    tests: tuple[Test, ...]
    collected: Mapping[str, int] = field(default_factory=dict)

    def of(self, module: str) -> tuple[Test, ...]:
        """Those of one file."""
        return tuple(test for test in self.tests if test.module == module)

    def that(self, ended: Ended) -> tuple[Test, ...]:
        """Those that ended like that."""
        return tuple(test for test in self.tests if test.ended is ended)


def read_tests(path: Path) -> Tests:
    """The tests of a report.

    Raises:
        OSError: There is none.
        ValueError: It is not whole.
    """
    try:
        root = ET.fromstring(path.read_text(encoding="utf-8"))
    except ET.ParseError as error:
        raise ValueError(f"{path.name} is not whole: {error}") from error
    return Tests(tests=tuple(map(_test, root.iter("testcase"))), collected=_collected(root))


def _collected(root: ET.Element) -> dict[str, int]:
    """How many tests there were to be, by module, as the tests' own conftest tells."""
    told = {one.get("name", ""): one.get("value", "") for one in root.iterfind("testsuite/properties/property")}
    return {name.removeprefix(COLLECTED): int(told[name]) for name in told if name.startswith(COLLECTED)}


def _test(case: ET.Element) -> Test:
    found = {Ended.SKIPPED: ("skipped",), Ended.FAILED: ("failure", "error")}  # a failure hides behind nothing
    ended, reason = Ended.PASSED, ""
    for outcome, tags in found.items():
        for element in (case.find(tag) for tag in tags):
            if element is not None:
                ended, reason = outcome, scrubbed(_first_line(element))
    places = (case.get("classname") or case.get("name") or "").split(".")
    return Test(
        module=next((place for place in places if place.startswith("test_")), places[-1]),
        name=case.get("name") or "",
        ended=ended,
        reason=reason,
        figures={one.get("name", ""): one.get("value", "") for one in case.iterfind("properties/property")},
    )


def _first_line(element: ET.Element) -> str:
    return next(iter((element.get("message") or element.text or "").strip().splitlines()), "")
