"""Which packages are not here, and what goes without each."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

NEEDED = {
    "torch": "torch",
    "typer": "typer",
    "rich": "rich",
    "numpy": "numpy",
    "pandas": "pandas",
    "matplotlib": "matplotlib",
    "scipy": "scipy",
    "jinja2": "jinja2",
    "pydantic": "pydantic",
    "psutil": "psutil",
}
"""By the module's name what has to be installed: nothing is measured without."""

FEATURES = {
    "tomlkit": ("tomlkit", "--save-plan"),
    "pynvml": ("nvidia-ml-py", "clocks, temperature and throttle reasons"),
    "tensorboard": ("tensorboard", "profile --serve"),
    "torch_tb_profiler": ("torch-tb-profiler", "profile --serve"),
    "triton": ("triton", "torch.compile on a GPU, and the comparison with do_bench"),
    "pytest": ("pytest", "the tests"),
    "hypothesis": ("hypothesis", "the tests"),
}
"""The same for what is only missed by a part; what goes without it."""


def is_here(module: str) -> bool:
    """Whether a module would be found."""
    return find_spec(module) is not None


def lacking(is_here: Callable[[str], bool] = is_here) -> list[str]:
    """Distributions without which nothing can be measured."""
    return [distribution for module, distribution in NEEDED.items() if not is_here(module)]


def missed(is_here: Callable[[str], bool] = is_here) -> dict[str, str]:
    """Distributions that are not here, and what is skipped for it."""
    from normbench.optional import OPTIONAL

    features = {name: what for module, (name, what) in FEATURES.items() if not is_here(module)}
    return features | {one.distribution: "its kernels" for one in OPTIONAL if not one.is_installed}
