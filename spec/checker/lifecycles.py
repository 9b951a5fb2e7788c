"""Writes Lifecycles.tla from the tables in pi_team/domain/lifecycles.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_team.domain.lifecycles import Lifecycle, Transition

SPEC = Path(__file__).resolve().parent.parent
TARGET = SPEC / "Lifecycles.tla"

_HEAD = """\
----------------------------- MODULE Lifecycles -----------------------------
(***************************************************************************)
(* The two lifecycles.  GENERATED from the tables in                       *)
(* pi_team/domain/lifecycles.py, which the code runs; do not edit:         *)
(*     python3 spec/checker/lifecycles.py                                  *)
(***************************************************************************)
"""


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def _row(row: Transition) -> str:
    fields = [f'trigger |-> "{row.trigger}"', f"from |-> {_set(row.sources)}", f'to |-> "{row.dest}"']
    if row.kinds:
        fields += [f"kinds |-> {_set(row.kinds)}", f'claim |-> "{row.claim}"']
        fields.append(f"answers |-> {'TRUE' if row.answers else 'FALSE'}")
    return f"  \\* {row.meaning}\n  [" + ", ".join(fields) + "]"


def _lifecycle(lifecycle: Lifecycle) -> str:
    name = lifecycle.name.capitalize()
    return (
        f"{name}States  == {_set(lifecycle.states)}\n"
        f'{name}Initial == "{lifecycle.initial}"\n'
        f"{name}Finals  == {_set(lifecycle.finals)}\n\n"
        f"{name}Transitions == {{\n" + ",\n".join(_row(row) for row in lifecycle.transitions) + "\n}\n"
    )


def module_text() -> str:
    """The text of Lifecycles.tla."""
    from pi_team.domain.lifecycles import MEMBERSHIP, MESSAGE  # noqa: PLC0415 - spec/check runs without pi_team

    rule = "-" * 77 + "\n"
    return _HEAD + "\n" + _lifecycle(MESSAGE) + "\n" + rule + _lifecycle(MEMBERSHIP) + "\n" + "=" * 77 + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(SPEC.parent))
    TARGET.write_text(module_text(), encoding="utf-8")
