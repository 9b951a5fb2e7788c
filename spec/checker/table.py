"""The table of a run of all models, as spec/README.md has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from spec.checker.manifest import Model
    from spec.checker.tlc import Run

BEGIN: Final = "<!-- written by spec/check --all --write -->"
END: Final = "<!-- end of what is written -->"
_HEAD: Final = """\
| module | kind | model | found | distinct states | depth | seconds | CPU seconds |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: |
"""


def found(run: Run) -> str:
    """What a run showed, in a word or two."""
    if run.error is not None:
        return "TLC failed"
    return "holds" if run.violated is None else f"fails {run.violated}"


def render(runs: Iterable[tuple[Model, Run]], *, seconds: float, jobs: int, cores: int) -> str:
    """The table in Markdown, in the order given, after a sentence on how it was measured."""
    rows, cpu = [], 0.0
    for model, run in runs:
        cpu += run.cpu
        rows.append(
            f"| {model.module} | {model.kind} | {model.name} | {found(run)} | {run.states:,} | {run.depth} "
            f"| {run.seconds:.0f} | {run.cpu:.0f} |\n"
        )
    return (
        f"`spec/check --all --write`: {len(rows)} models as the manifest says, {seconds:,.0f} s by the clock "
        f"and {cpu:,.0f} CPU seconds, {jobs} side by side on {cores} cores.\n\n{_HEAD}{''.join(rows)}"
    )


def replace(path: Path, text: str) -> None:
    """Put a text between the two markers of a document.

    Raises:
        ValueError: the document does not have each marker once, in their order.
    """
    document = path.read_text(encoding="utf-8")
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in tail:
        raise ValueError(f"{path} has to have each marker once: {BEGIN} and {END}")
    path.write_text(f"{head}{BEGIN}\n{text}{END}{tail}", encoding="utf-8")
