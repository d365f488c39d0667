"""Every test in this folder needs a GPU, and is marked and skipped here; ``--rehearse`` runs them without one.

``pytest -m gpu --rehearse tests/gpu`` keeps their code alive where there is no GPU. It shows nothing about any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from normbench.clock import CudaEventClock
from normbench.device import CudaDevice, detect, make_flush
from normbench.gpu_acceptance.tested import COLLECTED
from tests.gpu.figures import Figures
from tests.gpu.rehearsal import NAME, RehearsalDevice
from tests.gpu.sizes import REAL, REHEARSAL, Sizes

FOLDER = Path(__file__).parent
FIRST = ("test_device_time", "test_do_bench", "test_stand_in", "test_out_of_memory", "test_cheats")
"""The files that run first, since time on a GPU may end before all has run."""
ONLY_REAL = "needs_the_device"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu", default="cuda:0", help="the GPU whose tests are run, as --device names it")
    parser.addoption("--rehearse", action="store_true", help="run the tests of a GPU on the CPU: no figure counts")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{ONLY_REAL}(why): not even rehearsed without a GPU")


def is_rehearsal(config: pytest.Config) -> bool:
    """Whether no GPU is used; the option is unknown where pytest met this folder late."""
    return bool(config.getoption("--rehearse", default=False))


def pytest_report_header(config: pytest.Config) -> str | None:
    return NAME if is_rehearsal(config) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if is_rehearsal(config):
        terminalreporter.write_line(NAME)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = [at for at, item in enumerate(items) if FOLDER in item.path.parents]
    for at, item in zip(places, sorted((items[at] for at in places), key=_turn), strict=True):
        items[at] = item
        item.add_marker(pytest.mark.gpu)
        why = _why_skipped(item, config)
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))


def _turn(item: pytest.Item) -> int:
    return FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST)


def _why_skipped(item: pytest.Item, config: pytest.Config) -> str | None:
    if not is_rehearsal(config):
        return None if torch.cuda.is_available() else "needs a CUDA device"
    only_real = item.get_closest_marker(ONLY_REAL)
    return None if only_real is None else f"{NAME}, and this needs {only_real.args[0]}"


@pytest.fixture(scope="session", autouse=True)
def collected(request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]) -> None:
    """Tell how many tests there are of each file, for who reads how many were reached."""
    if not is_rehearsal(request.config):
        here = Counter(item.path.stem for item in request.session.items if FOLDER in item.path.parents)
        for module, count in here.items():
            record_testsuite_property(f"{COLLECTED}{module}", count)


@pytest.fixture(scope="session")
def sizes(request: pytest.FixtureRequest) -> Sizes:
    return REHEARSAL if is_rehearsal(request.config) else REAL


@pytest.fixture(scope="session")
def gpu(request: pytest.FixtureRequest) -> CudaDevice:
    if is_rehearsal(request.config):
        return RehearsalDevice()
    found = detect(request.config.getoption("--gpu", default="cuda:0"))
    assert isinstance(found, CudaDevice), "a GPU, on which torch computes from now on"
    return found


@pytest.fixture(scope="session")
def clock(gpu: CudaDevice) -> CudaEventClock:
    return CudaEventClock(gpu.cuda, flush=make_flush(gpu))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    return Figures(None if is_rehearsal(request.config) else request.getfixturevalue("record_property"))
