"""A fuzz target of everything that reads a run folder: ``python -m tests.hostile --seed 1 --seconds 60``.

Every trial changes one file of a good folder, reads the folder as ``report``, ``compare`` and ``--resume`` do, and
renders what can be read. The first folder that is answered otherwise than by a run or an error that names file, line
and field is kept, with how to make it again. Equal seeds make equal files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.hostile.folders import Files, good_folders
from tests.hostile.mutations import everywhere, mutated
from tests.hostile.trial import FaultError, outcome

_EVERYWHERE = 0.5
"""Of the trials: what is changed in all files alike is found later, in what is made of them."""


def one(seed: int, number: int, folders: dict[str, Files], path: Path, seen: Counter[str]) -> None:
    """Make the folder of one trial at ``path`` and read it."""
    random = Random(f"{seed} {number}")
    kind = random.choice(sorted(folders))
    files = dict(folders[kind])
    if random.random() < _EVERYWHERE:
        files = everywhere(files, random)
    if random.random() > _EVERYWHERE / 2:
        name = random.choice(sorted(files))
        files[name] = mutated(name, files[name], random)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for file, data in files.items():
        (path / file).write_bytes(data)
    outcome(path, seen, resumes=number % 4 == 0, pictures=number % 10 == 0)


def main() -> int:
    """Try until the time or the number is reached; 1 where a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--count", type=int, default=10**9, help="how many trials at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long at most")
    parser.add_argument("--keep", type=Path, default=Path("hostile-fault"), help="where a faulty folder is put")
    parser.add_argument("--go-on", action="store_true", help="count faults rather than end at the first")
    asked = parser.parse_args()
    seen: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    began, number = time.monotonic(), asked.first
    with tempfile.TemporaryDirectory() as scratch:
        folders = good_folders(Path(scratch))
        path = Path(scratch) / "trial"
        while number < asked.first + asked.count and time.monotonic() - began < asked.seconds:
            try:
                one(asked.seed, number, folders, path, seen)
            except FaultError as fault:
                faults[str(fault)[:150]] += 1
                if faults[str(fault)[:150]] == 1:
                    print(f"--seed {asked.seed} --first {number} --count 1: {fault}", flush=True)
                if not asked.go_on:
                    traceback.print_exc()
                    shutil.copytree(path, asked.keep, dirs_exist_ok=True)
                    print(f"the folder is kept: {asked.keep}")
                    break
            number += 1
    tried = number - asked.first
    refused = sum(seen.values()) - seen["a run"]
    print(f"{tried} files in {time.monotonic() - began:.0f} s: {seen['a run']} runs, {refused} refused")
    for said, count in seen.most_common(40):
        print(f"{count:8d}  {said}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
