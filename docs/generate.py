"""Rewrite the parts of the documents that are made from the code.

    python docs/generate.py           rewrite them
    python docs/generate.py --check   change nothing; exit status 1 where one is stale

A part stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the code beside these documents

from pi_team import errors
from pi_team.cli import failures
from pi_team.domain import diagrams, lifecycles
from pi_team.session import machine, wording
from pi_team.session.usage import COMMANDS, usage_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE: Final = Path(__file__).resolve().parent


def error_classes(base: type[errors.PiTeamError] = errors.PiTeamError) -> Iterator[type[errors.PiTeamError]]:
    """The classes that have a code, in the order of the module."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, base) and hasattr(kind, "code"):
            yield kind


def errors_table() -> str:
    """The table of codes: who erred, retry, exit status, meaning, what to do."""
    rows = [
        "| code | erred | retry | exit | meaning | what to do |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind in error_classes():
        with contextlib.redirect_stderr(io.StringIO()):
            status = failures.report(kind("an example"), as_json=True)
        meaning = " ".join((kind.__doc__ or "").split())
        hint = kind.default_hint or "what the message says"
        retry = "yes" if kind.retryable else "no"
        cells = [f"`{kind.code}`", kind.fault, retry, str(status), meaning, hint]
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def rules_text() -> str:
    """The rules for peers, as a member reads them."""
    return f"```text\n{wording.rules('crew', 'coder')}\n```"


def commands_table() -> str:
    """The table of what a person types in a session."""
    rows = [f"| `{usage_line(name, usage)}` | {usage.says} |" for name, usage in COMMANDS.items()]
    return "\n".join(["| command | does |", "| --- | --- |", *rows])


PARTS: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "errors": ("errors.md", errors_table),
    "commands": ("pi.md", commands_table),
    "message": ("lifecycles.md", lambda: diagrams.part(lifecycles.MESSAGE)),
    "membership": ("lifecycles.md", lambda: diagrams.part(lifecycles.MEMBERSHIP)),
    "session": ("session.md", lambda: diagrams.part(machine.SESSION)),
    "rules": ("session.md", rules_text),
}
"""Each generated part: its document, and what makes it."""


def refreshed(document: str, name: str, part: str) -> str:
    """The document's text with a part in its place. Raises ValueError where it has no place for it."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(document)) != 1:
        raise ValueError(f"there is not one place for {name}")
    return pattern.sub(lambda _: f"{begin}\n{part}\n{end}", document)


def main(arguments: list[str]) -> int:
    """Rewrite, or with `--check` compare, every part; the exit status."""
    stale = 0
    for name, (document, make) in PARTS.items():
        path = HERE / document
        before = path.read_text("utf-8")
        after = refreshed(before, name, make())
        if after != before:
            stale = 1
            print(f"docs/{document}: the part {name} is stale", file=sys.stderr)
            if arguments != ["--check"]:
                path.write_text(after, "utf-8")
    return stale if arguments == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
