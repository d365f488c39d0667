from __future__ import annotations

import subprocess
import sys

from normbench.records import Cache, Cell, DType, Mode, Status
from normbench.reporters import plots
from tests.runs import NAMES, TIMES, Times, make_plan, make_run, profiled_run


def test_modes_rows_caches_and_precisions_are_pictures_of_their_own() -> None:
    plan = make_plan(modes=(Mode.FORWARD, Mode.BACKWARD), rows=(32, 48), caches=(Cache.COLD, Cache.WARM))
    parameters = make_plan(parameter_dtypes=(None, DType.BF16), autocasts=(None, DType.BF16))

    assert {name for name in plots.planned(make_run(plan), 99).drawn if name.startswith("time-")} == {
        f"time-{mode}-{rows}rows-{cache}"
        for mode in ("forward", "backward")
        for rows in (32, 48)
        for cache in ("cold", "warm")
    }
    assert {name for name in plots.planned(make_run(parameters), 99).drawn if name.startswith("time-")} == {
        f"time-forward-autocast-{autocast}-parameters-{dtype}"
        for autocast in ("off", "bf16")
        for dtype in ("fp32", "bf16")
    }


def test_speedup_and_time_of_every_set_come_before_any_bandwidth() -> None:
    run = make_run(make_plan(modes=(Mode.FORWARD, Mode.BACKWARD)))

    assert plots.planned(run).drawn == (
        *("speedup-forward", "time-forward", "speedup-backward", "time-backward"),
        *("bandwidth-forward", "bandwidth-backward"),
    )


def test_a_profiles_bytes_come_early_and_its_bandwidth_before_that_of_each_set() -> None:
    assert plots.planned(profiled_run()).drawn == (
        *("speedup-forward", "time-forward", "traffic-forward", "roofline-forward", "bandwidth-forward"),
    )


def test_sets_with_more_times_come_first_and_of_equals_the_larger_tensors() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "copy": Status.FAILED} if cell.rows == 4096 else TIMES

    run = make_run(make_plan(rows=(32, 512, 4096)), times)

    assert plots.planned(run).drawn[:6:2] == (
        *("speedup-forward-512rows", "speedup-forward-32rows", "speedup-forward-4096rows"),
    )


def test_what_is_not_drawn_is_said_to_be_left_out() -> None:
    run = make_run(make_plan(modes=tuple(Mode), rows=(32, 64)))
    planned = plots.planned(run)

    assert len(planned.drawn) == plots.MOST
    assert len(planned.left_out) == 2 * 4 * 3 - plots.MOST
    assert planned.drawn + planned.left_out == plots.planned(run, 99).drawn
    assert plots.planned(run, 99).left_out == ()
    assert plots.planned(run, 0).drawn == ()


def test_nothing_is_planned_of_cells_that_were_not_tried() -> None:
    nobody = dict.fromkeys(NAMES, Status.NOT_RUN)
    plan = make_plan(modes=(Mode.FORWARD, Mode.BACKWARD))
    run = make_run(plan, lambda cell: TIMES if cell.mode is Mode.FORWARD else nobody)

    assert plots.planned(run).drawn == ("speedup-forward", "time-forward", "bandwidth-forward")
    assert plots.planned(make_run(times=nobody)).drawn == ()


def test_planning_does_not_import_matplotlib() -> None:
    code = (
        "import sys; from normbench.reporters import plots; from tests.runs import make_run\n"
        "plots.planned(make_run()); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
