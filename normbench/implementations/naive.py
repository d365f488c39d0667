"""RMSNorm as it is first written down: the statistic in x's own format, which half precision can't hold.

``check`` shows with it what goes wrong; it is never timed, since a wrong result has no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from normbench.implementations.base import Implementation, binding
from normbench.records import Op

if TYPE_CHECKING:
    import torch


def rmsnorm(x: torch.Tensor, gain: torch.Tensor | None, _bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    """RMSNorm over the last dimension, without a cast: in fp16 the square of 256 is infinite."""
    assert gain is not None
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * gain


RMSNORM = Implementation(
    name="naive-rmsnorm",
    op=Op.RMSNORM,
    provider="naive",
    summary="hand-written RMSNorm without a float32 statistic: wrong in fp16 from 256 on",
    build=lambda setting: binding(rmsnorm, setting.eps),
)
