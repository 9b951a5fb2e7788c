"""An extension's TypeScript, checked against the types of the installed Pi."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from pi_host.installation import NODE

if TYPE_CHECKING:
    from pathlib import Path

    from pi_host.installation import Installation

OPTIONS: Final = {
    "allowImportingTsExtensions": True,
    "erasableSyntaxOnly": True,
    "exactOptionalPropertyTypes": True,
    "lib": ["es2023"],
    "module": "nodenext",
    "noEmit": True,
    "noImplicitOverride": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "skipLibCheck": True,
    "strict": True,
    "target": "es2023",
    "types": ["node"],
}
"""Pi strips the types of an extension and runs the rest: only what can be stripped may be there."""


def check(installation: Installation, extension: str, scratch: Path) -> list[str]:
    """What the compiler has against an extension.

    Args:
        installation: whose types count.
        extension: a directory with the `.ts` files.
        scratch: an empty directory: the extension is copied below it, so that its imports find the
            installed packages and nothing is written beside it.
    """
    copy = scratch / "extension"
    shutil.copytree(extension, copy, ignore=shutil.ignore_patterns("node_modules"))
    (scratch / "node_modules").symlink_to(installation.modules)
    if not (copy / "package.json").exists():
        (copy / "package.json").write_text('{"type":"module"}', "utf-8")
    config = scratch / "tsconfig.json"
    config.write_text(json.dumps({"compilerOptions": OPTIONS, "include": ["extension/**/*.ts"]}), "utf-8")
    compiler = os.path.join(installation.modules, "typescript", "bin", "tsc")
    ended = subprocess.run(
        [NODE, compiler, "--pretty", "false", "-p", str(config)],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in {0, 1, 2}, ended.stderr
    found = ended.stdout.splitlines()
    assert bool(found) == (ended.returncode != 0), ended
    return found
