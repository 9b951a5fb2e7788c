/** The subcommands of `/team` that can be completed and explained without the Python side. */

import type { AutocompleteItem } from "@earendil-works/pi-tui";
import type { JsonObject } from "./protocol.ts";

interface Subcommand {
  readonly arguments: string;
  readonly description: string;
  /** Whether an argument is a name, which only the Python side knows. */
  readonly named: boolean;
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  create: { arguments: "TEAM", description: "create a team", named: false },
  join: { arguments: "TEAM ALIAS", description: "join a team under an alias", named: true },
  list: { arguments: "", description: "list the teams", named: false },
  members: { arguments: "", description: "list your teammates", named: false },
  status: { arguments: "", description: "show who owes whom a result", named: false },
  send: { arguments: "ALIAS TEXT", description: "ask a teammate for something", named: true },
  note: { arguments: "ALIAS TEXT", description: "tell a teammate something", named: true },
  wake: { arguments: "[TEXT]", description: "ask every teammate to check in", named: false },
  inbox: { arguments: "", description: "show your last messages", named: false },
  pause: { arguments: "", description: "receive nothing for now", named: false },
  resume: { arguments: "", description: "receive again", named: false },
  leave: { arguments: "", description: "leave the team", named: false },
  "rename-member": { arguments: "ALIAS NEW", description: "give a member another alias", named: true },
  remove: { arguments: "ALIAS", description: "remove a member", named: true },
  "rename-team": { arguments: "TEAM NEW", description: "rename a team", named: true },
  delete: { arguments: "TEAM", description: "delete a team and its messages", named: true },
};

/** Says that what completes the text are names. */
export const NAMED = "named";

/** What completes the text after `/team `, as far as that can be said here. */
export function completed(prefix: string): AutocompleteItem[] | null | typeof NAMED {
  const text = prefix.trimStart();
  const [word = "", ...more] = text.split(" ");
  if (more.length > 0) return SUBCOMMANDS[word]?.named === true ? NAMED : null;
  const items = Object.entries(SUBCOMMANDS)
    .filter(([name]) => name.startsWith(word))
    .map(([name, { arguments: rest, description }]) => ({
      value: rest === "" ? name : `${name} `,
      label: name,
      description: rest === "" ? description : `${rest} — ${description}`,
    }));
  return items.length > 0 ? items : null;
}

/** The entry that shows every subcommand. */
export function usage(): JsonObject {
  const rows = Object.entries(SUBCOMMANDS).map(
    ([name, subcommand]) => [`/team ${name} ${subcommand.arguments}`.trimEnd(), subcommand.description] as const,
  );
  const widest = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, description]) => `${command.padEnd(widest)}  ${description}`);
  return { kind: "usage", title: "pi-team: join a team of agent sessions on this machine", lines };
}
