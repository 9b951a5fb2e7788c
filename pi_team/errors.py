"""One hierarchy of errors; each has a stable code, says who erred and whether a retry is safe.

The codes are part of the public interface; `docs/errors.md` has the table made from this module, and a
test keeps the two equal. Every error is raised before anything was changed, except
:class:`OutcomeUnknown` and :class:`TeamMoved`, which cannot know, and :class:`OutputError`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Fault = Literal["caller", "state", "record", "system"]
"""Who erred: the caller's input, the team's present state, the files of the record, the machine."""


class PiTeamError(Exception):
    """Base of all errors that pi-team raises on purpose.

    Args:
        message: what is wrong, one line, without a final full stop being required.
        hint: what to do about it, one line; the class's own hint where none is given.
    """

    code: ClassVar[str]
    fault: ClassVar[Fault]
    retryable: ClassVar[bool] = False
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def to_json(self) -> dict[str, object]:
        """The error as the object that ``--json`` prints: code, message, hint, retryable."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "retryable": self.retryable}


# --- the caller's input ---------------------------------------------------------------------------


class UsageError(PiTeamError):
    """The command line or the arguments of a call make no sense."""

    code = "USAGE"
    fault = "caller"
    default_hint = "See --help."


class ConfirmationRequired(PiTeamError):
    """A destructive command needs an answer and nobody can be asked."""

    code = "CONFIRMATION_REQUIRED"
    fault = "caller"
    default_hint = "Repeat it with --yes."


class CommandNotFound(PiTeamError):
    """The program that `work` is to run does not exist or is not executable."""

    code = "COMMAND_NOT_FOUND"
    fault = "caller"
    default_hint = "Check the spelling and PATH; nothing was joined."


class NameInvalid(PiTeamError):
    """A team name or an alias does not fit `[a-z][a-z0-9-]{0,47}`."""

    code = "NAME_INVALID"
    fault = "caller"
    default_hint = "Use 1 to 48 lower-case letters, digits and hyphens, beginning with a letter."


class SelfAddressed(PiTeamError):
    """A message addressed to its own sender."""

    code = "SELF_ADDRESSED"
    fault = "caller"
    default_hint = "Address a teammate."


class ReportInvalid(PiTeamError):
    """A result's report has the wrong shape or is too large."""

    code = "REPORT_INVALID"
    fault = "caller"


class LimitError(PiTeamError):
    """Base of the LIMIT_* codes: an input or the team has reached a documented number."""

    fault: ClassVar[Fault] = "caller"


class LimitSubject(LimitError):
    """The subject is blank or longer than 160 characters."""

    code = "LIMIT_SUBJECT"
    default_hint = "Give a subject of 1 to 160 characters; put the rest into the body."


class LimitBody(LimitError):
    """The body is longer than 16,000 bytes of UTF-8."""

    code = "LIMIT_BODY"
    default_hint = "Put long material into a file and send its path."


class LimitInput(LimitError):
    """The whole send input is longer than 20,000 bytes as JSON."""

    code = "LIMIT_INPUT"
    default_hint = "Put long material into a file and send its path."


class LimitIdentifier(LimitError):
    """A session id, message id or working directory is empty or too long."""

    code = "LIMIT_IDENTIFIER"


class LimitMembers(LimitError):
    """The team has 100 members."""

    code = "LIMIT_MEMBERS"
    fault = "state"
    default_hint = "Remove a member that is no longer needed."


class LimitHistory(LimitError):
    """The team has 500 records, counting the reserved ones."""

    code = "LIMIT_HISTORY"
    fault = "state"
    default_hint = "Go on in a new team; nothing is ever deleted from a team's history."


class LimitRecipient(LimitError):
    """The recipient's 50 slots are taken."""

    code = "LIMIT_RECIPIENT"
    fault = "state"
    retryable = True
    default_hint = "Wait until the recipient has settled something."


class LimitSender(LimitError):
    """The sender's own 50 slots are taken; a request reserves one for its result."""

    code = "LIMIT_SENDER"
    fault = "state"
    retryable = True
    default_hint = "Take what is waiting for you, or wait for results, before you ask for more."


class LimitThread(LimitError):
    """The thread has 8 messages besides results."""

    code = "LIMIT_THREAD"
    fault = "state"
    default_hint = "Start a new thread: send without a parent."


class LimitRecord(LimitError):
    """The record would be larger than 32,000,000 bytes."""

    code = "LIMIT_RECORD"
    fault = "state"
    default_hint = "Go on in a new team."


class ProtocolError(PiTeamError):
    """A host's message to its bridge is malformed, unknown, or out of its place."""

    code = "PROTOCOL"
    fault = "caller"
    default_hint = "docs/session.md describes the messages."


class ProtocolVersionError(PiTeamError):
    """The host's extension and its bridge speak different versions of their protocol."""

    code = "PROTOCOL_VERSION"
    fault = "caller"
    default_hint = "Run `pi-team pi install` again and restart Pi."


# --- the team's present state ---------------------------------------------------------------------


class TeamUnknown(PiTeamError):
    """There is no team of that name."""

    code = "TEAM_UNKNOWN"
    fault = "caller"
    default_hint = "`pi-team teams` lists them; `pi-team create NAME` makes one."


class TeamExists(PiTeamError):
    """A team of that name exists already."""

    code = "TEAM_EXISTS"
    fault = "state"
    default_hint = "Choose another name, or use the team that is there."


class TeamActive(PiTeamError):
    """A member is alive or its state is unknown, so the team can be neither renamed nor deleted."""

    code = "TEAM_ACTIVE"
    fault = "state"
    retryable = True
    default_hint = "Let the members leave, or end their processes, and repeat."


class AliasAlive(PiTeamError):
    """The alias belongs to a living session, or to one whose state is not known yet."""

    code = "ALIAS_ALIVE"
    fault = "state"
    retryable = True
    default_hint = "Choose another alias, or let that session leave."


class AliasExists(PiTeamError):
    """The new alias is a member already or an endpoint of an unsettled message."""

    code = "ALIAS_EXISTS"
    fault = "state"
    default_hint = "Choose another alias."


class MemberUnknown(PiTeamError):
    """The team has no member of that alias."""

    code = "MEMBER_UNKNOWN"
    fault = "caller"
    default_hint = "`pi-team members TEAM` lists them."


class MemberAlive(PiTeamError):
    """The member is alive or its state is unknown, so it can be neither removed nor renamed by others."""

    code = "MEMBER_ALIVE"
    fault = "state"
    retryable = True
    default_hint = "Let that session leave, or end its process, and repeat."


class MembershipLost(PiTeamError):
    """The caller's alias and token are no connected member any more: replaced, renamed, removed or swept."""

    code = "MEMBERSHIP_LOST"
    fault = "state"
    default_hint = "Join again."


class RecipientUnknown(PiTeamError):
    """The recipient is not a member of the team."""

    code = "RECIPIENT_UNKNOWN"
    fault = "caller"


class ParentUnknown(PiTeamError):
    """The message that this one answers does not exist or does not involve the sender."""

    code = "PARENT_UNKNOWN"
    fault = "caller"
    default_hint = "`pi-team log TEAM` shows the ids."


class MessageUnknown(PiTeamError):
    """No message has that id, or the beginning of an id that was given fits several."""

    code = "MESSAGE_UNKNOWN"
    fault = "caller"
    default_hint = "`pi-team log TEAM` shows the ids."


class ParentNotCompleted(PiTeamError):
    """More work was asked for from a parent whose result failed or was interrupted."""

    code = "PARENT_NOT_COMPLETED"
    fault = "state"
    default_hint = "Send a new request without a parent, if that work is still wanted."


class Duplicate(PiTeamError):
    """The same sender, recipient, subject and body were sent within 60 s."""

    code = "DUPLICATE"
    fault = "state"
    retryable = True
    default_hint = "It is queued already; wait a minute to send it again on purpose."


class NotClaimed(PiTeamError):
    """The message is not claimed by the caller."""

    code = "NOT_CLAIMED"
    fault = "state"


class AlreadyClaiming(PiTeamError):
    """A message to the caller's alias is being processed already."""

    code = "ALREADY_CLAIMING"
    fault = "state"
    retryable = True
    default_hint = "Settle or release it first."


class Busy(PiTeamError):
    """Other writers held the locks, or won every retry, for 15 s."""

    code = "BUSY"
    fault = "state"
    retryable = True
    default_hint = "Repeat it; `pi-team doctor` names the locks that nobody holds any more."


class TeamMoved(PiTeamError):
    """The team was renamed, deleted or created anew while the operation was under way."""

    code = "TEAM_MOVED"
    fault = "state"
    default_hint = "Look with `pi-team teams` where the team is now, and whether the change is in it."


class OutcomeUnknown(PiTeamError):
    """An error came after the point of no return: the change may take effect, now or later."""

    code = "OUTCOME_UNKNOWN"
    fault = "system"
    default_hint = "Look with `pi-team log TEAM` before repeating it."


# --- the files of the record ----------------------------------------------------------------------


class RecordCorrupt(PiTeamError):
    """The record cannot be read: not JSON, a wrong hash, a wrong revision or a broken payload."""

    code = "RECORD_CORRUPT"
    fault = "record"
    default_hint = "`pi-team recover TEAM` shows what is intact; the file was left as it is."


class RecordMissing(PiTeamError):
    """The team's directory has no record."""

    code = "RECORD_MISSING"
    fault = "record"
    default_hint = "`pi-team recover TEAM` restores the newest intact revision."


class RecordUnsafe(PiTeamError):
    """A file or directory is a link, somebody else's, open to others, not of its kind, or too large."""

    code = "RECORD_UNSAFE"
    fault = "record"
    default_hint = "`pi-team doctor` says what is wrong; nothing is repaired silently."


class UnsupportedSchema(PiTeamError):
    """The record has a schema version that this release does not know."""

    code = "UNSUPPORTED_SCHEMA"
    fault = "record"
    default_hint = "A newer pi-team wrote it: upgrade this one."


# --- the machine ----------------------------------------------------------------------------------


class UnsupportedFilesystem(PiTeamError):
    """The file system lacks what the protocol needs (hard links, one identity, directory fsync, rename)."""

    code = "UNSUPPORTED_FILESYSTEM"
    fault = "system"
    default_hint = "Put PI_CODING_AGENT_DIR on a local file system."


class StorageError(PiTeamError):
    """The operating system refused: disk full, read-only, no permission, no descriptors, an I/O error."""

    code = "STORAGE"
    fault = "system"
    retryable = True
    default_hint = "Nothing was changed; mend the cause and repeat."


class OutputError(PiTeamError):
    """The output could not be written; what was done before that stays done."""

    code = "OUTPUT"
    fault = "system"
    default_hint = "Look, with `pi-team log TEAM` for example, before you repeat it."


class PiSettings(PiTeamError):
    """Pi's settings cannot be read as Pi reads them, or have no place for an extension."""

    code = "PI_SETTINGS"
    fault = "state"
    default_hint = "Mend the file by hand; it was left as it is."


class PiConflict(PiTeamError):
    """The TypeScript pi-team is in Pi, which has the same command and the same tools."""

    code = "PI_CONFLICT"
    fault = "state"
    default_hint = "`pi list` shows it and `pi remove SOURCE` removes it; teams and messages are kept."


class PiEnvironment(PiTeamError):
    """The Python environment is not one that Pi's extension can be run from."""

    code = "PI_ENVIRONMENT"
    fault = "system"
    default_hint = (
        "Install pi-team to stay (`uv tool install`, `pipx install`, a venv) and repeat it from there."
    )


class TimedOut(PiTeamError):
    """A result did not come in the time given; the request stays queued."""

    code = "TIMED_OUT"
    fault = "state"
    retryable = True


class DemoFailed(PiTeamError):
    """Something that `pi-team demo` claims does not hold on this machine."""

    code = "DEMO_FAILED"
    fault = "system"
    default_hint = "`pi-team doctor` checks the file system and the clock; please report it."


class InternalError(PiTeamError):
    """A defect of pi-team itself: an exception that none of these codes describes."""

    code = "INTERNAL"
    fault = "system"
    default_hint = "PI_TEAM_DEBUG=1 shows the traceback; please report it."
