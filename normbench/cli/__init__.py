"""The command line: one file a command, which parses, calls and prints; errors are caught here, once."""

from __future__ import annotations

import sys
import traceback

import typer

from normbench.cli import check, compare, doctor, explain, listing, profile, report, step, streams, sweep
from normbench.cli.numbers import NumbersCommand
from normbench.cli.options import ListCommand
from normbench.cli.plan_command import PlanCommand
from normbench.errors import IncompleteError, NormbenchError
from normbench.requirements import lacking

app = typer.Typer(
    name="normbench",
    help="Which normalization, in which implementation, should this config use? Measured on this device.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="sweep", cls=PlanCommand, epilog=sweep.EXAMPLES)(sweep.sweep)
app.command(name="profile", cls=PlanCommand, epilog=profile.EXAMPLES)(profile.profile)
app.command(name="report", epilog=report.EXAMPLES)(report.report)
app.command(name="compare", epilog=compare.EXAMPLES)(compare.compare)
app.command(name="check", cls=ListCommand, epilog=check.EXAMPLES)(check.check)
app.command(name="explain", cls=NumbersCommand, epilog=explain.EXAMPLES)(explain.explain)
app.command(name="step", cls=ListCommand, epilog=step.EXAMPLES)(step.step)
app.command(name="doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(name="list", epilog=listing.EXAMPLES)(listing.list_implementations)


def _print_version(wanted: bool) -> None:
    if wanted:
        from normbench import __version__

        typer.echo(f"normbench {__version__}")
        raise typer.Exit


@app.callback()
def callback(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Which normalization, in which implementation, should this config use? Measured on this device."""
    del version


def main(program: typer.Typer | None = None) -> None:
    """The entry point: runs a command and turns every expected end into its exit code.

    Args:
        program: Whose command; that of the program ``normbench`` unless told.
    """
    streams.prepare()
    try:
        (program or app)()
    except NormbenchError as error:
        sys.exit(_told(error))
    except Exception as error:
        missing = lacking(error) if isinstance(error, ModuleNotFoundError) else None
        sys.exit(_told(missing) if missing else _told_of_a_fault())
    except SystemExit as end:
        # Typer ends with 1 where help meets a closed stdout; 1 is kept for regressions and failed checks, which
        # are errors of the tree.
        sys.exit(IncompleteError.exit_code if end.code == 1 else end.code)


def _told(error: NormbenchError) -> int:
    """Say what is wrong; its exit code."""
    _say(f"error: {error.message}", f"hint: {error.hint}" if error.hint else None)
    return error.exit_code


def _told_of_a_fault() -> int:
    """Say that it is one. Python would end with 1, which says that something got slower."""
    traceback.print_exc()
    _say("error: this is a fault of normbench", "hint: please report it with the lines above")
    return NormbenchError.exit_code


def _say(*lines: str | None) -> None:
    for line in lines:
        if line:
            print(line, file=sys.stderr)
