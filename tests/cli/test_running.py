from __future__ import annotations

import os
import signal

import pytest

from normbench.cli.running import terminated_as_interrupted


def test_a_termination_is_an_interrupt_and_afterwards_what_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
