"""A small pre-norm decoder in plain torch, whose norm is any implementation; nothing else differs between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch import nn

from normbench.implementations import Bind, Forward
from normbench.records import ModelShape, Op

_DEVIATION = 0.02


class Norm(nn.Module):
    """A norm over the last dimension, computed by an implementation.

    Args:
        width: Of the last dimension.
        op: Which parameters it has: gain 1, and bias 0 in LayerNorm.
        bind: What the implementation has built for (rows, width).
    """

    def __init__(self, width: int, op: Op, bind: Bind) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width)) if op.has_gain else None
        self.bias = nn.Parameter(torch.zeros(width)) if op.has_bias else None
        self._bind = bind
        self._bound: Callable[[], Forward] | None = None

    def bound(self) -> None:
        """Bind the implementation to the parameters as they are now: after they were moved or cast."""
        forward = self._bind(self.weight, self.bias)
        self._bound = lambda: forward  # in a function: as a module among modules its parameters would count twice

    @property
    def implementation(self) -> Forward:
        """What the implementation has bound: (rows, width) to (rows, width)."""
        assert self._bound is not None, "a norm is bound first"
        return self._bound()

    @contextmanager
    def through(self, wrap: Callable[[Forward], Forward]) -> Iterator[None]:
        """Within it, calls go through what ``wrap`` makes of the bound implementation."""
        before, wrapped = self._bound, wrap(self.implementation)
        self._bound = lambda: wrapped
        try:
            yield
        finally:
            self._bound = before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Y of x: (..., width)."""
        y: torch.Tensor = self.implementation(x.reshape(-1, x.shape[-1]))
        return y.reshape(x.shape)


class Block(nn.Module):
    """One layer: attention and an MLP, each behind a norm and added to the stream.

    Args:
        shape: The model's.
        norm: Makes a norm.
    """

    def __init__(self, shape: ModelShape, norm: Callable[[], Norm]) -> None:
        super().__init__()
        width, inner = shape.width, shape.widening * shape.width
        self.heads = shape.heads
        self.attention_norm = norm()
        self.attention_in = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.mlp_norm = norm()
        self.mlp_in = nn.Linear(width, inner, bias=False)
        self.mlp_out = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The stream after the layer: (batch, context, width)."""
        x = x + self.attention(self.attention_norm(x))
        widened: torch.Tensor = self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(x))))
        return x + widened

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        """Causal self-attention."""
        batch, context, width = x.shape
        parts = self.attention_in(x).view(batch, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: torch.Tensor = self.attention_out(mixed.transpose(1, 2).reshape(batch, context, width))
        return out


class Decoder(nn.Module):
    """The model: tokens (batch, context) to logits (batch, context, vocabulary).

    Args:
        shape: Its sizes.
        op: The norm's formula.
        bind: What the norm's implementation has built for (``shape.rows``, ``shape.width``).
        seed: Of the initial values, which do not depend on the norm.
    """

    def __init__(self, shape: ModelShape, op: Op, bind: Bind, *, seed: int) -> None:
        super().__init__()
        self.shape = shape

        def norm() -> Norm:
            return Norm(shape.width, op, bind)

        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape, norm) for _ in range(shape.layers))
        self.last_norm = norm()
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        if shape.tied:
            self.head.weight = self.tokens.weight
        self._initialise(seed)

    def norms(self) -> list[Norm]:
        """Every norm, in the order in which a forward runs them."""
        return [module for module in self.modules() if isinstance(module, Norm)]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of the next token at each place."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.last_norm(x))
        return logits

    def _initialise(self, seed: int) -> None:
        """Normal with deviation 0.02, as GPT-2's; what ends a branch less by the root of their number."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                ends_branch = name.endswith(("attention_out.weight", "mlp_out.weight"))
                deviation = _DEVIATION / (2 * self.shape.layers) ** 0.5 if ends_branch else _DEVIATION
                with torch.no_grad():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
