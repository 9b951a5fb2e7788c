"""The entry point: arguments in, exit status out, every failure said once and in one form."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final

from pi_team._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from pi_team.errors import UsageError

__all__ = ["main"]

_PROGRAM: Final = "pi-team"
_COMPLETE: Final = "_PI_TEAM_COMPLETE"
"""Set by the completion scripts; click answers them before it parses anything."""
_PIPE_CLOSED: Final = 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: the words after the program's name; those of the process where none are given.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:  # answered before anything is imported; `app` has the option too
        with contextlib.suppress(OSError):  # which `app` runs into as well, and can tell
            print(f"{_PROGRAM} {__version__}", flush=True)
            return 0
    return _complete(words) if os.environ.get(_COMPLETE) else _guarded(words)


def _guarded(words: list[str]) -> int:
    """Run the words; every way of ending becomes an exit status."""
    from pi_team.cli import signals  # noqa: PLC0415 - start-up, see main

    _print_anything()
    try:
        with signals.stoppable():
            return _reported(words)
    except signals.Stopped as stopped:
        return stopped.exit_status
    finally:
        _let_go_of_streams()


def _reported(words: list[str]) -> int:
    """Run the words and say what went wrong."""
    from pi_team.cli import failures  # noqa: PLC0415 - start-up, see main
    from pi_team.errors import PiTeamError  # noqa: PLC0415 - as above

    as_json = _wants_json(words)
    try:
        return _invoke(words, as_json=as_json)
    except BrokenPipeError:  # the reader of our output has left (`| head`): as a program killed by SIGPIPE
        return _PIPE_CLOSED
    except PiTeamError as error:
        return failures.report(error, as_json=as_json)
    except Exception as defect:  # noqa: BLE001 - the last line of defence; it says what happened
        return failures.report(failures.as_internal(defect), as_json=as_json)


def _invoke(words: list[str], *, as_json: bool) -> int:
    """Let click parse the words and run the sub-command; its own complaints become ours.

    Not through click's `main`, which has ways of its own to end a program.
    """
    import click  # noqa: PLC0415 - start-up, see main

    from pi_team.cli.app import app  # noqa: PLC0415 - as above
    from pi_team.cli.output import Output  # noqa: PLC0415 - as above
    from pi_team.errors import UsageError  # noqa: PLC0415 - as above

    try:
        with app.make_context(_PROGRAM, words, obj=Output(as_json=as_json)) as context:
            status = app.invoke(context)
    except click.exceptions.Exit as end:  # --help and --version
        return end.exit_code
    except click.UsageError as error:
        raise _usage_error(error, words, as_json=as_json) from error
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    return status if isinstance(status, int) else 0


def _usage_error(error: click.UsageError, words: Sequence[str], *, as_json: bool) -> UsageError:
    from click.exceptions import NoArgsIsHelpError  # noqa: PLC0415 - start-up, see main

    from pi_team.cli.output import write  # noqa: PLC0415 - as above
    from pi_team.errors import UsageError  # noqa: PLC0415 - as above

    path = _path_of(words) if error.ctx is None else error.ctx.command_path
    if isinstance(error, NoArgsIsHelpError):
        if not as_json:
            write(error.format_message() + "\n", sys.stderr)
        return UsageError("no command was given", hint=f"`{path} --help` lists them.")
    return UsageError(error.format_message(), hint=f"`{path} --help` shows the usage.")


def _path_of(words: Sequence[str]) -> str:
    """The command that the words begin with, for what click's parser refuses without naming it."""
    import click  # noqa: PLC0415 - start-up, see main

    from pi_team.cli.app import app  # noqa: PLC0415 - as above

    path = _PROGRAM
    command: click.Command | None = app
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
        if command is not None:
            path += f" {word}"
    return path


def _wants_json(words: Sequence[str]) -> bool:
    """Whether --json was given, also on a line that click refuses; what follows `--` is somebody else's."""
    own = words[: words.index("--")] if "--" in words else words
    return "--json" in own


def _print_anything() -> None:
    """No text may make printing fail, whatever the locale's encoding."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _complete(words: list[str]) -> int:
    """Answer a shell's question; a completion must never disturb the line being typed."""
    with contextlib.suppress(Exception, SystemExit):
        from pi_team.cli.app import app  # noqa: PLC0415 - start-up, see main

        app.main(words, prog_name=_PROGRAM, complete_var=_COMPLETE)
    return 0


def _let_go_of_streams() -> None:
    """Flush what can be flushed; what nobody takes must not change the exit status when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
