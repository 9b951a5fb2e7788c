"""The screens in the documents are what a person sees."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

import pytest

import repository

if TYPE_CHECKING:
    from pi_host.installation import Installation

CAPTURE: Final = repository.ROOT / "docs" / "capture.py"


@pytest.fixture(scope="module")
def capture() -> Any:
    spec = importlib.util.spec_from_file_location("capture", CAPTURE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("pi_installation")
def test_the_screens_in_the_documents_are_current(capture: Any, pi_installation: Installation) -> None:
    """What is shown has changed, and `python docs/capture.py` was not run."""
    shown = capture.screens()
    found: set[str] = set()
    for document in capture.DOCUMENTS:
        for name, text in capture.parts(repository.text(document)).items():
            assert capture.form(text) == capture.form(shown[name]), (document, name, pi_installation.version)
            found.add(name)
    assert found == {*shown}


def test_what_differs_each_time_is_no_change_and_all_else_is(capture: Any) -> None:
    """A screen was rewritten for another time of day; or one with another word was kept."""
    place = "<!-- screen: one -->\n```text\n{}\n```\n<!-- end of one -->"
    here = "00:01:02  0a1b2c3d  ⠙ Working for 3 s 00000000-1111-4222-8333-444444444444"
    there = "23:59:59  ffffffff  ⠸ Working for 12 s 99999999-1111-4222-8333-aaaaaaaaaaaa"
    document = place.format(here)
    assert capture.parts(document) == {"one": here}
    assert capture.refreshed(document, {"one": there}) == document
    assert capture.refreshed(document, {"one": f"{there}!"}) == place.format(f"{there}!")
    assert capture.refreshed(place.format("").replace("\n\n", "\n"), {"one": here}) == document
