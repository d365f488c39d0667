"""``python -m normbench``, and the ``normbench`` command: what little must be there before anything is imported."""

import sys


def run() -> None:
    """Run the command line; an interrupt ends it without a traceback, also while it is still being imported."""
    try:
        from normbench.cli import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
