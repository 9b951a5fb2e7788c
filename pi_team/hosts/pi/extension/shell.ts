/** The person's own shell commands (`!…`), of whose end Pi tells no extension: the entry of its output shows it. */

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

/** Milliseconds. A command that fails to start has no entry, and a server that was started so runs for ever. */
const COMMAND_PATIENCE = 600_000;

export class ShellCommands {
  readonly #ctx: ExtensionContext;
  #begun = 0;
  #ended = 0;
  #since = Number.NEGATIVE_INFINITY;

  constructor(ctx: ExtensionContext) {
    this.#ctx = ctx;
  }

  begun(): void {
    if (!this.isRunning) {
      this.#begun = 0;
      this.#ended = this.#entries();
    }
    this.#begun += 1;
    this.#since = performance.now();
  }

  /** Whether one is running, as far as can be known, and not for very long. */
  get isRunning(): boolean {
    if (performance.now() - this.#since >= COMMAND_PATIENCE) return false;
    if (this.#entries() - this.#ended < this.#begun) return true;
    this.#since = Number.NEGATIVE_INFINITY; // there is nothing to count until the next begins
    return false;
  }

  #entries(): number {
    const entries = this.#ctx.sessionManager.getEntries();
    return entries.filter((entry) => entry.type === "message" && entry.message.role === "bashExecution").length;
  }
}
