"""``normbench check``: does each implementation compute its norm, on easy values and on hard ones?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from normbench.cli import axes, bringing, options
from normbench.cli.beginning import refuse_existing
from normbench.cli.capacity import refuse_too_many
from normbench.cli.examining import Asked, Style, start
from normbench.errors import UsageError
from normbench.implementations import catalog, checkable
from normbench.records import Allowance, CheckPlan, DType, Plan, Property

EXAMPLES = """\b
Examples:
  normbench check
  normbench check --impls nn-rmsnorm naive-rmsnorm --dtype fp16
  normbench check --properties large-offset constant-rows --widths 4096 --json
  normbench check --allow naive-rmsnorm:fp16-squares-overflow
"""

_WIDTHS = (1, 3, 64, 1000, 4096)
_WIDE = 65536
_DTYPES = (DType.FP32, DType.BF16, DType.FP16)
_MARK = ":"

_Impls = Annotated[
    list[str],
    typer.Option(
        "--impls",
        "--impl",
        metavar="NAME...",
        help="Implementations; see `list`. naive-rmsnorm too, which is wrong on purpose. [all of `list` but copy]",
    ),
]
_Properties = Annotated[
    list[str],
    typer.Option("--properties", "--property", metavar="NAME...", help="What to ask; see docs/checks.md. [all]"),
]
_Dtypes = Annotated[
    list[str],
    typer.Option("--dtypes", "--dtype", metavar=f"{options.metavar(DType)}...", help="Dtypes of x. [fp32 bf16 fp16]"),
]
_Widths = Annotated[
    list[str],
    typer.Option(
        "--widths", "--width", metavar="N...", help="Widths: numbers and ranges 256:8192:x2. [1 3 64 1000 4096]"
    ),
]
_Allow = Annotated[
    list[str],
    typer.Option(
        "--allow", metavar="NAME...", help="Properties, or IMPLEMENTATION:PROPERTY, whose failures do not count."
    ),
]


def check(
    impls: _Impls = [],  # noqa: B006 - Typer copies it
    properties: _Properties = [],  # noqa: B006 - Typer copies it
    dtypes: _Dtypes = [],  # noqa: B006 - Typer copies it
    widths: _Widths = [],  # noqa: B006 - Typer copies it
    full: Annotated[
        bool, typer.Option("--full", help=f"Width {_WIDE} too; takes longer than three minutes.")
    ] = False,
    device: axes.DeviceName = None,
    eps: axes.Eps = None,
    seed: Annotated[int | None, typer.Option(help="Of all values. [0]")] = None,
    allow: _Allow = [],  # noqa: B006 - Typer copies it
    out: axes.Out = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print check.md on stdout.")] = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Ask every implementation for each property of its norm, compare with float64, and say who fails what and where.

    y and every gradient, on ordinary and on hard values; how far off at worst, in units in the last place and
    relative, beside what a correct implementation may be off by. Writes check.csv and check.md into a new folder.

    Exit codes: 0; 1 where a property fails that is not allowed to; 2 bad usage; 3 where nothing could be checked; 130
    interrupted, with what was found written.
    """
    style = _style(as_markdown=as_markdown, as_json=as_json)
    there = tuple(one.name for one in checkable(catalog()))
    named = bringing.norms("--impls", impls, there)
    names = named.names or tuple(one.name for one in catalog().norms)
    plan = _plan(
        len(named.names) or sum(one.package is None for one in catalog().norms),
        properties=options.many("--properties", properties, _property) or tuple(Property),
        dtypes=options.many("--dtypes", dtypes, options.dtype) or _DTYPES,
        widths=_widths(options.sizes("--widths", widths) or _WIDTHS, full=full),
        eps=Plan.eps if eps is None else options.above_zero("--eps", eps),
        seed=Plan.seed if seed is None else seed,
    )
    allowed = options.many("--allow", allow, partial(_allowance, options.unique([*there, *names])))
    refuse_existing(out)
    with bringing.catalog_with(named.brought) as known:
        chosen = tuple(one for one in checkable(known) if one.name in names)
        asked = Asked(
            plan=plan,
            implementations=chosen,
            allowed=allowed,
            brought=named.brought,
            named=bool(named.names),
        )
        start(asked, device, out, style, quiet=quiet)


def _plan(implementations: int, **fields: Any) -> CheckPlan:
    """A plan that can be asked of so many at the least; a UsageError where none can be like that."""
    try:
        plan = CheckPlan(**fields)
    except ValueError as error:
        raise UsageError(str(error), hint="see normbench check --help") from error
    refuse_too_many(plan, implementations)
    return plan


def _style(*, as_markdown: bool, as_json: bool) -> Style:
    if as_markdown and as_json:
        raise UsageError("--markdown and --json ask for different things", hint="leave one of them out")
    return Style.MARKDOWN if as_markdown else Style.JSON if as_json else Style.TABLE


def _widths(widths: tuple[int, ...], *, full: bool) -> tuple[int, ...]:
    return options.unique([*widths, _WIDE]) if full else widths


def _property(option: str, value: str) -> Property:
    return Property(options.one_of(option, [str(name) for name in Property], value.lower(), "property"))


def _allowance(names: Sequence[str], option: str, value: str) -> Allowance:
    name, mark, asked = value.rpartition(_MARK)
    bringing.refuse_adds(option, name, catalog())
    implementation = options.one_of(option, names, name, "implementation") if mark else None
    return Allowance(implementation=implementation, property=_property(option, asked))
