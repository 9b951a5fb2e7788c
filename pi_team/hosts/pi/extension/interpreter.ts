/** Which Python to run, as `pi-team pi install` has recorded it, and which version this extension has. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getAgentDir } from "@earendil-works/pi-coding-agent";
import { objectOf, TeamError, textOf, told } from "./protocol.ts";

/** Names another Python than the recorded one. */
const OVERRIDE = "PI_TEAM_PYTHON";

/** The Python to run. Throws a TeamError that says what to do where none is recorded. */
export function interpreter(): string {
  const override = process.env[OVERRIDE];
  if (override !== undefined && override !== "") return override;
  const path = join(getAgentDir(), "pi-team.json");
  let python: string;
  try {
    python = textOf(objectOf(JSON.parse(readFileSync(path, "utf8")))["python"]);
  } catch (error) {
    throw unknown(`${path} cannot be read: ${told(error)}`);
  }
  if (python === "") throw unknown(`${path} names no Python`);
  return python;
}

function unknown(why: string): TeamError {
  return new TeamError("NO_PYTHON", `pi-team does not know which Python to run: ${why}`, MEND);
}

/** What mends an installation. */
export const MEND = "`pi-team doctor` in a shell says what is wrong, `pi-team pi install` mends it.";

/** The version in the manifest beside this file. */
export function extensionVersion(): string {
  return textOf(objectOf(JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8")))["version"]);
}
