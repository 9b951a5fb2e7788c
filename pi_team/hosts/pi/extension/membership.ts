/** What a session remembers of its membership, as an entry of its own. */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type JsonObject, objectOf } from "./protocol.ts";

/** The type of the entry. */
export const MEMBERSHIP = "pi-team-membership";

/** The membership to go on with: of this session, not of one that it was forked from, and not left. */
export function remembered(ctx: ExtensionContext): JsonObject | undefined {
  // Of all branches, because a session is a member and not the branch that a person looks at.
  const entry = ctx.sessionManager
    .getEntries()
    .findLast((candidate) => candidate.type === "custom" && candidate.customType === MEMBERSHIP);
  if (entry?.type !== "custom") return undefined;
  const data = objectOf(entry.data);
  const foreign = typeof data["session"] === "string" && data["session"] !== ctx.sessionManager.getSessionId();
  return foreign || data["left"] === true ? undefined : data;
}
