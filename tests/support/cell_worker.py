"""Carries out cells of the crash matrix as it is told on its input: one line of JSON each, one line back.

The argument is the directory to work in; one in memory where it is empty.

A process of its own, so that it forks without threads, and forks as little as can be.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, Final

import attrs
import filelock  # noqa: F401 - what is imported ahead is imported by no child
import psutil  # noqa: F401 - as above
import watchdog.observers  # noqa: F401 - as above

from cells import Cell, Cells
from soak import Soak
from tapped import Plan

_MEMORY: Final = "/dev/shm"
"""A file system in memory, where there is one: a kill loses nothing of a disk either."""


def answer(cells: Cells, root: Path, order: dict[str, Any]) -> dict[str, Any]:
    """Do one thing."""
    if order["do"] == "points":
        subject = cells.subject(order["name"], order["kind"])
        return {"points": [attrs.astuple(point) for point in subject.points]}
    if order["do"] == "processor":
        return {"seconds": sum(os.times()[:4])}
    if order["do"] == "soak":
        return Soak(root, **order["options"]).run().to_json()
    cell = Cell(order["name"], order["kind"], Plan(**order["plan"]), tuple(order["broken"]))
    return {"code": cells.carry_out(cell)}


def serve() -> None:
    """Do what is told until the input ends."""
    warnings.simplefilter("error")
    place = sys.argv[1] or (_MEMORY if os.path.isdir(_MEMORY) else None)
    with tempfile.TemporaryDirectory(dir=place, prefix="cells-") as root:
        cells = Cells(Path(root))
        for line in sys.stdin:
            try:
                told = answer(cells, Path(root), json.loads(line))
            except BaseException as error:  # noqa: BLE001 - whatever it was, the report has to tell
                why = traceback.format_exc() if not isinstance(error, AssertionError) else str(error)
                told = {"failed": why or repr(error)}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    serve()
