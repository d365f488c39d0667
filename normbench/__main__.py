"""``python -m normbench``, and the ``normbench`` command: what must be there before anything is imported."""

from types import FrameType

from normbench.interruption import end_at_once, take_over
from normbench.requirements import named


def run() -> None:
    """Run the command line. Ctrl-C, SIGTERM and SIGHUP end it at once, until a command has something to lose.

    Not by KeyboardInterrupt: many libraries, torch among them, do not survive one while they are being imported.
    """
    take_over(_leave)
    with named():
        from normbench.cli import main

    main()


def _leave(_number: int, _frame: FrameType | None) -> None:
    end_at_once(130)


if __name__ == "__main__":
    run()
