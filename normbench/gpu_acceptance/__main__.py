"""``python -m normbench.gpu_acceptance``."""

from __future__ import annotations

from types import FrameType

from normbench.interruption import take_over
from normbench.requirements import named


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C does, whatever asks for the end: the part that runs is told, and what there is is kept."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    take_over(_interrupt)
    with named():
        from normbench.gpu_acceptance.command import main

    main()
