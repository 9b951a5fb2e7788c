"""The machines do what the tables say and nothing else."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any, get_args

import pytest

from pi_team.domain import lifecycles
from pi_team.domain.lifecycles import (
    MEMBERSHIP,
    MESSAGE,
    IllegalTransition,
    MemberState,
    MemberTrigger,
    MessageTrigger,
    advance,
    advance_member,
    transition_of,
)
from pi_team.domain.model import Kind, MessageState

# The table of docs/lifecycles.md, written down once more: what a row allows is a promise to porters.
MESSAGES = """
claim     pending            processing  request result
release   processing         pending     request result
settle    processing         completed   request result
interrupt processing         interrupted request result
refuse    pending,processing interrupted request
cancel    pending,processing interrupted request
show      pending            seen        note
discard   pending,processing seen        note result
"""
MEMBERS = """
join   absent,offline,connected connected
leave  connected                offline
sweep  connected                offline
rename connected                connected
rename offline                  offline
remove offline,connected        absent
"""


def message_rows() -> dict[tuple[str, str, str], str]:
    rows = [line.split() for line in MESSAGES.strip().splitlines()]
    return {
        (kind, source, row[0]): row[2] for row in rows for source in row[1].split(",") for kind in row[3:]
    }


def member_rows() -> dict[tuple[str, str], str]:
    rows = [line.split() for line in MEMBERS.strip().splitlines()]
    return {(source, row[0]): row[2] for row in rows for source in row[1].split(",")}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_message_moves_as_the_table_says(kind: Any) -> None:
    """Every combination of kind, state and trigger is either a row or refused."""
    rows = message_rows()
    for state, trigger in itertools.product(get_args(MessageState), get_args(MessageTrigger)):
        expected = rows.get((kind, state, trigger))
        if expected is None:
            with pytest.raises(IllegalTransition, match=f"no '{trigger}' for a {kind} that is {state}"):
                advance(kind, state, trigger)
        else:
            assert advance(kind, state, trigger) == expected, (state, trigger)


@pytest.mark.parametrize(
    ("state", "trigger"), list(itertools.product(get_args(MemberState), get_args(MemberTrigger)))
)
def test_a_membership_moves_as_the_table_says(state: Any, trigger: Any) -> None:
    """Every combination of state and trigger is either a row or refused."""
    expected = member_rows().get((state, trigger))
    if expected is None:
        with pytest.raises(IllegalTransition):
            advance_member(state, trigger)
    else:
        assert advance_member(state, trigger) == expected


def test_the_types_list_what_the_tables_have() -> None:
    """The literals that the type checker knows and the data cannot drift apart."""
    for lifecycle, states, triggers in (
        (MESSAGE, MessageState, MessageTrigger),
        (MEMBERSHIP, MemberState, MemberTrigger),
    ):
        assert lifecycle.states == get_args(states)
        assert tuple(dict.fromkeys(row.trigger for row in lifecycle.transitions)) == get_args(triggers)


def test_final_states_are_left_by_nothing() -> None:
    """A settled message stays as it is for ever, and every other can still end."""
    for kind, state in itertools.product(get_args(Kind), MESSAGE.finals):
        assert not [row for row in MESSAGE.transitions if kind in row.kinds and state in row.sources]
    assert {"pending", "processing"} == lifecycles.UNSETTLED


def test_every_end_of_a_request_but_cancelling_answers_it() -> None:
    """A request without a result would leave its emitter waiting."""
    ends = {
        row.trigger for row in MESSAGE.transitions if "request" in row.kinds and row.dest in MESSAGE.finals
    }
    assert {row.trigger for row in MESSAGE.transitions if row.answers} == ends - {"cancel"}


def test_a_trigger_that_does_not_exist_is_illegal() -> None:
    """A misspelt trigger is not silently a no-op."""
    with pytest.raises(IllegalTransition, match="no 'finish' for a request"):
        advance("request", "processing", "finish")  # type: ignore[arg-type]
    with pytest.raises(IllegalTransition):
        transition_of("note", "claim")


def test_looking_at_a_team_does_not_load_the_machines() -> None:
    """The library takes longer to import than most commands take to run."""
    code = (
        "import sys, pi_team.domain.operations, pi_team.domain.views, pi_team.domain.codec\n"
        "assert 'transitions' not in sys.modules\n"
        "pi_team.domain.lifecycles.advance('note', 'pending', 'show')\n"
        "assert 'transitions' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
