"""What measuring a case gives: samples, estimates, a result with its status, comparisons with their outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf, isfinite

from normbench.records.cases import Case, Cell, DType
from normbench.records.profile import MOST_BYTES, CaseProfile, check_bytes


class Status(StrEnum):
    """How a case ended."""

    OK = "ok"
    INCORRECT = "incorrect"
    UNSUPPORTED = "unsupported"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    NOT_RUN = "not_run"

    @property
    def is_final(self) -> bool:
        """Whether measuring again would be a repetition."""
        return self is not Status.NOT_RUN


class Flag(StrEnum):
    """What is odd about a result; it is kept all the same."""

    FEW_SAMPLES = "few_samples"
    DRIFTED = "drifted"
    BIMODAL = "bimodal"
    THROTTLED = "throttled"
    LAUNCH_BOUND = "launch_bound"
    QUEUE_NOT_HELD = "queue_not_held"
    COMPOSITE = "composite"
    VENDORED_QUACK = "vendored_quack"
    COARSE_SUMS = "coarse_sums"
    BUSY_MACHINE = "busy_machine"
    CACHE_RESIDENT = "cache_resident"
    NEAR_CACHE_SIZE = "near_cache_size"
    BELOW_FLOOR = "below_floor"
    EMULATED_DTYPE = "emulated_dtype"
    IN_PLACE = "in_place"
    REUSED_OUTPUT = "reused_output"
    SHARED_INPUTS = "shared_inputs"
    SHARED_DEVICE = "shared_device"
    DIVERGED = "diverged"


class Outcome(StrEnum):
    """What a comparison says of the candidate."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNDECIDED = "undecided"


class Reason(StrEnum):
    """Why a comparison has the outcome it has."""

    INTERVAL_EXCLUDES_1 = "interval_excludes_1"
    INTERVAL_INSIDE_MARGIN = "interval_inside_margin"
    INTERVAL_TOO_WIDE = "interval_too_wide"
    EFFECT_BELOW_MARGIN = "effect_below_margin"
    TOO_FEW_PLACEMENTS = "too_few_placements"
    NO_BASELINE = "no_baseline"
    NO_CANDIDATE = "no_candidate"
    OUT_DTYPE_DIFFERS = "out_dtype_differs"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A positive quantity and its interval; without an interval where there are too few placements."""

    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and not 0 < self.low <= self.value <= self.high:
            raise ValueError(f"not an interval of a positive quantity: {self.low}, {self.value}, {self.high}")
        if not 0 < self.value < inf or (self.high is not None and self.high == inf):
            raise ValueError(f"not a positive quantity: {self.value}, {self.high}")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the device said of itself during a round; None for what it does not say."""

    sm_clock_hz: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sample:
    """``calls`` calls of one implementation, timed together; raw and unrounded."""

    implementation: str
    process: int
    placement: int
    round: int
    position: int
    calls: int
    seconds: float
    clock: str
    reading: Reading | None = None

    @property
    def seconds_per_call(self) -> float:
        """The sample's time for one call."""
        return self.seconds / self.calls


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Where time went, in seconds of wall time.

    Args:
        timed_s: Inside timed calls.
        warming_s: Untimed calls that put the cache into its state, or touch new buffers first.
        preparing_s: The fresh forwards that each call of a backward has outside the clock.
        flushing_s: Emptying the cache before cold samples.
        holding_s: On a GPU everything else in the queue: the spin, fresh forwards, flushes, waiting.
        placing_s: Allocating and filling placements.
        checking_s: Building implementations and comparing their results with the reference.
        compiling_s: torch.compile.
        starting_s: Starting worker processes.
        profiling_s: Profiling.
        elapsed_s: All of it; what the others leave goes into choosing orders, reading clocks, judging, writing.
    """

    timed_s: float = 0.0
    warming_s: float = 0.0
    preparing_s: float = 0.0
    flushing_s: float = 0.0
    holding_s: float = 0.0
    placing_s: float = 0.0
    checking_s: float = 0.0
    compiling_s: float = 0.0
    starting_s: float = 0.0
    profiling_s: float = 0.0
    elapsed_s: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Spent)})

    @property
    def measuring_s(self) -> float:
        """Inside timed calls, and the calls that have to be made for them."""
        return self.timed_s + self.warming_s + self.preparing_s + self.holding_s


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How far the result is from the float64 reference.

    Args:
        max_abs_error: The largest absolute error over all outputs and gradients.
        max_rel_error: The largest error relative to the terms that were summed up to the element.
        out_dtype: The dtype of y, in a backward of the y it starts from; None for one like float64.
    """

    max_abs_error: float
    max_rel_error: float
    out_dtype: DType | None

    @property
    def is_finite(self) -> bool:
        """Whether both errors are numbers; they are not where there was a NaN or an infinity."""
        return isfinite(self.max_abs_error) and isfinite(self.max_rel_error)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long one call takes, over placements.

    Args:
        time_s: Seconds by the cell's clock (device time on a GPU, wall time on a CPU).
        wall_s: Seconds that an eager loop of calls feels; None where not measured.
        graph_s: Seconds of replaying a captured CUDA graph; None where not asked for or not capturable.
        floor_ratio: Time ÷ the floor's time; None where the floor has no time.
        samples: Samples that ``time_s`` rests on.
        placements: Placements that ``time_s`` rests on.
        processes: Processes that the placements were spread over.
        throttled_samples: Samples of rounds in which the device said that it ran throttled.
        other_cores: Cores that other programs kept busy meanwhile; None where not measured.
    """

    time_s: Estimate
    wall_s: float | None
    floor_ratio: Estimate | None
    samples: int
    placements: int
    graph_s: float | None = None
    processes: int = 1
    throttled_samples: int = 0
    other_cores: float | None = None

    def __post_init__(self) -> None:
        seconds = [value for value in (self.wall_s, self.graph_s) if value is not None]
        if not all(0 < value < inf for value in seconds):
            raise ValueError(f"not times: {seconds}")
        if min(self.samples, self.placements, self.processes) < 1 or not 0 <= self.throttled_samples <= self.samples:
            raise ValueError("a time rests on at least one sample, placement and process, and no more are throttled")
        if max(self.samples, self.placements, self.processes) >= MOST_BYTES:
            raise ValueError("samples, placements and processes are fewer than 2^63")
        if self.other_cores is not None and not 0 <= self.other_cores < inf:
            raise ValueError(f"not a number of cores: {self.other_cores}")


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case's record. A time exists exactly where the result was checked and is right."""

    case: Case
    status: Status
    reason: str | None = None
    timing: Timing | None = None
    accuracy: Accuracy | None = None
    compile_s: float | None = None
    peak_memory_bytes: int | None = None
    saved_bytes: int | None = None
    flags: tuple[Flag, ...] = ()

    def __post_init__(self) -> None:
        ok = self.status is Status.OK
        if ok != (self.timing is not None):
            raise ValueError(f"a time belongs to status ok and to no other, not to {self.status}")
        if ok and self.accuracy is None:
            raise ValueError("nothing is timed that was not checked")
        if ok and not (self.accuracy and self.accuracy.is_finite):
            raise ValueError("what is off by no number is never right")
        if not ok and not self.reason:
            raise ValueError(f"status {self.status} needs a reason")
        if self.compile_s is not None and not 0 <= self.compile_s < inf:
            raise ValueError(f"not a time: {self.compile_s}")
        check_bytes((self.peak_memory_bytes, self.saved_bytes))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A candidate against the baseline of its cell. ``speedup`` is baseline time ÷ candidate time."""

    cell: Cell
    baseline: str
    candidate: str
    speedup: Estimate | None
    outcome: Outcome
    reason: Reason

    def __post_init__(self) -> None:
        decided = self.outcome is not Outcome.UNDECIDED
        if decided and (self.speedup is None or self.speedup.low is None):
            raise ValueError("nothing is decided without an interval")
        if self.baseline == self.candidate:
            raise ValueError("nothing is compared with itself")


class AgainstItself:
    """Something that competed with itself, so that the truth is a ratio of 1; its fields are those of who is one."""

    implementation: str
    ratio: Estimate

    @property
    def least_difference(self) -> float:
        """The interval's end that lies farther from 1, as a relative difference: below it nothing can be told."""
        low, high = self.ratio.low, self.ratio.high
        assert low is not None
        assert high is not None
        return max(high, 1 / low, 1.0) - 1

    @property
    def is_biased(self) -> bool:
        """Whether the interval misses the truth: by chance once in twenty, or since something disturbs one alone."""
        low, high = self.ratio.low, self.ratio.high
        assert low is not None
        assert high is not None
        return not low <= 1 <= high


@dataclass(frozen=True, kw_only=True)
class NoiseFloor(AgainstItself):
    """An A/A test: an implementation against itself, so that the truth is a ratio of 1.

    Args:
        cell: Where.
        implementation: Who competed with itself.
        ratio: What was found, with its interval.
        fresh: Whether the second one had buffers of its own, rather than those of the first.
    """

    cell: Cell
    implementation: str
    ratio: Estimate
    fresh: bool = True

    def __post_init__(self) -> None:
        if self.ratio.low is None:
            raise ValueError("a noise floor rests on an interval")


@dataclass(frozen=True, kw_only=True)
class CellRecords:
    """Everything one cell leaves: the unit that is written, or not, as a whole.

    ``comparisons`` are with the baseline, ``swaps`` those of an RMSNorm with the LayerNorm that it would replace.

    ``traces`` holds packed traces by their names below ``traces/``.
    """

    cell: Cell
    results: tuple[CaseResult, ...]
    comparisons: tuple[Comparison, ...]
    samples: tuple[Sample, ...]
    swaps: tuple[Comparison, ...] = ()
    profiles: tuple[CaseProfile, ...] = ()
    traces: Mapping[str, bytes] = field(default_factory=dict)
    noise: NoiseFloor | None = None
    spent: Spent = field(default_factory=Spent)
