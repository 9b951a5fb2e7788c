/** The three tools of a member. They are there while the session is one, and what they do is the Python side's. */

import { StringEnum } from "@earendil-works/pi-ai";
import type { AgentToolResult, ExtensionAPI, Theme } from "@earendil-works/pi-coding-agent";
import { Text } from "@earendil-works/pi-tui";
import { type TObject, Type } from "typebox";
import { type JsonObject, objectOf, TeamError, textOf, told } from "./protocol.ts";
import { harmless, oneLine } from "./views.ts";

type Call = (name: string, params: JsonObject) => Promise<JsonObject>;

interface Tool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly snippet: string;
  readonly parameters: TObject;
}

const FOLDED_LINES = 6;

const TOOLS: readonly Tool[] = [
  {
    name: "team_members",
    label: "team members",
    description:
      "List your teammates with their status and the tail of their working directory. " +
      "You yourself are not in the list.",
    snippet: "List your teammates",
    parameters: Type.Object({}),
  },
  {
    name: "team_send",
    label: "team send",
    description:
      "Queue a message for a teammate. A request asks for work and yields exactly one result, which comes to " +
      "you later by itself: do not wait or poll for it. A note informs and yields nothing. The answer says that " +
      "the message is queued, never that anything was done. A message that you send while you work on a " +
      "teammate's request belongs to that request's thread.",
    snippet: "Send a request or a note to a teammate",
    parameters: Type.Object({
      to: Type.String({ description: "Alias of the teammate" }),
      kind: StringEnum(["request", "note"], { description: "request: work that you want a result of; note: information" }),
      subject: Type.String({ description: "One line, 1 to 160 characters" }),
      body: Type.String({
        description: "The text, at most 16,000 bytes; it has to make sense to somebody who knows nothing of your session",
      }),
    }),
  },
  {
    name: "team_status",
    label: "team status",
    description:
      "Show how things stand: what you asked for and have no result of, what is queued for you, results that you " +
      "have not reviewed, and what others owe each other.",
    snippet: "Show which requests of the team are unresolved",
    parameters: Type.Object({}),
  },
];

export class Tools {
  readonly #pi: ExtensionAPI;
  readonly #call: Call;
  /** The tools that Pi lets this session have, once they are registered. */
  #allowed: string[] | undefined;
  #on = false;

  constructor(pi: ExtensionAPI, call: Call) {
    this.#pi = pi;
    this.#call = call;
  }

  /** Give the tools to the model, or take them away. Throws where another extension has one of that name. */
  set(on: boolean): void {
    if (on === this.#on) return;
    if (on && this.#allowed === undefined) this.#register();
    const others = this.#pi.getActiveTools().filter((name) => !TOOLS.some((tool) => tool.name === name));
    this.#pi.setActiveTools(on ? [...others, ...(this.#allowed ?? [])] : others);
    this.#on = on;
  }

  #register(): void {
    const taken = this.#pi.getAllTools().find(({ name }) => TOOLS.some((tool) => tool.name === name));
    if (taken !== undefined) {
      const owner = taken.sourceInfo.path;
      throw new TeamError("TOOL_TAKEN", `${taken.name} belongs to ${owner}, so the model has no team tools`);
    }
    for (const tool of TOOLS) this.#pi.registerTool(definition(tool, this.#call));
    // Which tools there are may be restricted on the command line: what Pi did not activate stays so.
    const active = new Set(this.#pi.getActiveTools());
    this.#allowed = TOOLS.map(({ name }) => name).filter((name) => active.has(name));
  }
}

function definition(tool: Tool, call: Call): Parameters<ExtensionAPI["registerTool"]>[0] {
  return {
    name: tool.name,
    label: tool.label,
    description: tool.description,
    promptSnippet: tool.snippet,
    parameters: tool.parameters,
    async execute(_id, params) {
      try {
        const answer = await call(tool.name, known(tool, objectOf(params)));
        return result(textOf(answer["text"]), objectOf(answer["details"]), answer["isError"] === true);
      } catch (error) {
        return result(told(error), {}, true);
      }
    },
    renderCall: (args, theme) => new Text(called(tool.name, objectOf(args), theme), 0, 0),
    renderResult: ({ content }, { expanded }, theme) => {
      const [first] = content;
      const lines = harmless(first?.type === "text" ? first.text : "").trimEnd().split("\n");
      const more = expanded ? 0 : Math.max(0, lines.length - FOLDED_LINES);
      const visible = (more > 0 ? lines.slice(0, FOLDED_LINES) : lines).map((line) => theme.fg("toolOutput", line));
      if (more > 0) visible.push(theme.fg("muted", `… ${more} more lines`));
      return new Text(visible.join("\n"), 0, 0);
    },
  };
}

/** The parameters that the tool has; a model may give others too, of any size and depth. */
function known({ parameters }: Tool, given: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(parameters.properties, name)));
}

function result(text: string, details: JsonObject, isError: boolean): AgentToolResult<unknown> {
  return { content: [{ type: "text", text }], details, isError };
}

/** The call in one line: `team_send request → coder  the subject`. */
function called(name: string, args: JsonObject, theme: Theme): string {
  const title = theme.fg("toolTitle", theme.bold(name));
  const to = oneLine(textOf(args["to"]));
  if (to === "") return title;
  const ends = `${theme.fg("muted", `${oneLine(textOf(args["kind"]))} →`)} ${theme.fg("accent", to)}`;
  return `${title} ${ends}  ${oneLine(textOf(args["subject"]))}`;
}
