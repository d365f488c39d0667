"""What head does against base, where a run brought both: one sentence, where their code lies, whether it is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from normbench import units
from normbench.records import BASE, HEAD, Comparison, ImplementationInfo, Outcome, Run, RunHeader
from normbench.reporters import statements

_WORDS = {
    Outcome.SLOWER: ("slower", "than"),
    Outcome.FASTER: ("faster", "than"),
    Outcome.SAME: ("as fast", "as"),
    Outcome.UNDECIDED: ("undecided", "against"),
}
"""What matters most comes first; the second word leads to base."""


def sentence(run: Run) -> str | None:
    """``head is slower than base in 1 of 4 cells (…), as fast in 3 (…)``; None where a run has no such two."""
    base, heads = pair(run.header)
    if base is None or not heads or not run.has_times:
        return None
    return "; ".join(_of(run, base, head) for head in heads)


def notes(run: Run) -> list[str]:
    """Where the code of base and head was found, and where it is the same."""
    base, heads = pair(run.header)
    if base is None or not heads:
        return []
    places = [f"{info.name} is {info.source}" for info in (base, *heads)]
    return [f"{'; '.join(places)}.", *filter(None, (_sameness(run.header, base, head) for head in heads))]


def pair(header: RunHeader) -> tuple[ImplementationInfo | None, Sequence[ImplementationInfo]]:
    """Base, where that is the baseline, and what is brought as head and computes the same."""
    base = header.info(header.plan.baseline)
    if base.source is None or base.provider != BASE:
        return None, ()
    heads = [info for info in header.implementations if info.source and info.provider == HEAD and info.op is base.op]
    return base, heads


def _of(run: Run, base: ImplementationInfo, head: ImplementationInfo) -> str:
    plan, found = run.header.plan, _comparisons(run, head)
    outcomes = {outcome: [each for each in found if each.outcome is outcome] for outcome in _WORDS}
    missing = len(set(plan.cells()) - {each.cell for each in found})
    total = units.count(len(found) + missing, "cell")
    if not found:
        return f"{head.name} could not be compared with {base.name} in any of {total}"
    places = {outcome: statements.where(plan, [each.cell for each in kept]) for outcome, kept in outcomes.items()}
    are_few = sum(map(len, places.values())) <= statements.MOST_PLACES
    parts: list[str] = []
    for outcome, kept in ((outcome, kept) for outcome, kept in outcomes.items() if kept):
        word, leads_to = _WORDS[outcome]
        begins = f"{word} in {len(kept)}" if parts else f"{word} {leads_to} {base.name} in {len(kept)} of {total}"
        parts.append(f"{begins}{_details(outcome, kept, places[outcome] if are_few else ())}")
    parts += [f"not compared in {missing}"] if missing else []
    return f"{head.name} is {', '.join(parts)}"


def _comparisons(run: Run, head: ImplementationInfo) -> list[Comparison]:
    return [each for each in run.comparisons if each.candidate == head.name and each.speedup is not None]


def _details(outcome: Outcome, found: Iterable[Comparison], places: Sequence[str]) -> str:
    """In brackets where, and how many times as fast."""
    speedups = sorted(each.speedup.value for each in found if each.speedup is not None)
    is_decided = outcome in (Outcome.SLOWER, Outcome.FASTER)
    ratio = f"{statements.value_range(speedups)} times as fast" if is_decided else ""
    said = ": ".join(filter(None, ["; ".join(places), ratio]))
    return f" ({said})" if said else ""


def _sameness(header: RunHeader, base: ImplementationInfo, head: ImplementationInfo) -> str | None:
    """What follows where both are the same attribute of the same file, or of one package."""
    attributes = {one.name: one.attribute for one in header.plan.brought}
    one, other = base.source, head.source
    if one is None or other is None or attributes[base.name] != attributes[head.name]:
        return None
    is_one_file = one.file == other.file and one.package == other.package and one.digest == other.digest
    if not is_one_file:
        return None
    if one.commit == other.commit and not (one.has_changes or other.has_changes):
        return f"{base.name} and {head.name} are the same code: whatever differs between them is noise (an A/A test)."
    return f"{base.name} and {head.name} are one file, letter for letter: only what it imports can make them differ."
