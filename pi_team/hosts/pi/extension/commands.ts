/** The subcommands of `/team`, which can be completed and explained without the Python side. */

import type { AutocompleteItem } from "@earendil-works/pi-tui";
import { isObject, type JsonObject, textOf } from "./protocol.ts";

interface Subcommand {
  readonly arguments: string;
  readonly description: string;
  /** Whether it is for members only. */
  readonly joined?: boolean;
  /** Whether an argument is a name, which only the Python side knows. */
  readonly named?: boolean;
}

const TITLE = "A team of agent sessions on this machine";
const FIRST_STEPS =
  "First /team create TEAM, then /team join TEAM ALIAS here and, under another alias, in another session.";

/** As the Python side has them, which does them. */
const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  send: {
    arguments: "ALIAS TEXT",
    description: "ask a teammate for something",
    joined: true,
    named: true,
  },
  note: {
    arguments: "ALIAS TEXT",
    description: "tell a teammate something",
    joined: true,
    named: true,
  },
  members: { arguments: "", description: "show your teammates", joined: true },
  status: { arguments: "", description: "show what this session does, who owes whom", joined: true },
  inbox: { arguments: "", description: "show the last messages, without taking them", joined: true },
  wake: { arguments: "[TEXT]", description: "ask every teammate to check in", joined: true },
  pause: { arguments: "", description: "let requests and results wait", joined: true },
  resume: { arguments: "", description: "receive again", joined: true },
  leave: { arguments: "", description: "leave; present work is reported first", joined: true },
  join: { arguments: "TEAM ALIAS", description: "make this session a member", named: true },
  create: { arguments: "TEAM", description: "make a team" },
  list: { arguments: "", description: "show the teams" },
  "rename-member": {
    arguments: "ALIAS NEW",
    description: "rename yourself or one offline",
    joined: true,
    named: true,
  },
  remove: { arguments: "ALIAS", description: "remove an offline member", joined: true, named: true },
  "rename-team": { arguments: "TEAM NEW", description: "rename a team that nobody is in", named: true },
  delete: { arguments: "TEAM", description: "delete a team that nobody is in", named: true },
  help: { arguments: "", description: "show these commands" },
};

/** Says that what completes the text are names. */
export const NAMED = "named";

/** What completes the text after `/team `, as far as that can be said here. */
export function completed(prefix: string, joined: boolean): AutocompleteItem[] | null | typeof NAMED {
  const text = prefix.trimStart();
  const [word = "", ...more] = text.split(" ");
  if (more.length > 0) return SUBCOMMANDS[word]?.named === true ? NAMED : null;
  const items = Object.entries(SUBCOMMANDS)
    .filter(([name, subcommand]) => name.startsWith(word) && (joined || subcommand.joined !== true))
    // A menu would take the Enter that submits what is complete.
    .filter(([name, subcommand]) => name !== word || /^\w/.test(subcommand.arguments))
    .map(([name, { arguments: rest, description }]) => ({
      value: rest === "" ? name : `${name} `,
      label: name,
      description: rest === "" ? description : `${rest} — ${description}`,
    }));
  return items.length > 0 ? items : null;
}

/** The entry that shows every subcommand, also where there is no Python side. */
export function usage(joined: boolean): JsonObject {
  const rows = Object.entries(SUBCOMMANDS).map(
    ([name, subcommand]) => [`/team ${name} ${subcommand.arguments}`.trimEnd(), subcommand.description] as const,
  );
  const widest = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, description]) => `${command.padEnd(widest)}  ${description}`);
  return { kind: "help", title: TITLE, lines: joined ? lines : [...lines, FIRST_STEPS] };
}

/** What the Python side completes with. */
export function itemsOf(value: unknown): AutocompleteItem[] | null {
  const items = (Array.isArray(value) ? value : []).filter(isObject).map((item) => ({
    value: textOf(item["value"]),
    label: textOf(item["label"]),
    description: textOf(item["description"]),
  }));
  return items.length > 0 ? items : null;
}
