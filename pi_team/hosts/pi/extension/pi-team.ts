/**
 * The Pi extension of pi-team: what Pi loads.
 *
 * Being installed joins nothing, starts nothing and gives the model nothing. `/team` starts the Python side,
 * as does a session that was a member before. Membership is for sessions that people work with: in the
 * terminal, and over RPC, through which editors embed Pi.
 */

import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { TeamSession } from "./session.ts";
import { registerViews } from "./views.ts";

const COMMAND = "team";
const TAKEN_COMMAND = /^team(?::\d+)?$/; // Pi numbers the commands of a name that several extensions have
const TAKEN_TOOL = /^team_(?:members|send|status)$/;
const HERE = real(fileURLToPath(import.meta.url));

/** Which copy of this extension serves the process: modules may be loaded anew, the process is one. */
const OWNER: unique symbol = Symbol.for("pi-team.extension.owner");
const shared = globalThis as { [OWNER]?: string };

export default function piTeam(pi: ExtensionAPI): void {
  let session: TeamSession | undefined;

  registerViews(pi);

  pi.on("session_start", ({ reason }, ctx) => {
    const rival = anotherCopy() ?? another(pi);
    if (rival !== undefined) {
      ctx.ui.notify(`pi-team: this copy (${HERE}) steps back: ${rival}`, "warning");
      return;
    }
    shared[OWNER] = HERE;
    const current = new TeamSession(pi, ctx);
    session = current;
    // Registered now and not while loading, when it could not be known whether the name is taken.
    pi.registerCommand(COMMAND, {
      description: "Work in a team of agent sessions on this machine",
      getArgumentCompletions: (prefix) => (ctx.hasUI ? current.complete(prefix) : null),
      handler: (line, { hasUI }) => commanded(pi, current, line.trim(), hasUI),
    });
    if (ctx.hasUI) current.restore(reason);
  });

  pi.on("session_shutdown", async ({ reason }) => {
    if (session === undefined) return;
    delete shared[OWNER];
    await session.shutdown(reason); // and hears on: what Pi has deferred may begin even now
  });

  pi.on("input", ({ source }) => {
    if (source !== "extension") session?.typed();
  });
  pi.on("user_bash", () => session?.shellBegun());
  pi.on("ui_prompt_start", () => session?.promptOpened());
  pi.on("ui_prompt_end", () => session?.promptClosed());
  pi.on("before_agent_start", (event) => {
    const message = event.messageType === "custom" ? event.message : undefined;
    session?.beforeRun(event.systemPromptOptions.sections, message);
  });
  pi.on("agent_start", () => session?.runStarted());
  pi.on("agent_settled", ({ aborted }) => session?.settled(aborted));
  pi.on("message_end", ({ message }) => {
    if (message.role === "assistant") session?.run.said(message);
    else if (message.role === "custom") session?.entered(message);
  });
  pi.on("tool_result", ({ toolName, input, isError }, { cwd }) => {
    if (!isError && (toolName === "edit" || toolName === "write")) session?.run.changed(input["path"], cwd);
  });
}

async function commanded(pi: ExtensionAPI, session: TeamSession, line: string, hasUI: boolean): Promise<void> {
  // An error is all that somebody without an interface gets to see of an extension.
  if (!hasUI) throw new Error("pi-team: only a session with a person joins a team: in the terminal, or over RPC");
  const rival = another(pi);
  if (rival !== undefined) throw new Error(`pi-team: ${rival}`);
  await session.command(line);
}

function anotherCopy(): string | undefined {
  const owner = shared[OWNER];
  return owner === undefined || owner === HERE ? undefined : `pi-team is loaded twice, also from ${owner}`;
}

/** What another extension has that is ours: the TypeScript pi-team has the same command and tools. */
function another(pi: ExtensionAPI): string | undefined {
  const commands = pi.getCommands().filter(({ name, source }) => source === "extension" && TAKEN_COMMAND.test(name));
  const tools = pi.getAllTools().filter(({ name }) => TAKEN_TOOL.test(name));
  const owner = [...commands, ...tools].map(({ sourceInfo }) => sourceInfo.path).find((path) => real(path) !== HERE);
  return owner === undefined ? undefined : `${owner} has registered /${COMMAND} or its tools; remove one of the two`;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
