"""The main job, on the command line: a worker in one process, who asks in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trials import shell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_request_is_answered_by_a_worker_in_another_process(tmp_path: Path) -> None:
    """`create`, `work`, `ask`, `log`, each as typed: the output comes back, the record has it once."""
    path = tmp_path / "agent" / "teams"
    shell("pi-team create crew", path)
    environment = os.environ | {"PI_CODING_AGENT_DIR": str(path.parent)}
    command = [sys.executable, "-m", "pi_team", "work", "crew", "bob", "--json", "--", "tr", "a-z", "A-Z"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["event"] == "joined"
        answer = shell("pi-team ask crew bob 'say it louder' --as alice --json", path)
        (log,) = [json.loads(shell("pi-team log crew --json", path))]
        worker.terminate()
        assert worker.wait(30) == 143
    request, result = log["messages"]
    assert "SAY IT LOUDER" in result["body"]
    assert json.loads(answer)["id"] == result["id"]
    assert (request["kind"], request["state"], request["body"]) == ("request", "completed", "say it louder")
    assert (result["kind"], result["parentId"], result["to"]) == ("result", request["id"], "alice")
    assert result["result"]["outcome"] == "completed"
    assert shell("pi-team doctor", path).startswith("Nothing is wrong")
