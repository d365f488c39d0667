"""What users write, bound to parameters and called: each gives what torch's own norm gives."""
# ruff: noqa: ARG001, ARG002, ARG004, ARG005 - what users write takes more than it uses

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch import Tensor, nn

from normbench.implementations import Setting, eager
from normbench.implementations.adapting import adapted
from normbench.records import DType, Mode, Op
from tests.helpers import make_cell

WIDTH, EPS = 8, 0.25
X = torch.arange(1.0, 25.0).reshape(3, WIDTH) / 10
GAIN = nn.Parameter(torch.linspace(0.5, 2.0, WIDTH))
BIAS = nn.Parameter(torch.linspace(-1.0, 1.0, WIDTH))


def bound(found: object, op: Op = Op.RMSNORM, **cell: Any) -> Any:
    """What is timed."""
    setting = Setting(cell=make_cell(width=WIDTH, **cell), eps=EPS)
    return adapted(found, op, setting)(GAIN, BIAS if op is Op.LAYERNORM else None)


def expected(op: Op) -> Tensor:
    if op is Op.LAYERNORM:
        return F.layer_norm(X, (WIDTH,), GAIN, BIAS, EPS)
    return F.rms_norm(X, (WIDTH,), GAIN, EPS)


def is_right(found: object, op: Op = Op.RMSNORM) -> bool:
    return torch.allclose(bound(found, op)(X), expected(op), atol=1e-6)


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def layer(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return rms(x - x.mean(-1, keepdim=True), weight, eps) + bias


def refusal(found: object, op: Op = Op.RMSNORM) -> str:
    with pytest.raises(TypeError) as caught:
        bound(found, op)
    return str(caught.value)


class AnyArguments:
    """A callable object, and what a decorator without ``functools.wraps`` leaves of a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        x, weight, bias, eps = args
        assert bias is None
        return rms(x, weight, eps, **kwargs)


class Named:
    def __call__(self, x: Tensor, w: Tensor, epsilon: float = 1.0) -> Tensor:
        return rms(x, w, epsilon)


class Autograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, normalized_shape: tuple[int, ...], weight: Tensor, eps: float) -> Tensor:
        assert normalized_shape == (WIDTH,)
        return rms(hidden, weight, eps)


class AutogradApart(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, block: int = 3, weight: Tensor = GAIN, eps: float = 1.0) -> Tensor:
        assert block == 3
        return rms(x, weight, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass


@torch.library.custom_op("normbench_tests::adapted_rms", mutates_args=())
def operator(x: Tensor, weight: Tensor, *, block: int = 3, eps: float = 1.0) -> Tensor:
    return rms(x, weight, eps)


def _scripted(x: Tensor, eps: float, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


with warnings.catch_warnings(action="ignore"):
    scripted = torch.jit.script(_scripted)


def keyword_only(x: Tensor, *, weight: Tensor, bias: Tensor | None = None, eps: float) -> Tensor:
    assert bias is None
    return rms(x, weight, eps)


def all_keywords(*, eps: float, gamma: Tensor, inp: Tensor, **kwargs: Any) -> Tensor:
    assert not kwargs
    return rms(inp, gamma, eps)


def positional_only(x: Tensor, weight: Tensor, eps: float, /) -> Tensor:
    return rms(x, weight, eps)


def rest(x: Tensor, g: Tensor, *args: Any, eps: float) -> Tensor:
    assert not args
    return rms(x, g, eps)


def reversed_order(eps: float, scale: Tensor, tokens: Tensor) -> Tensor:
    return rms(tokens, scale, eps)


def gain_first(weight: Tensor, hidden_states: Tensor, variance_epsilon: float) -> Tensor:
    return rms(hidden_states, weight, variance_epsilon)


def defaults_between(x: Tensor, block: int = 5, weight: Tensor = GAIN, eps: float = 1.0, last: int = 1) -> Tensor:
    assert (block, last) == (5, 1)
    return rms(x, weight, eps)


def whole_name(x: Tensor, normalized_shape: tuple[int, ...], weight: Tensor, eps: float) -> Tensor:
    assert normalized_shape == (WIDTH,)
    return rms(x, weight, eps)


def two_gains(x: Tensor, weight: Tensor, eps: float, scale: Tensor | None = None) -> Tensor:
    assert scale is None
    return rms(x, weight, eps)


def width_of_input(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    return rms(hidden, weight, eps)


FUNCTIONS: list[tuple[object, Op]] = [
    (rms, Op.RMSNORM),
    (layer, Op.LAYERNORM),
    (lambda a, c, d, e: layer(a, c, d, e), Op.LAYERNORM),
    (lambda x, b, w, eps: layer(x, w, b, eps), Op.LAYERNORM),
    (F.layer_norm, Op.LAYERNORM),
    (F.rms_norm, Op.RMSNORM),
    (torch.ops.aten.rms_norm, Op.RMSNORM),
    (torch.ops.aten.layer_norm.default, Op.LAYERNORM),
    (functools.partial(rms, eps=EPS), Op.RMSNORM),
    (functools.partial(whole_name, normalized_shape=(WIDTH,)), Op.RMSNORM),
    (functools.partial(lambda k, x, weight, eps: rms(x, weight, eps), 1), Op.RMSNORM),
    (AnyArguments(), Op.RMSNORM),
    (AnyArguments().__call__, Op.RMSNORM),
    (Named(), Op.RMSNORM),
    (Autograd, Op.RMSNORM),
    (Autograd.apply, Op.RMSNORM),
    (AutogradApart.apply, Op.RMSNORM),
    (operator, Op.RMSNORM),
    (torch.ops.normbench_tests.adapted_rms, Op.RMSNORM),
    (scripted, Op.RMSNORM),
    (torch.compile(reversed_order, backend="eager"), Op.RMSNORM),
    (keyword_only, Op.RMSNORM),
    (all_keywords, Op.RMSNORM),
    (positional_only, Op.RMSNORM),
    (rest, Op.RMSNORM),
    (reversed_order, Op.RMSNORM),
    (gain_first, Op.RMSNORM),
    (defaults_between, Op.RMSNORM),
    (whole_name, Op.RMSNORM),
    (two_gains, Op.RMSNORM),
    (width_of_input, Op.RMSNORM),
    (lambda x, *args: rms(x, args[0], args[2]), Op.RMSNORM),
    (lambda x, weight: rms(x, weight, EPS), Op.RMSNORM),
]


@pytest.mark.parametrize(("function", "op"), FUNCTIONS)
def test_a_function_gets_what_its_parameters_are_called(function: object, op: Op) -> None:
    assert is_right(function, op)


@pytest.mark.parametrize(("name", "op"), [("torch.rms_norm", Op.RMSNORM), ("torch.layer_norm", Op.LAYERNORM)])
def test_what_says_no_parameters_gets_them_in_the_documented_order(name: str, op: Op) -> None:
    function = getattr(torch, name.partition(".")[2])

    with pytest.raises(TypeError, match="normalized_shape"):  # torch's own: it takes another order
        bound(function, op)(X)


@pytest.mark.parametrize(
    ("function", "op", "said"),
    [
        (lambda: None, Op.RMSNORM, "no parameter for x"),
        (lambda weight, eps: None, Op.RMSNORM, "no parameter for x"),
        (lambda x, eps: None, Op.RMSNORM, "no parameter called weight, and rmsnorm has one"),
        (lambda x: None, Op.RMSNORM, "no parameter called weight"),
        (lambda x, weight, eps: None, Op.LAYERNORM, "no parameter called bias, and layernorm has one"),
        (lambda x, weight, eps, rows: None, Op.RMSNORM, "'rows'"),
        (lambda x, weight, eps, *, device: None, Op.RMSNORM, "'device'"),
        (lambda x, weight, scale, eps: None, Op.RMSNORM, "'scale'"),
        (lambda a, c, e: None, Op.RMSNORM, "no parameter called weight"),
        (lambda x, dim, weight, eps: None, Op.RMSNORM, "'dim'"),
    ],
)
def test_a_function_that_does_not_fit_is_refused_and_told_what_does(
    function: Callable[..., Any], op: Op, said: str
) -> None:
    text = refusal(function, op)

    assert said in text
    assert "a function takes x, weight, bias and eps, by these names or in this order" in text


def test_a_method_is_refused_naming_its_class() -> None:
    assert "bring the class" in refusal(Named.__call__)


class Norm(nn.Module):
    """As everybody writes it."""

    def __init__(self, dim: int, eps: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms(x, self.weight, self.eps)


def with_eps(name: str) -> type[nn.Module]:
    """The same, whose eps has another name."""
    made: dict[str, Any] = {}
    exec(f"def init(self, dim, {name}=1.0): Norm.__init__(self, dim, {name})", {"Norm": Norm}, made)
    return type("Other", (Norm,), {"__init__": made["init"]})


@pytest.mark.parametrize(
    "name",
    "eps epsilon variance_epsilon norm_eps layer_norm_eps layer_norm_epsilon rms_norm_eps".split(),  # noqa: SIM905
)
def test_a_class_gets_eps_under_its_name(name: str) -> None:
    assert is_right(with_eps(name))


class Inner(nn.Module):
    """Its parameter lies below, and it has a buffer of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = Norm(width, eps=EPS)
        self.register_buffer("one", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.norm(x) * self.one
        return result


class EpsFirst(Norm):
    def __init__(self, eps: float, hidden_size: int) -> None:
        super().__init__(hidden_size, eps)


class NanoLayerNorm(nn.Module):
    """Its bias has to be asked for, its width has a name of its own."""

    def __init__(self, ndim: int, bias: bool, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(ndim))
        self.beta = nn.Parameter(torch.zeros(ndim)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if self.beta is None:
            return rms(x, self.gamma, self.eps)
        return layer(x, self.gamma, self.beta, self.eps)


class OneRow(Norm):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__(size, eps)
        self.weight = nn.Parameter(torch.ones(1, 1, size))


class TwoNames(Norm):
    """Of one parameter."""

    def __init__(self, n: int, eps: float, device: Any, dtype: Any) -> None:
        super().__init__(n, eps)
        assert (device.type, dtype) == ("cpu", torch.float32)
        self.also = self.weight

    def forward(self, x: Tensor) -> Tensor:
        return rms(x, self.also, self.eps) + 0 * self.weight


class Anything(Norm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, eps=EPS, **kwargs)


class Annotated(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return layer(x, self.a_2, self.b_2, self.eps)


class Listed(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.all = nn.ParameterList([torch.zeros(d)])

    def forward(self, x: Tensor) -> Tensor:
        return rms(x, self.all[0], EPS)


def factory(d_model: int, *, norm_eps: float = 1.0) -> nn.Module:
    return nn.Sequential(Norm(d_model, norm_eps), nn.Identity())


def compiling(dim: int, eps: float) -> Any:
    return torch.compile(Norm(dim, eps), backend="eager")


@torch.compile(backend="eager")
class CompiledClass(Norm):
    """torch.compile changes the class itself."""


MODULES: list[tuple[object, Op]] = [
    (Norm, Op.RMSNORM),
    (nn.RMSNorm, Op.RMSNORM),
    (nn.LayerNorm, Op.LAYERNORM),
    (Inner, Op.RMSNORM),
    (EpsFirst, Op.RMSNORM),
    (NanoLayerNorm, Op.LAYERNORM),
    (NanoLayerNorm, Op.RMSNORM),
    (OneRow, Op.RMSNORM),
    (TwoNames, Op.RMSNORM),
    (Anything, Op.RMSNORM),
    (Annotated, Op.LAYERNORM),
    (Listed, Op.RMSNORM),
    (factory, Op.RMSNORM),
    (compiling, Op.RMSNORM),
    (CompiledClass, Op.RMSNORM),
    (functools.partial(Norm, eps=EPS), Op.RMSNORM),
    (functools.partial(nn.LayerNorm, elementwise_affine=False), Op.LAYERNORM),
]


@pytest.mark.parametrize(("make", "op"), MODULES)
def test_a_class_is_made_of_the_width_and_computes_with_the_run_s_parameters(make: object, op: Op) -> None:
    forward = bound(make, op)
    own = dict(forward.named_parameters())

    assert torch.allclose(forward(X), expected(op), atol=1e-6)
    assert {id(parameter) for parameter in own.values()} == {id(GAIN)} | ({id(BIAS)} if op.has_bias else set())


@pytest.mark.parametrize(
    ("mode", "is_training"), [(Mode.INFERENCE, False), (Mode.FORWARD, True), (Mode.BACKWARD, True)]
)
def test_a_module_is_in_evaluation_mode_where_nothing_is_trained(mode: Mode, *, is_training: bool) -> None:
    assert bound(Norm, mode=mode).training is is_training
    assert bound(Inner, mode=mode).norm.training is is_training


def test_every_placement_has_a_module_of_its_own() -> None:
    bind = adapted(Norm, Op.RMSNORM, Setting(cell=make_cell(width=WIDTH), eps=EPS))

    assert bind(GAIN, None) is not bind(GAIN, None)


def test_what_a_module_needs_beside_its_parameters_is_made_on_the_device() -> None:
    class WithBuffer(Norm):
        def __init__(self, dim: int) -> None:
            super().__init__(dim)
            self.register_buffer("late", torch.ones(dim, device="cpu"))

    setting = Setting(cell=make_cell(width=WIDTH), eps=EPS, device="meta")
    module: Any = adapted(WithBuffer, Op.RMSNORM, setting)(GAIN, None)

    assert module.late.device.type == "meta"


class Scalar(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(()))


class Column(Norm):
    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.weight = nn.Parameter(torch.ones(dim, 1))


class WithConfig(Norm):
    def __init__(self, dim: int, config: object, eps: float) -> None:
        super().__init__(dim, eps)


class Plain:
    def __init__(self, dim: int) -> None:
        pass


class NoWidth(nn.Module):
    def __init__(self, eps: float = 1.0, **kwargs: Any) -> None:
        super().__init__()


class Statistics(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("make", "op", "said"),
    [
        (Norm, Op.LAYERNORM, "its module has the parameters weight; layernorm has weight and bias: is it of another"),
        (Annotated, Op.RMSNORM, "its module has the parameters a_2, b_2; rmsnorm has weight"),
        (Statistics, Op.RMSNORM, "its module has no parameters; rmsnorm has weight"),
        (Scalar, Op.RMSNORM, "its parameter g has the shape (), not that of the width"),
        (Column, Op.RMSNORM, "its parameter weight has the shape (8, 1), not that of the width"),
        (lambda dim: Norm(dim + 1), Op.RMSNORM, "its parameter weight has the shape (9,), not that of the width"),
        (WithConfig, Op.RMSNORM, "nothing is known of its parameter 'config': a class gets the width, and eps"),
        (NoWidth, Op.RMSNORM, "it takes no width: a class gets the width, and eps"),
        (Plain, Op.RMSNORM, "it makes a Plain, not a torch.nn.Module"),
        (int, Op.RMSNORM, "it makes a int, not a torch.nn.Module"),
        (lambda dim: None, Op.RMSNORM, "it makes a NoneType, not a torch.nn.Module"),
    ],
)
def test_a_class_that_does_not_fit_is_refused_and_told_why(make: object, op: Op, said: str) -> None:
    assert said in refusal(make, op)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Norm(WIDTH), "it is a Norm already made, of one width: bring its class"),
        (torch.compile(Norm(WIDTH), backend="eager"), "already made, of one width: bring its class"),
        (3, "it is a int, which can't be called: bring a torch.nn.Module class that takes a width, or a function"),
        ({"rms": rms}, "it is a dict, which can't be called"),
        (None, "it is a NoneType, which can't be called"),
        (torch.ones(3), "it is a Tensor, which can't be called"),
        (functools, "it is a module, which can't be called"),
    ],
)
def test_what_is_no_code_to_call_is_refused_and_told_what_is(found: object, said: str) -> None:
    assert said in refusal(found)


def test_an_implementation_is_built_as_it_says() -> None:
    assert is_right(eager.RMSNORM)
    assert is_right(eager.LAYERNORM, Op.LAYERNORM)


def test_an_implementation_of_another_formula_is_refused() -> None:
    assert "of layernorm, its name says rmsnorm: name it eager-layernorm=" in refusal(eager.LAYERNORM)


def test_what_user_code_raises_is_left_as_it_is() -> None:
    class Broken(nn.Module):
        def __init__(self, dim: int) -> None:
            raise ZeroDivisionError(dim)

    with pytest.raises(ZeroDivisionError, match="8"):
        bound(Broken)


def test_parameters_of_another_dtype_than_the_module_s_own_are_taken() -> None:
    setting = Setting(cell=make_cell(width=WIDTH, dtype=DType.BF16, parameter_dtype=DType.BF16), eps=EPS)
    gain = nn.Parameter(GAIN.detach().bfloat16())
    y = adapted(Norm, Op.RMSNORM, setting)(gain, None)(X.bfloat16())

    assert y.dtype is torch.bfloat16
