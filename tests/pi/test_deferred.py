"""Turns that Pi defers, because it is still telling its extensions that an earlier run has settled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_host.model_server import Reply
from pi_team_host.team_pi import quiet

if TYPE_CHECKING:
    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_team_host.team import Team
    from pi_team_host.team_pi import StartTeamPi, TeamPi

LINGERING: Final = """
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("agent_settled", async () => {
    while (!existsSync("go-on")) await setTimeout(10);
  });
  pi.registerCommand("again", { handler: async (_, ctx) => ctx.reload() });
}
"""
"""Takes its time after ours when a run has settled, as one that notifies the person does."""
LINTING: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  let linted = false;
  pi.on("agent_settled", () => {
    if (linted) return;
    linted = true;
    pi.sendMessage({ customType: "lint", content: "Mend my file", display: true }, { triggerTurn: true });
  });
}
"""
"""Begins a turn of its own when the first run has settled."""
HESITATING: Final = """
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("before_agent_start", async ({ messageType }, ctx) => {
    if (messageType === "custom") ctx.ui.notify("hesitating");
    while (messageType === "custom" && !existsSync("begin")) await setTimeout(10);
  });
}
"""
"""Takes its time before a turn that a message starts, as a compaction does."""
PONDERING: Final = """
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("input", async ({ streamingBehavior }, ctx) => {
    if (streamingBehavior === undefined) return;
    ctx.ui.notify("pondering");
    while (!existsSync("let-in")) await setTimeout(10);
  });
}
"""
"""Takes its time over what a person types while the agent runs."""
SPOILING: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("before_agent_start", (event) => {
    const ours = event.messageType === "custom" && event.message.customType !== "lint";
    if (ours) event.systemPromptOptions.sections["no tag name"] = "x";
  });
  pi.registerCommand("lint", {
    handler: async (_, ctx) => {
      pi.sendMessage({ customType: "lint", content: "Mend my file", display: true }, { triggerTurn: true });
      await ctx.waitForIdle();
    },
  });
}
"""
"""Makes that Pi cannot prepare a turn which a teammate's message starts; and begins others."""
UNSTARTED: Final = 3
"""Seconds after which a turn that Pi has not deferred counts as not begun."""


@pytest.fixture
def go_on(pi_home: PiHome) -> Goes:
    return Goes(pi_home)


class Goes:
    """The files for which the extensions of these tests wait."""

    def __init__(self, home: PiHome) -> None:
        self._home = home

    def __call__(self, name: str = "go-on") -> None:
        (self._home.work / name).touch()

    def extensions(self, **sources: str) -> tuple[str, ...]:
        return tuple(str(self._home.extension(name, source)) for name, source in sources.items())


def settling(start_team_pi: StartTeamPi, model_server: ModelServer, **options: Any) -> TeamPi:
    """A member, started so, that has had its own turn: Pi is telling that it has settled."""
    coder = start_team_pi(model="fake-2", **options)
    coder.team("join crew coder")
    model_server.script(coder.model, "Hello.")
    mark = coder.mark()
    coder.command("prompt", message="Hello")
    coder.until("agent_end", after=mark)
    return coder


def delivered(coder: TeamPi) -> None:
    """The host has the delivery: it comes before the state that it led to."""
    coder.shows("working on a request")
    coder.state()


def test_what_another_turn_says_is_no_result(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes
) -> None:
    """The answer to another extension's message went to the teammate, and that to the request nowhere."""
    others = go_on.extensions(linting=LINTING, lingering=LINGERING)
    coder = settling(start_team_pi, model_server, extensions=others)
    request = crew.join("boss").send("coder", "Do it")
    delivered(coder)
    model_server.script("fake-2", "Private.", "For boss.")
    go_on()
    assert crew.result_of(request).body == "For boss."
    assert "Mend my file" in model_server.asked("fake-2", 2).last
    assert request in model_server.asked("fake-2", 3).last
    coder.shows("receiving")


def test_each_of_two_requests_gets_its_own_answer(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes
) -> None:
    """The first was reported as not begun, and done; the second got what was said to the first."""
    coder = settling(start_team_pi, model_server, extensions=go_on.extensions(lingering=LINGERING))
    boss = crew.join("boss")
    first, second = boss.send("coder", "The first"), boss.send("coder", "The second")
    delivered(coder)
    time.sleep(UNSTARTED + 1)  # what is to be shown is that this alone ends nothing
    assert not crew.messages(kind="result")
    model_server.script("fake-2", "Answer to the first.", "Answer to the second.")
    go_on()
    assert crew.result_of(first).body == "Answer to the first."
    assert crew.result_of(second).body == "Answer to the second."
    assert [message["details"]["id"] for message in coder.delivered()] == [first, second]


def test_a_persons_prompt_comes_first_and_takes_nothing_over(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes
) -> None:
    """A request that had not begun was reported as taken over, and then done while the session was paused."""
    coder = settling(
        start_team_pi,
        model_server,
        extensions=go_on.extensions(lingering=LINGERING),
        env={"PI_TEAM_AUTO_TURNS": "1"},
    )
    coder.send("prompt", message="Mine first")
    coder.state()
    request = crew.join("boss").send("coder", "Do it")
    delivered(coder)
    model_server.script("fake-2", "For the user.", "For boss.")
    go_on()
    assert crew.result_of(request).body == "For boss."
    mine, theirs = model_server.asked("fake-2", 2), model_server.asked("fake-2", 3)
    assert mine.last == "Mine first"
    assert "Do it" not in mine.context
    assert theirs.texts("assistant")[-1] == "For the user."
    coder.shows("receiving")  # a person was there, so that the count of turns has begun anew


def test_a_person_who_types_into_the_deferred_turn_takes_it_over(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes
) -> None:
    """What a person said to the turn before Pi had told whose it is went to the teammate."""
    coder = settling(
        start_team_pi,
        model_server,
        before=go_on.extensions(hesitating=HESITATING),
        extensions=go_on.extensions(lingering=LINGERING),
    )
    request = crew.join("boss").send("coder", "Do it")
    delivered(coder)
    go_on()
    coder.tells("hesitating")
    coder.command("prompt", message="It is me", streamingBehavior="steer")
    model_server.answer = lambda _: Reply("Between the two of us.")
    mark = coder.mark()
    go_on("begin")
    coder.settles(after=mark)
    report = crew.result_of(request).report
    assert report is not None
    assert (report.outcome, report.files) == ("interrupted", ())
    assert "Between" not in report.body
    coder.shows("paused")


@pytest.mark.parametrize("end", ["the Python side was killed", "another session began"])
def test_a_deferred_turn_that_was_given_up_does_not_ask_the_model(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes, end: str
) -> None:
    """A request was done after its result had said interrupted, without the rules and by nobody's member."""
    coder = settling(start_team_pi, model_server, extensions=go_on.extensions(lingering=LINGERING))
    boss = crew.join("boss")
    request = boss.send("coder", "Do it")
    delivered(coder)
    if end == "another session began":
        coder.command("new_session")
    else:
        coder.helper().kill()
    report = crew.result_of(request).report
    assert report is not None
    assert report.outcome == "interrupted"
    if end == "another session began":
        go_on()
        coder.team("join crew builder")
        later = boss.send("builder", "And this")
    else:
        coder.shows("paused")
        mark = coder.mark()
        go_on()
        coder.until(lambda record: record["type"] == "agent_settled" and record["aborted"], after=mark)
        coder.team("resume")
        later = boss.send("coder", "And this")
    model_server.script("fake-2", "Done.")
    assert crew.result_of(later).body == "Done."
    assert len(model_server.requests) == 2


def test_a_request_that_got_into_a_persons_turn_has_failed(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes
) -> None:
    """What the person's own turn said went to the teammate, or the request stayed claimed for ever."""
    others = go_on.extensions(pondering=PONDERING, lingering=LINGERING)
    coder = start_team_pi(model="fake-2", extensions=others)
    coder.team("join crew coder")
    hold = model_server.held("fake-2", "Hello.")
    coder.begin("Hello")
    hold.wait_reached()
    coder.send("prompt", message="Mine too", streamingBehavior="steer")
    coder.tells("pondering")
    mark = coder.mark()
    hold.release()
    coder.until("agent_end", after=mark)
    request = crew.join("boss").send("coder", "Do it")
    delivered(coder)
    hold = model_server.held("fake-2", "For the user.")
    go_on("let-in")
    hold.wait_reached()
    go_on()
    coder.settles(after=mark)
    model_server.script("fake-2", "For both.")
    hold.release()
    report = crew.result_of(request).report
    assert report is not None
    assert report.outcome == "failed"
    assert "that was not begun for it" in report.body
    assert "For" not in report.body
    quiet(coder, lambda: [level for level, _ in coder.notifications if level == "error"] == [])


@pytest.mark.parametrize("next_run", ["a person's", "another extension's"])
def test_a_run_after_one_that_pi_could_not_prepare_is_not_the_teams(
    start_team_pi: StartTeamPi, crew: Team, model_server: ModelServer, go_on: Goes, next_run: str
) -> None:
    """The answer to what came next, before it was clear that nothing had begun, went to the teammate."""
    coder = start_team_pi(model="fake-2", extensions=go_on.extensions(spoiling=SPOILING))
    coder.team("join crew coder")
    mark = coder.mark()
    request = crew.join("boss").send("coder", "Do it")
    coder.until("extension_error", after=mark)
    model_server.script("fake-2", "Private.")
    if next_run == "a person's":
        assert coder.ask("Something of mine") == "Private."
    else:
        coder.ask("/lint")
    report = crew.result_of(request).report
    assert report is not None
    assert report.outcome == "failed"
    assert "did not start" in report.body
    assert "Private" not in report.body
    coder.shows("receiving")
