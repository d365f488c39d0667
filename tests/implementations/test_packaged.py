"""Implementations of optional packages, with stand-ins of the same signatures on a CPU that poses as a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from normbench.entrants import Entrant, admit
from normbench.implementations import ALL, NAMES, PACKAGED, Implementation, Setting, by_name, catalog, default_names
from normbench.implementations import liger as liger_kernels
from normbench.inputs import draw
from normbench.optional import OPTIONAL
from normbench.records import CaseResult, Cell, DeviceInfo, DType, Flag, Mode, Status
from tests import stand_ins
from tests.fakes import FakeDevice, fake_sweep, row, turing
from tests.helpers import CPU, EPS, make_cell

H100 = DeviceInfo(kind="cuda", name="NVIDIA H100", slug="h100", memory_bytes=2**36, capability=(9, 0))
HERE = DeviceInfo(kind="cpu", name="Some CPU", slug="some-cpu", memory_bytes=2**33)

TRAINING = (Mode.FORWARD, Mode.BACKWARD, Mode.FORWARD_BACKWARD)
EVERY_MODE = (*TRAINING, Mode.INFERENCE)
SAME = tuple((dtype, dtype) for dtype in DType)
MIXED = ((DType.BF16, DType.FP32), (DType.FP16, DType.FP32))
WITH_FP32 = tuple((dtype, DType.FP32) for dtype in DType)

RUNS: dict[str, tuple[tuple[Mode, ...], tuple[tuple[DType, DType], ...]]] = {
    "liger-layernorm": (EVERY_MODE, (*SAME, *MIXED)),
    "liger-rmsnorm": (EVERY_MODE, (*SAME, *MIXED)),
    "liger-add-rmsnorm": (EVERY_MODE, (*SAME, *MIXED)),
    "quack-layernorm": ((Mode.INFERENCE,), WITH_FP32),
    "quack-rmsnorm": (EVERY_MODE, (*SAME, *MIXED)),
    "quack-add-rmsnorm": (EVERY_MODE, (*SAME, *MIXED)),
    "flashinfer-layernorm": ((Mode.INFERENCE,), ((DType.BF16, DType.FP32),)),
    "flashinfer-rmsnorm": ((Mode.INFERENCE,), SAME),
    "flashinfer-add-rmsnorm": ((Mode.INFERENCE,), SAME),
    "apex-layernorm": (EVERY_MODE, SAME),
    "apex-rmsnorm": (EVERY_MODE, SAME),
    "te-layernorm": (EVERY_MODE, (*SAME, *MIXED)),
    "te-rmsnorm": (EVERY_MODE, (*SAME, *MIXED)),
}
"""In which modes, and with which dtypes of x and of the parameters, each runs."""

every = pytest.mark.parametrize("implementation", PACKAGED, ids=lambda one: one.name)


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in OPTIONAL:
        stand_ins.install(monkeypatch, tmp_path, package)


installed = pytest.mark.usefixtures("_installed")


@pytest.fixture
def _none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.uninstall_all(monkeypatch)


def enter(
    implementation: Implementation, cell: Cell, *, eps: float = EPS, info: DeviceInfo = H100
) -> Entrant | CaseResult:
    return admit(implementation, Setting(cell=cell, eps=eps), draw(cell, 0, CPU), FakeDevice(info=info))


def reason(implementation: Implementation, cell: Cell, info: DeviceInfo = H100) -> str:
    found = enter(implementation, cell, info=info)
    assert isinstance(found, CaseResult), found
    assert found.status is Status.UNSUPPORTED, found
    assert found.reason is not None
    return found.reason


def cells() -> Iterator[tuple[str, Cell]]:
    for name, (modes, dtypes) in RUNS.items():
        for mode in modes:
            for dtype, parameter_dtype in dtypes:
                cell = make_cell(width=96, mode=mode, dtype=dtype, parameter_dtype=parameter_dtype)
                yield name, replace(cell, operation=by_name(name).op.operation)


def test_the_table_here_has_every_packaged_implementation() -> None:
    assert list(RUNS) == [one.name for one in PACKAGED]
    assert {one.package for one in PACKAGED} == set(OPTIONAL)
    assert all(one.package is None for one in ALL)


@installed
@pytest.mark.parametrize(("name", "cell"), list(cells()), ids=str)
def test_it_is_right_wherever_it_runs_with_the_eps_that_it_is_given(name: str, cell: Cell) -> None:
    for eps in (EPS, 0.3):
        found = enter(by_name(name), cell, eps=eps)
        assert isinstance(found, Entrant), found


@installed
@every
@pytest.mark.parametrize("mode", Mode)
def test_everywhere_else_it_says_why_not_before_it_is_built(implementation: Implementation, mode: Mode) -> None:
    modes, dtypes = RUNS[implementation.name]
    for dtype in DType:
        for parameter_dtype in {dtype, DType.FP32}:
            cell = make_cell(mode=mode, dtype=dtype, parameter_dtype=parameter_dtype)
            if mode not in modes or (dtype, parameter_dtype) not in dtypes:
                assert reason(implementation, cell)


@installed
def test_reasons_name_the_limit_and_what_was_asked() -> None:
    assert reason(by_name("flashinfer-rmsnorm"), make_cell()) == "inference only: it has no backward"
    inference = make_cell(mode=Mode.INFERENCE, dtype=DType.BF16)
    assert reason(by_name("quack-layernorm"), inference) == "takes parameters in fp32, not bf16 (--param-dtypes fp32)"
    assert reason(by_name("flashinfer-layernorm"), make_cell(mode=Mode.INFERENCE)) == "takes x in bf16, not fp32"
    mixed = make_cell(dtype=DType.BF16, parameter_dtype=DType.FP32)
    assert reason(by_name("apex-rmsnorm"), mixed) == "takes parameters of x's dtype: bf16, not fp32"


@installed
@pytest.mark.parametrize("dtype", DType)
def test_a_row_that_no_triton_block_holds_is_unsupported_and_the_widest_that_fits_is_not(dtype: DType) -> None:
    """N21: 65,536 elements, whatever their format."""
    for implementation in (liger_kernels.LAYERNORM, liger_kernels.RMSNORM):
        beyond = make_cell(rows=1, width=65_537, dtype=dtype)
        assert reason(implementation, beyond) == "rows of at most 65,536 elements, not 65,537"
        assert isinstance(enter(implementation, replace(beyond, width=65_536)), Entrant)


@installed
def test_quack_takes_even_widths_in_half_precision_and_any_in_float32() -> None:
    odd = make_cell(width=33, dtype=DType.FP16)
    quack = by_name("quack-rmsnorm")
    assert reason(quack, odd) == "copies 32 bits at a time: half precision takes even widths, not 33"
    assert isinstance(enter(quack, make_cell(width=33)), Entrant)
    assert isinstance(enter(quack, make_cell(width=34, dtype=DType.FP16)), Entrant)


@installed
def test_quack_s_backward_takes_float32_rows_of_131072_elements_and_no_more() -> None:
    quack, wide = by_name("quack-rmsnorm"), make_cell(rows=1, width=131_073, mode=Mode.BACKWARD)
    assert reason(quack, wide) == "its backward takes fp32 rows of at most 131,072 elements, not 131,073"
    setting = Setting(cell=replace(wide, width=131_072), eps=EPS)
    assert quack.unsupported(setting, H100) is None
    assert quack.unsupported(replace(setting, cell=replace(wide, mode=Mode.INFERENCE)), H100) is None
    halves = replace(wide, width=131_074, dtype=DType.BF16, parameter_dtype=DType.BF16)
    assert quack.unsupported(replace(setting, cell=halves), H100) is None


@pytest.mark.usefixtures("_none_installed")
@every
def test_one_that_is_not_installed_says_how_to_get_it(implementation: Implementation) -> None:
    package = implementation.package
    assert package is not None
    mode, dtypes = Mode.INFERENCE, RUNS[implementation.name][1][0]
    cell = make_cell(mode=mode, dtype=dtypes[0], parameter_dtype=dtypes[1])
    assert reason(implementation, cell) == f"{package.distribution} is not installed: {package.install}"
    on_cpu = reason(implementation, cell, HERE)
    assert on_cpu.endswith(f" kernels need a GPU; {package.distribution} is not installed: {package.install}")


@installed
def test_an_old_gpu_is_named_with_what_it_lacks() -> None:
    old = turing().info
    assert reason(by_name("quack-rmsnorm"), make_cell(), old) == (
        "CuTe kernels need compute capability 8.0, Tesla T4 has 7.5"
    )
    assert isinstance(enter(by_name("flashinfer-rmsnorm"), make_cell(mode=Mode.INFERENCE), info=old), Entrant)


@installed
@every
def test_on_a_cpu_none_of_them_runs(implementation: Implementation) -> None:
    for mode in Mode:
        assert "kernels need a GPU" in reason(implementation, make_cell(mode=mode), HERE)


@installed
def test_who_names_nobody_gets_those_that_are_here() -> None:
    assert default_names(catalog().names, H100) == catalog().names
    assert default_names(catalog().names, HERE) == NAMES
    without = tuple(name for name in catalog().names if not name.startswith(("quack", "te-")))
    assert default_names(catalog().names, turing().info) == without


@pytest.mark.usefixtures("_none_installed")
def test_packages_that_are_not_installed_clutter_no_run_that_names_nobody() -> None:
    assert default_names(catalog().names, H100) == NAMES


def test_a_package_that_cannot_be_imported_has_failed_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "flashinfer" / "norm").mkdir(parents=True)
    (tmp_path / "flashinfer" / "__init__.py").write_text("raise ImportError('libcudart.so.13: no such file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    found = enter(by_name("flashinfer-rmsnorm"), make_cell(mode=Mode.INFERENCE))

    assert isinstance(found, CaseResult)
    assert (found.status, found.reason) == (Status.FAILED, "ImportError: libcudart.so.13: no such file")


@installed
def test_those_that_write_into_what_they_are_given_are_flagged_in_place_where_they_do() -> None:
    for name, cell in cells():
        found = enter(by_name(name), cell)
        assert isinstance(found, Entrant)
        is_liger = name in ("liger-rmsnorm", "liger-add-rmsnorm")
        in_place = name == "flashinfer-add-rmsnorm" or (is_liger and cell.mode.differentiates)
        assert (Flag.IN_PLACE in found.admission.flags) is in_place, (name, cell.mode)


@installed
@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_liger_s_backward_is_caught_where_it_does_not_say_that_it_writes_into_dy(mode: Mode) -> None:
    silent = replace(liger_kernels.RMSNORM, mutates=False)
    found = enter(silent, make_cell(mode=mode))

    assert isinstance(found, CaseResult)
    assert (found.status, found.reason) == (Status.INCORRECT, "wrote into dy without declaring it")
    assert isinstance(enter(replace(silent, mutates=True), make_cell(mode=mode)), Entrant)
    assert isinstance(enter(silent, make_cell(mode=Mode.FORWARD)), Entrant)


@installed
@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_liger_s_backward_leaves_everybody_else_s_dy_alone(mode: Mode) -> None:
    gpu = replace(liger_kernels.RMSNORM, unsupported=lambda *_: None)
    first, last = (replace(by_name("nn-rmsnorm"), name=name) for name in ("nn-rmsnorm", "nn-rmsnorm-too"))
    (records,) = fake_sweep((by_name("copy"), first, gpu, last, by_name("nn-layernorm")), modes=(mode,)).run()

    assert {result.status for result in records.results} == {Status.OK}, [r.reason for r in records.results]
    assert Flag.IN_PLACE in row(records, "liger-rmsnorm").flags
    assert all(Flag.IN_PLACE not in row(records, one.name).flags for one in (first, last))


@installed
@pytest.mark.parametrize("name", ["te-layernorm", "te-rmsnorm"])
@pytest.mark.parametrize("parameters", [DType.BF16, DType.FP32])
def test_transformer_engine_answers_in_its_parameters_dtype(name: str, parameters: DType) -> None:
    found = enter(by_name(name), make_cell(dtype=DType.BF16, parameter_dtype=parameters))

    assert isinstance(found, Entrant)
    assert found.admission.accuracy.out_dtype is parameters


@installed
@pytest.mark.parametrize("name", ["apex-layernorm", "te-layernorm"])
def test_a_module_s_parameters_are_the_placement_s_own_buffers(name: str) -> None:
    gain, bias = (torch.nn.Parameter(torch.randn(8)) for _ in range(2))
    module = by_name(name).build(Setting(cell=make_cell(width=8), eps=EPS))(gain, bias)

    assert isinstance(module, torch.nn.Module)
    assert {key: value.data_ptr() for key, value in module.named_parameters()} == {
        "weight": gain.data_ptr(),
        "bias": bias.data_ptr(),
    }
