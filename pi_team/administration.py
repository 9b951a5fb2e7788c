"""What a person does with whole teams: create, rename, delete, examine, recover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_team.domain import operations
from pi_team.domain.codec import TeamCodec
from pi_team.engine import Engine, new_id
from pi_team.errors import PiTeamError
from pi_team.presence import PresenceDirectory
from pi_team.relocation import Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.doctor import Finding
    from pi_team.domain.model import TeamState
    from pi_team.record.directory import TeamDirectory
    from pi_team.record.locks import Patience
    from pi_team.record.recovery import SlotReport


class Administration:
    """Operations on whole teams.

    Args:
        engine: applies them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def teams(self) -> list[str]:
        """The names of the teams, sorted."""
        return self._engine.store.names()

    def create(self, team: str) -> int:
        """Create an empty team; its revision, 1.

        Refuses with NAME_INVALID, TEAM_EXISTS and UNSUPPORTED_FILESYSTEM.
        """
        state = operations.create(team)
        self._engine.store.create(team, TeamCodec(team).encode(state), self._engine.new_patience())
        self._engine.leftovers.sweep_directory()
        return 1

    def rename_team(self, team: str, new: str) -> None:
        """Rename a team in which nobody is alive; repeat it to complete one that was cut in half."""

        def rename(terms: Terms[TeamState], patience: Patience) -> None:
            self._engine.store.rename(
                team,
                new,
                before=terms,
                after=TeamCodec(new),
                retitle=lambda state: operations.retitle(state, new),
                patience=patience,
            )

        self._vacated(team, rename)

    def delete_team(self, team: str, *, damaged: bool = False) -> None:
        """Delete a team in which nobody is alive; with `damaged` also one whose record cannot be read."""
        self._vacated(
            team,
            lambda terms, patience: self._engine.store.delete(
                team, terms=terms, damaged=damaged, patience=patience
            ),
        )
        self._engine.leftovers.sweep_directory()

    def _vacated(self, team: str, act: Callable[[Terms[TeamState], Patience], None]) -> None:
        """Run a rename or a deletion, once more after watching those who could not be judged.

        Both have one patience: a session's heartbeats wait for them.
        """
        observer = self._engine.new_observer()
        undecided: tuple[Any, ...] = ()

        def vacate(state: TeamState, directory: TeamDirectory) -> tuple[TeamState, PiTeamError | None]:
            nonlocal undecided
            with PresenceDirectory(directory) as presence:
                hearing = observer.hearing(presence, state.members)
                change = operations.close_team(state, judge=hearing, now=self._engine.now(), new_id=new_id)
            undecided = hearing.undecided
            return change.state, change.refusal

        terms = Terms(TeamCodec(team), vacate)
        patience = self._engine.new_patience()
        try:
            act(terms, patience)
        except PiTeamError:
            if not undecided:
                raise
            self._engine.watch(team, undecided, observer, patience)
            act(terms, patience)

    def doctor(self, team: str | None = None) -> list[Finding]:
        """What is wrong in the teams directory and in one or every team; changes nothing."""
        from pi_team.doctor import Doctor  # noqa: PLC0415 - as a rule a mailbox is there to send

        def stamps(state: TeamState) -> float:
            return max((message.created for message in state.messages), default=0.0) / 1_000

        doctor = Doctor(
            self._engine.fs,
            self._engine.clock,
            self._engine.store,
            self._engine.leftovers,
            publisher=self._engine.publisher,
            stamps=stamps,
            lifetime=self._engine.lock_lifetime,
        )
        return doctor.examine(team)

    def revisions(self, team: str) -> list[SlotReport[TeamState]]:
        """The history of a team, oldest first, each revision read and checked."""
        from pi_team.former import FormerCodec  # noqa: PLC0415 - as a rule a mailbox is there to send
        from pi_team.record import recovery  # noqa: PLC0415 - as above

        with self._engine.store.open(team) as directory:
            return recovery.history(directory, FormerCodec(team))

    def recover(self, team: str, revision: int | None = None) -> int:
        """Restore a revision by publishing it anew; the newest intact one where the record cannot be read.

        The number of the new revision. A record that cannot be read is kept beside.
        """
        from pi_team.former import FormerCodec  # noqa: PLC0415 - as a rule a mailbox is there to send
        from pi_team.record import recovery  # noqa: PLC0415 - as above

        version = self._engine.publisher.exclusively(
            lambda: self._engine.store.open(team),
            lambda directory: recovery.recover(
                self._engine.publisher, directory, TeamCodec(team), FormerCodec(team), revision
            ),
            self._engine.new_patience(),
        )
        return version.revision
