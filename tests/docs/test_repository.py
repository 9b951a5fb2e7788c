"""What holds for the whole repository: what its files may say, that its references lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

import repository

MYSELF: Final = Path(__file__).resolve().relative_to(repository.ROOT).as_posix()
FOREIGN: Final = {
    "a path of somebody's machine": r"(?<![\w.~$}])/(?:work|root)\b|/(?:home|Users)/[a-z]{2,}|/tmp/contract",
    "the host of a package registry": r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)",
    "a tracker's entry": r"(?i)\bissues?\b|\bpull requests?\b|\bticket\b|\bPR #",
    "how the text came about": r"(?i)\bsub-?agents?\b|shared/design|\bworking paper\b|\bdesign: ",
    "a note to oneself": r"\b(?:TODO|FIXME)\b",
}
CITATION: Final = re.compile(r'docs/([a-z-]+\.md)(?:`|\))?,\s+"([^"]{1,80})"')
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def _sources() -> list[str]:
    names = [name for name in repository.files() if name.endswith((".py", ".tla", ".cfg", ".ts", ".toml"))]
    assert len(names) > 30  # else nothing would be looked at
    return names


def _joined(source: str) -> str:
    """Source text with the marks of its comments taken out, so that a citation may go over two lines."""
    text = re.sub(r"\*\)\s*\n\s*\(\*", "\n", source)
    return re.sub(r"\s*\n\s*(?:#|//|\*|\\\*)?\s*", " ", text)


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("kind", FOREIGN)
def test_no_file_says_what_is_no_business_of_a_reader(kind: str) -> None:
    """Somebody's path, a registry, a tracker or the making of the text got into a committed file."""
    found = []
    for name in repository.files():
        data = (repository.ROOT / name).read_bytes()
        if name == MYSELF or b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
            if re.search(FOREIGN[kind], line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []


def test_what_a_reader_has_no_business_with_would_be_found() -> None:
    """A pattern that matches nothing proves nothing: each finds its own example."""
    examples = ("/root/x", "https://pypi.org/x", "see issue 3", "as a subagent", "TODO later")
    for example, pattern in zip(examples, FOREIGN.values(), strict=True):
        assert re.search(pattern, example), example


def test_every_citation_names_a_heading() -> None:
    """A heading was renamed and the code still cites the old one."""
    cited, wrong = 0, []
    for name in _sources():
        for document, heading in CITATION.findall(_joined(repository.text(name))):
            cited += 1
            if heading not in repository.headings(f"docs/{document}"):
                wrong.append(f"{name} cites {document}, {heading!r}")
    assert wrong == []
    assert cited > 10


def test_every_document_that_is_named_exists() -> None:
    """A file of docs/ was renamed and somebody still names it."""
    files = set(repository.files())
    wrong = [
        f"{name} names {named}"
        for name in [*_sources(), *repository.documents()]
        for named in re.findall(r"\bdocs/[a-z-]+\.(?:md|json|py)\b", repository.text(name))
        if named not in files
    ]
    assert wrong == []


def test_every_link_leads_somewhere() -> None:
    """A link of a document names a file or a heading that is not there."""
    files, followed, wrong = set(repository.files()), 0, []
    for document in repository.documents():
        for target in LINK.findall(repository.prose(document)):
            if target.startswith(("https://", "http://")):
                continue
            path, _, anchor = target.partition("#")
            there = _resolved(document, path) if path else document
            followed += 1
            if there in files:
                slugs = [_slug(heading) for heading in repository.headings(there)] if anchor else [""]
                leads = anchor in slugs
            else:
                leads = any(name.startswith(f"{there}/") for name in files)
            if not leads:
                wrong.append(f"{document} links to {target}")
    assert wrong == []
    assert followed > 10


def test_every_document_is_in_the_index() -> None:
    """A document was added and docs/README.md does not tell of it."""
    index = repository.text("docs/README.md")
    for name in repository.files():
        if name.startswith("docs/") and name.endswith((".md", ".json")) and name != "docs/README.md":
            assert f"]({name.removeprefix('docs/')})" in index, name


def _resolved(document: str, path: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(document).parent / path).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
