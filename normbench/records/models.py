"""The model inside which a norm is measured: its sizes, and how many parameters they make."""

from __future__ import annotations

from dataclasses import dataclass

from normbench.records.cases import Op


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A pre-norm decoder: ``x + attention(norm(x))``, ``x + mlp(norm(x))``, a last norm, a head.

    Args:
        width: Of the residual stream, and of every norm.
        layers: Blocks, of two norms each.
        heads: Of attention, which share the width.
        context: Tokens of a sequence.
        batch: Sequences of a step.
        vocabulary: Different tokens.
        widening: How many times as wide as the stream the MLP is.
        tied: Whether the head is the transposed embedding.
    """

    width: int
    layers: int
    heads: int
    context: int = 256
    batch: int = 8
    vocabulary: int = 2048
    widening: int = 4
    tied: bool = True

    def __post_init__(self) -> None:
        sizes = (self.width, self.layers, self.heads, self.context, self.batch, self.vocabulary, self.widening)
        if min(sizes) < 1:
            raise ValueError("every size of a model is 1 or more")
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} can't be shared by {self.heads} heads")

    @property
    def norms(self) -> int:
        """How many norms a forward runs."""
        return 2 * self.layers + 1

    @property
    def rows(self) -> int:
        """Rows of each norm's x: the tokens of a step."""
        return self.batch * self.context

    @property
    def operations(self) -> int:
        """Floating-point operations of a step, about: 6 × parameters × tokens (Kaplan et al. 2020, section 2.1)."""
        return 6 * self.parameters(Op.LAYERNORM) * self.rows

    def norm_parameters(self, op: Op) -> int:
        """Parameters of all norms."""
        return self.norms * self.width * (int(op.has_gain) + int(op.has_bias))

    def parameters(self, op: Op) -> int:
        """All parameters: embeddings, four width² matrices of attention and two of the MLP a layer, head, norms."""
        embeddings = (self.vocabulary + self.context) * self.width
        head = 0 if self.tied else self.vocabulary * self.width
        block = (4 + 2 * self.widening) * self.width**2
        return embeddings + head + self.layers * block + self.norm_parameters(op)


PRESETS = {
    "tiny": ModelShape(width=256, layers=4, heads=8),
    "small": ModelShape(width=512, layers=6, heads=8),
    "medium": ModelShape(width=1024, layers=8, heads=16),
}
"""Models by name."""
