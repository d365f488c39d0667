"""Implementations that are wrong, each in its own way, though a first look finds right values: what guards are for.

Each is an RMSNorm unless told, computes by torch ops alone and so runs on any device. Counters live in the build, so
that each cell and process begins anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import torch

from normbench.implementations import Bind, Forward, Implementation, Setting, eager
from normbench.records import Mode, Op

LATE_S = 0.03
CHECKED_CALLS = 30
"""More calls than any check makes before timing, and fewer than timing makes."""
CHECKED_BINDS = 5
"""More bindings than any check needs before timing, and fewer than there are placements after it."""

EVERYWHERE = tuple(Mode)
FORWARD = (Mode.FORWARD, Mode.INFERENCE, Mode.FORWARD_BACKWARD)
BACKWARD = (Mode.BACKWARD, Mode.FORWARD_BACKWARD)

Norm = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""x and gain to y."""


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """An implementation that must be caught.

    Args:
        implementation: What it is.
        reason: Words that must stand in the reason it is caught with.
        modes: Where it cheats; elsewhere it may be right.
        late: Whether it begins after it was checked, so that only the audit can catch it.
    """

    implementation: Implementation
    reason: str
    modes: tuple[Mode, ...] = EVERYWHERE
    late: bool = False

    @property
    def name(self) -> str:
        return self.implementation.name


def right(x: torch.Tensor, gain: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """The norm as it should be."""
    return eager.rmsnorm(x, gain, None, eps)


def gradients(x: torch.Tensor, gain: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Dx and dgain as they should be."""
    with torch.enable_grad():
        again, weight = x.detach().requires_grad_(), gain.detach().requires_grad_()
        dx, dgain = torch.autograd.grad(right(again, weight), (again, weight), dy)
    return dx, dgain


def built(name: str, make: Callable[[Setting], Norm], **changes: Any) -> Implementation:
    """An implementation whose norm is made anew for each cell."""

    def build(setting: Setting) -> Bind:
        norm = make(setting)

        def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
            assert gain is not None
            return lambda x: norm(x, gain)

        return bind

    fields: dict[str, Any] = {"op": Op.RMSNORM, "provider": "cheat", "summary": name.replace("-", " ")}
    return Implementation(name=f"cheat-{name}", build=build, **{**fields, **changes})


def with_gradients(
    forward: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    backward: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> Norm:
    """A norm with a forward and a backward of its own."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, gain)
            return forward(x, gain)

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return backward(*ctx.saved_tensors, dy)

    return lambda x, gain: Own.apply(x, gain)  # type: ignore[no-untyped-call,no-any-return]


def forward_only(y_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Norm:
    """A norm that computes y in its own way, and gradients as it should."""
    return with_gradients(y_of, gradients)


def backward_only(
    gradients_of: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> Norm:
    """A norm that computes y as it should, and gradients in its own way."""
    return with_gradients(right, gradients_of)


Outputs = tuple[torch.Tensor, ...]
Compute = Callable[[], Outputs]
"""Computes y, or dx and dgain, as it should."""
Trick = Callable[[Outputs, Compute], Outputs]
"""What is returned instead of what ``Compute`` gives, told the inputs."""


def everywhere(name: str, reason: str, make: Callable[[], Trick], *, late: bool = False) -> tuple[Cheat, Cheat]:
    """A trick played on y, and the same on the gradients; ``late``: only after some calls done right."""

    def trick() -> Trick:
        played, calls = make(), count()

        def late_trick(inputs: Outputs, compute: Compute) -> Outputs:
            return compute() if next(calls) < CHECKED_CALLS else played(inputs, compute)

        return late_trick if late else played

    def on_y(_setting: Setting) -> Norm:
        play = trick()
        return forward_only(lambda x, gain: play((x, gain), lambda: (right(x, gain),))[0])

    def on_gradients(_setting: Setting) -> Norm:
        play = trick()

        def backward(x: torch.Tensor, gain: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            dx, dgain = play((x, gain, dy), lambda: gradients(x, gain, dy))
            return dx, dgain

        return backward_only(backward)

    prefix = "late-" if late else ""
    return (
        Cheat(implementation=built(f"{prefix}{name}-y", on_y), reason=reason, modes=FORWARD, late=late),
        Cheat(
            implementation=built(f"{prefix}{name}-gradients", on_gradients), reason=reason, modes=BACKWARD, late=late
        ),
    )


def _identity(tensors: Outputs) -> tuple[object, ...]:
    return tuple((t.data_ptr(), t._version, t.shape) for t in tensors)


def kept() -> Trick:
    """Returns the very result that it returned for the same tensors before, which nobody has written into by name."""
    results: dict[object, Outputs] = {}

    def play(inputs: Outputs, compute: Compute) -> Outputs:
        key = _identity(inputs)
        if key not in results:
            results[key] = compute()
        return tuple(result.view_as(result) for result in results[key])

    return play


def copied() -> Trick:
    """The same in memory of its own, so that nobody sees it by the addresses."""
    play = kept()
    return lambda inputs, compute: tuple(result.clone() for result in play(inputs, compute))


def known_by_corners() -> Trick:
    """Knows inputs again by their first and last elements, whatever lies between."""
    results: dict[object, Outputs] = {}

    def play(inputs: Outputs, compute: Compute) -> Outputs:
        key = tuple(float(t.flatten()[at]) for t in inputs for at in (0, -1))
        if key not in results:
            results[key] = compute()
        return tuple(result.clone() for result in results[key])

    return play


def ring(size: int) -> Callable[[], Trick]:
    """Computes, and writes the results into one of ``size`` buffers that it keeps."""

    def make() -> Trick:
        buffers: dict[tuple[int, int], Outputs] = {}
        turns: dict[int, Iterator[int]] = {}

        def play(inputs: Outputs, compute: Compute) -> Outputs:
            found = compute()
            where = inputs[0].data_ptr()
            key = (next(turns.setdefault(where, count())) % size, where)
            if key not in buffers:
                buffers[key] = tuple(torch.empty_like(tensor) for tensor in found)
            return tuple(
                buffer.copy_(tensor).view_as(tensor) for buffer, tensor in zip(buffers[key], found, strict=True)
            )

        return play

    return make


def in_a_thread() -> Trick:
    """Leaves the work to a thread and returns before it is done."""

    def play(_inputs: Outputs, compute: Compute) -> Outputs:
        right_ones = compute()
        results = tuple(torch.empty_like(tensor) for tensor in right_ones)

        def work() -> None:
            time.sleep(LATE_S)
            with torch.no_grad():
                for result, tensor in zip(results, right_ones, strict=True):
                    result.copy_(tensor)

        threading.Thread(target=work).start()
        return results

    return play


def in_another_stream() -> Trick:
    """Leaves the work to another stream of the GPU, which waits for this one while nobody waits for that."""
    streams: list[torch.cuda.Stream] = []

    def play(_inputs: Outputs, compute: Compute) -> Outputs:
        if not streams:
            streams.append(torch.cuda.Stream())
        streams[0].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            return compute()

    return play


def never() -> Trick:
    """Computes nothing at all: returns whatever lies in the memory that it is given."""
    shapes: list[Outputs] = []

    def play(_inputs: Outputs, compute: Compute) -> Outputs:
        if not shapes:
            shapes.append(compute())
        return tuple(torch.empty_like(tensor) for tensor in shapes[0])

    return play


def first_rows() -> Trick:
    """Right in the first half of the rows, and what it was before in the others."""
    last: list[Outputs] = []

    def play(_inputs: Outputs, compute: Compute) -> Outputs:
        found = compute()
        half = found[0].shape[0] // 2
        results = tuple(tensor.clone() for tensor in found)
        if last and half:
            results[0][half:] = last[0][0][half:]
        last[:] = last or [found]
        return results

    return play


def every(size: int) -> Callable[[], Trick]:
    """Wrong in every so-manieth call."""

    def make() -> Trick:
        turns = count(1)

        def play(_inputs: Outputs, compute: Compute) -> Outputs:
            factor = 1 if next(turns) % size else 2
            return tuple(tensor * factor for tensor in compute())

        return play

    return make


def with_one(value: float) -> Callable[[], Trick]:
    """Right but for one element."""

    def make() -> Trick:
        def play(_inputs: Outputs, compute: Compute) -> Outputs:
            found = tuple(tensor.clone() for tensor in compute())
            for tensor in found:
                tensor.flatten()[-1:].fill_(value)
            return found

        return play

    return make


def writing_into(which: int, value: float = 0.0) -> Callable[[], Trick]:
    """Right, and leaves something else in the input of this number: x, gain, dy."""

    def make() -> Trick:
        def play(inputs: Outputs, compute: Compute) -> Outputs:
            found = compute()
            inputs[which].data.fill_(value)
            return found

        return play

    return make


def raising_later() -> Trick:
    """Raises an error."""

    def play(_inputs: Outputs, _compute: Compute) -> Outputs:
        raise RuntimeError("worked well so far")

    return play


def changing(change: Callable[[], object]) -> Callable[[], Trick]:
    """Right, and changes something of torch for everyone who comes after."""

    def make() -> Trick:
        def play(_inputs: Outputs, compute: Compute) -> Outputs:
            found = compute()
            change()
            return found

        return play

    return make


class Lazy(torch.Tensor):
    """A tensor that stands for work which is done when somebody looks."""

    work: Callable[[], torch.Tensor]

    @classmethod
    def __torch_function__(cls, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        done = [a.work() if isinstance(a, Lazy) else a for a in args]
        return func(*done, **(kwargs or {}))


def lazily(_setting: Setting) -> Norm:
    """Puts everything off until somebody looks at y."""

    def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            y = torch.empty_like(x).as_subclass(Lazy)
            y.work = lambda: right(x, gain)
        return y

    return norm


def itself(_setting: Setting) -> Bind:
    """The floor that hands x out as y: nothing is moved at all."""
    return lambda _gain, _bias: lambda x: x.view_as(x)


def into_dy(_setting: Setting) -> Bind:
    """The floor that adds into dy and hands that out as dx."""

    class Into(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return torch.add(x, 0)

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            return dy.add_(ctx.saved_tensors[0])

    return lambda _gain, _bias: lambda x: Into.apply(x)  # type: ignore[no-untyped-call]


def while_built(change: Callable[[], object]) -> Callable[[Setting], Norm]:
    """Right, and changes something when it is built."""

    def make(_setting: Setting) -> Norm:
        change()
        return right

    return make


def while_bound(change: Callable[[], object]) -> Callable[[Setting], Bind]:
    """Right, and changes something when it is bound to the parameters of a placement that is timed."""

    def build(_setting: Setting) -> Bind:
        turns = count()

        def bind(gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
            assert gain is not None
            if next(turns) >= CHECKED_BINDS:
                change()
            return lambda x: right(x, gain)

        return bind

    return build


def compiled(name: str, reason: str, then: Callable[[Norm], Norm], **options: Any) -> Cheat:
    """The compiled chain, by a backend that generates no code, until it was checked; then what ``then`` gives."""

    def make(_setting: Setting) -> Norm:
        chain = torch.compile(right, dynamic=False, backend="eager", **options)
        other, calls = then(chain), count()
        return lambda x, gain: (other if next(calls) >= CHECKED_CALLS else chain)(x, gain)

    return Cheat(implementation=built(f"late-{name}", make, compiled=True), reason=reason, late=True)


def recompiling(chain: Norm) -> Norm:
    """Another number for eps in each call, which is another graph."""
    calls = count(1)
    return lambda x, gain: chain(x, gain, 1e-6 * next(calls) / 1000)  # type: ignore[call-arg]


def beyond_the_limit(chain: Norm) -> Norm:
    """Meets the limit of recompilations: from there on dynamo runs the chain eagerly."""

    def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        with torch._dynamo.config.patch(recompile_limit=1):
            return chain(x, gain, 2e-6)  # type: ignore[call-arg]

    return norm


def forced_eager(chain: Norm) -> Norm:
    """Tells torch.compile to let everything run eagerly, while it is called."""

    def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        with torch.compiler.set_stance("force_eager"):
            return chain(x, gain)

    return norm


def forcing_eager(chain: Norm) -> Norm:
    """Tells it once and for all."""

    def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        torch.compiler.set_stance("force_eager")
        return chain(x, gain)

    return norm


NOTHING = "computed nothing for repeated inputs"
SAME_MEMORY = "lies in the same memory in every call"
NOT_DONE = "returned before its work was done"
SETTINGS = "changed torch's settings: "
AFTER = "right before it was timed, not after: "

_GRAD = torch.autograd.grad

_CHANGES: tuple[tuple[str, str, Callable[[], object]], ...] = (
    ("threads", "threads 1 → 2", lambda: torch.set_num_threads(2)),
    ("default-dtype", "default dtype float32 → float64", lambda: torch.set_default_dtype(torch.float64)),
    ("default-device", "default device None → meta", lambda: torch.set_default_device("meta")),
    ("matmul", "float32 matmul precision highest → medium", lambda: torch.set_float32_matmul_precision("medium")),
    ("deterministic", "deterministic algorithms default → warn", lambda: torch.set_deterministic_debug_mode("warn")),
    ("denormals", "flushing denormals off → on", lambda: torch.set_flush_denormal(True)),
    ("anomalies", "anomaly detection off → on", lambda: torch.autograd.set_detect_anomaly(mode=True)),
    ("stance", "torch.compile's stance default → force_eager", lambda: torch.compiler.set_stance("force_eager")),
    (
        "grad-function",
        "torch.autograd.grad replaced",
        lambda: setattr(torch.autograd, "grad", partial(torch.autograd.grad)),
    ),
)

CHEATS: tuple[Cheat, ...] = (
    *everywhere("kept", NOTHING, kept),
    *everywhere("copied", NOTHING, copied),
    *everywhere("known-by-corners", NOTHING, known_by_corners),
    *everywhere("one-buffer", SAME_MEMORY, ring(1)),
    *everywhere("three-buffers", SAME_MEMORY, ring(3)),
    *everywhere("thread", NOT_DONE, in_a_thread),
    *everywhere("never", "", never),
    *everywhere("half", "", first_rows),
    *everywhere("every-other-time", ", not ", every(2)),
    everywhere("every-sixth-time", "changed its result between calls on the same inputs", every(6))[0],
    everywhere("every-fifth-time", "changed its result between calls on the same inputs", every(5))[1],
    *everywhere("nan", "nan, not ", with_one(float("nan"))),
    *everywhere("inf", "inf, not ", with_one(float("inf"))),
    *everywhere("into-x", "wrote into x without declaring it", writing_into(0)),
    *everywhere("into-gain", "wrote into gain without declaring it", writing_into(1, 1.0)),
    everywhere("into-dy", "wrote into dy without declaring it", writing_into(2))[1],
    *everywhere("kept", AFTER, kept, late=True),
    *everywhere("copied", AFTER + NOTHING, copied, late=True),
    *everywhere("known-by-corners", AFTER + NOTHING, known_by_corners, late=True),
    *everywhere("one-buffer", SAME_MEMORY, ring(1), late=True),
    *everywhere("two-buffers", SAME_MEMORY, ring(2), late=True),
    *everywhere("thread", AFTER + NOT_DONE, in_a_thread, late=True),
    *everywhere("never", AFTER, never, late=True),
    *everywhere("half", AFTER, first_rows, late=True),
    *everywhere("every-other-time", AFTER, every(2), late=True),
    *everywhere("nan", AFTER, with_one(float("nan")), late=True),
    *everywhere("inf", AFTER, with_one(float("inf")), late=True),
    *everywhere("into-x", "wrote into x without declaring it, while it was timed", writing_into(0), late=True),
    *everywhere("into-gain", "wrote into gain without declaring it", writing_into(1, 1.0), late=True),
    everywhere("into-dy", "wrote into dy without declaring it, while", writing_into(2), late=True)[1],
    Cheat(
        implementation=built("lazy", lazily),
        reason="y is a Lazy, not a plain tensor",
        modes=(Mode.FORWARD, Mode.INFERENCE),
    ),
    Cheat(
        implementation=replace(built("itself", lazily), op=Op.COPY, build=itself),
        reason="y lies in the memory of x",
        modes=(Mode.FORWARD, Mode.INFERENCE),
    ),
    Cheat(
        implementation=replace(built("adds-into-dy", lazily), op=Op.COPY, build=into_dy),
        reason="wrote into dy without declaring it",
        modes=BACKWARD,
    ),
    *(cheat for name, said, change in _CHANGES for cheat in everywhere(name, SETTINGS + said, changing(change))),
    *(
        cheat
        for name, said, change in _CHANGES
        for cheat in everywhere(name, SETTINGS + said, changing(change), late=True)
    ),
    *(
        Cheat(implementation=built(f"built-{name}", while_built(change)), reason=SETTINGS + said)
        for name, said, change in _CHANGES
    ),
    *(
        Cheat(
            implementation=replace(built(f"late-bound-{name}", lazily), build=while_bound(change)),
            reason=SETTINGS + said,
            late=True,
        )
        for name, said, change in _CHANGES[:2]
    ),
    compiled("recompiles", "torch.compile built another graph inside the timed region", recompiling),
    compiled("limit", "torch.compile fell back to eager inside the timed region", beyond_the_limit),
    compiled("forced-eager", "torch.compile fell back to eager", forced_eager, fullgraph=True),
    compiled("forces-eager", "torch.compile's stance default → force_eager", forcing_eager, fullgraph=True),
    compiled("not-compiled", "torch.compile fell back to eager", lambda _chain: right, fullgraph=True),
)
"""Every cheat that any device can run."""


def _needs_a_gpu(_setting: Setting, device: Any) -> str | None:
    return None if device.kind == "cuda" else "needs a GPU"


ON_A_GPU: tuple[Cheat, ...] = tuple(
    replace(cheat, implementation=replace(cheat.implementation, unsupported=_needs_a_gpu))
    for late in (False, True)
    for cheat in everywhere("stream", NOT_DONE, in_another_stream, late=late)
)
"""Those that need a GPU."""

_WRITERS = ("cheat-into-x-y", "cheat-into-x-gradients", "cheat-into-dy-gradients", "cheat-adds-into-dy")


def declared(mode: Mode) -> tuple[Implementation, ...]:
    """Those that write into x or dy and say so: no cheats. Who spoils the x that its backward needs has none."""
    return tuple(
        replace(cheat.implementation, name=cheat.name.replace("cheat", "own"), mutates=True)
        for cheat in CHEATS
        if cheat.name in _WRITERS and not (cheat.name == "cheat-into-x-y" and mode.differentiates)
    )
