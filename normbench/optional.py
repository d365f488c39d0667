"""The optional packages that bring kernels: whether each is here, in which version, told without importing any."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import util
from pathlib import Path

from normbench.records import DeviceInfo


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package that has to be installed, and what its kernels run on.

    Args:
        module: What is imported.
        distribution: What is installed, as package managers call it.
        install: How, in words that can be followed.
        holds: A file or folder in it, which tells it from another package of the same module's name.
        kernels: What its kernels are written in or called.
        capability: The least compute capability that they run on; None where any GPU will do.
    """

    module: str
    distribution: str
    install: str
    holds: str
    kernels: str
    capability: tuple[int, int] | None = None

    @property
    def is_installed(self) -> bool:
        """Whether it would be found, whether or not it can be imported."""
        try:
            spec = util.find_spec(self.module)
        except (ImportError, ValueError):  # what stands in sys.modules is no ordinary module
            return False
        places = () if spec is None else spec.submodule_search_locations or ()
        return any((Path(place) / self.holds).exists() for place in places)

    @property
    def version(self) -> str | None:
        """Which one is installed; None where none is, or where that can't be told."""
        return distribution_version(self.distribution) if self.is_installed else None

    def absent(self, device: DeviceInfo) -> str | None:
        """Why none of its kernels can run here, all reasons at once; None where they can."""
        missing = None if self.is_installed else f"{self.distribution} is not installed: {self.install}"
        return "; ".join(why for why in (self._unsuited(device), missing) if why) or None

    def _unsuited(self, device: DeviceInfo) -> str | None:
        if device.kind == "cpu":
            return f"{self.kernels} kernels need a GPU"
        have, least = device.capability, self.capability
        if have is None or least is None or have >= least:
            return None
        return f"{self.kernels} kernels need compute capability {_dotted(least)}, {device.name} has {_dotted(have)}"


LIGER = Package(
    module="liger_kernel",
    distribution="liger-kernel",
    install="pip install liger-kernel",
    holds="transformers",
    kernels="Triton",
)
QUACK = Package(
    module="quack",
    distribution="quack-kernels",
    install="pip install quack-kernels",
    holds="rmsnorm.py",
    kernels="CuTe",
    capability=(8, 0),
)
FLASHINFER = Package(
    module="flashinfer",
    distribution="flashinfer-python",
    install="pip install flashinfer-python",
    holds="norm",
    kernels="FlashInfer's",
    capability=(7, 5),
)
APEX = Package(
    module="apex",
    distribution="apex",
    install="build it from NVIDIA's source (pip has another apex)",
    holds="normalization",
    kernels="apex's",
)
TRANSFORMER_ENGINE = Package(
    module="transformer_engine",
    distribution="transformer-engine",
    install="pip install 'transformer-engine[pytorch]', which compiles",
    holds="pytorch",
    kernels="Transformer Engine's",
    capability=(8, 0),
)

OPTIONAL = (LIGER, QUACK, FLASHINFER, APEX, TRANSFORMER_ENGINE)
"""Every package whose kernels are measured where it is installed."""

_DECIDING = ("nvidia-cutlass-dsl", "apache-tvm-ffi")
"""What decides which kernel runs, without having any: with the versions that it knows, torch replaces its own."""


def versions() -> tuple[tuple[str, str], ...]:
    """Of what is installed and decides which kernels run: name and version."""
    deciding = [(name, distribution_version(name)) for name in (*_DECIDING, "numpy")]
    optional = [(package.distribution, package.version) for package in OPTIONAL]
    return tuple((name, version) for name, version in (*deciding, *optional) if version)


def distribution_version(name: str) -> str | None:
    """The version of an installed distribution; None where there is none."""
    from importlib import metadata  # help does without it, and it takes as long as all of this package

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
