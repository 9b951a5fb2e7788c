"""The lifecycles as a reader sees them: a table and a state diagram, drawn from the data.

``python -m pi_team.domain.diagrams`` prints both of both; docs/lifecycles.md has them between marks,
where ``docs/generate.py`` puts them.
"""

from __future__ import annotations

from pi_team.domain.lifecycles import MEMBERSHIP, MESSAGE, Lifecycle


def table(lifecycle: Lifecycle) -> str:
    """The transitions as a table in Markdown."""
    of_messages = any(row.kinds for row in lifecycle.transitions)
    heads = ["trigger", "from", "to", "when"]
    if of_messages:
        heads[3:3] = ["kinds", "claim", "result"]
    lines = [heads, ["---"] * len(heads)]
    for row in lifecycle.transitions:
        cells = [f"`{row.trigger}`", ", ".join(row.sources), row.dest, row.meaning]
        if of_messages:
            claim = row.claim if row.claim != "kept" or "processing" in row.sources else "none"
            cells[3:3] = [", ".join(row.kinds), claim, "yes" if row.answers else "no"]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def diagram(lifecycle: Lifecycle) -> str:
    """The transitions as a state diagram in Mermaid, with parallel arrows joined."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for row in lifecycle.transitions:
        label = f"{row.trigger} ({', '.join(row.kinds)})" if row.kinds else row.trigger
        for source in row.sources:
            arrows.setdefault((source, row.dest), []).append(label)
    lines = ["stateDiagram-v2", f"    [*] --> {lifecycle.initial}"]
    lines += [f"    {source} --> {dest}: {', '.join(labels)}" for (source, dest), labels in arrows.items()]
    lines += [f"    {final} --> [*]" for final in lifecycle.finals]
    return "\n".join(lines)


def part(lifecycle: Lifecycle) -> str:
    """What a document shows of a lifecycle: the table and below it the diagram."""
    return f"{table(lifecycle)}\n\n```mermaid\n{diagram(lifecycle)}\n```"


if __name__ == "__main__":
    print(part(MESSAGE), part(MEMBERSHIP), sep="\n\n")
