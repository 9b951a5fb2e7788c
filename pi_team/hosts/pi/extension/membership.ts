/** What a session remembers of its membership, as an entry of its own. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type JsonObject, objectOf, TeamError, told } from "./protocol.ts";

/** The type of the entry. */
const MEMBERSHIP = "pi-team-membership";

export class Membership {
  readonly #pi: ExtensionAPI;
  #entry: JsonObject | undefined;
  #isWritten = true;
  #told: string | undefined;

  constructor(pi: ExtensionAPI) {
    this.#pi = pi;
  }

  /** Take up what this very session has remembered; whether there is anything. */
  restore(ctx: ExtensionContext): boolean {
    this.#entry = remembered(ctx);
    return this.#entry !== undefined;
  }

  /** The last entry, written or not; undefined where there is nothing to go on with. */
  get entry(): JsonObject | undefined {
    return this.#entry;
  }

  /** Write an entry. One that could not be written is kept; throws as `write` does. */
  remember(entry: JsonObject): void {
    this.#entry = entry;
    this.#isWritten = false;
    this.write();
  }

  /**
   * Whether the last entry is written, after one more try where it is not.
   *
   * Throws where that fails for another reason than the last time, so that it is told once.
   */
  write(): boolean {
    if (this.#isWritten) return true;
    try {
      this.#pi.appendEntry(MEMBERSHIP, this.#entry);
    } catch (error) {
      const why = told(error);
      if (why === this.#told) return false;
      this.#told = why;
      throw new TeamError("UNWRITTEN", `this session cannot be written, so that it receives nothing: ${why}`);
    }
    this.#isWritten = true;
    this.#told = undefined;
    return true;
  }
}

/** The membership to go on with: of this session, not of one that it was forked from, and not left. */
function remembered(ctx: ExtensionContext): JsonObject | undefined {
  // Of all branches, because a session is a member and not the branch that a person looks at.
  const entry = ctx.sessionManager
    .getEntries()
    .findLast((candidate) => candidate.type === "custom" && candidate.customType === MEMBERSHIP);
  if (entry?.type !== "custom") return undefined;
  const data = objectOf(entry.data);
  const foreign = typeof data["session"] === "string" && data["session"] !== ctx.sessionManager.getSessionId();
  return foreign || data["left"] === true ? undefined : data;
}
