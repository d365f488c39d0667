"""Which packages are not here, and what goes without each."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from normbench.optional import OPTIONAL
from normbench.requirements import REQUIRED

FEATURES = {
    "tomlkit": ("tomlkit", "--save-plan"),
    "pynvml": ("nvidia-ml-py", "clocks, temperature and throttle reasons"),
    "tensorboard": ("tensorboard", "profile --serve"),
    "torch_tb_profiler": ("torch-tb-profiler", "profile --serve"),
    "triton": ("triton", "torch.compile on a GPU, and the comparison with do_bench"),
    "pytest": ("pytest", "the tests"),
    "hypothesis": ("hypothesis", "the tests"),
}
"""What is only missed by a part: by the module's name the package, and what goes without it."""

NEEDED = tuple(sorted(REQUIRED - FEATURES.keys()))
"""Without these nothing is measured; each has the name of its module."""


def is_here(module: str) -> bool:
    """Whether a module would be found."""
    return find_spec(module) is not None


def lacking(is_here: Callable[[str], bool] = is_here) -> list[str]:
    """Packages without which nothing can be measured."""
    return [name for name in NEEDED if not is_here(name)]


def missed(is_here: Callable[[str], bool] = is_here) -> dict[str, str]:
    """Packages that are not here, and what is skipped for it."""
    features = {name: what for module, (name, what) in FEATURES.items() if not is_here(module)}
    return features | {one.distribution: "its kernels" for one in OPTIONAL if not one.is_installed}
