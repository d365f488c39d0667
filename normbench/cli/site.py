"""What a run is carried out with: the device that it holds, the implementations there are, and who else is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from normbench.cli.neighbours import Neighbours
from normbench.implementations import Catalog

if TYPE_CHECKING:
    from normbench.device import Device


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a run is carried out with.

    Args:
        device: The device, which the run holds.
        catalog: Every implementation that there is, those that the user brings among them.
        neighbours: Who else is on the device.
    """

    device: Device
    catalog: Catalog
    neighbours: Neighbours
