/** What is kept of a run of the agent until it settles. */

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "./protocol.ts";

/** Far above what the Python side keeps of a text or an error; and with the files both fit into a line of any kind. */
const TEXT_CHARACTERS = 20_000;
const FILES_BYTES = 700_000;

/** What Pi's file tools take for a space in a path, as models write it. */
const SPACES = /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g;

/** The parts of an assistant's message that matter here. */
interface AssistantMessage {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly stopReason: string;
  readonly errorMessage?: string;
}

export class Run {
  #text: string | null = null;
  #stop: string | undefined;
  #error: string | undefined;
  #files = new Set<string>();
  #filesBytes = 0;

  begin(): void {
    this.#text = null;
    this.#stop = undefined;
    this.#error = undefined;
    this.#files = new Set();
    this.#filesBytes = 0;
  }

  /** The files that were changed so far, as absolute paths. */
  get files(): string[] {
    return [...this.#files];
  }

  /** The assistant has said something; the last text counts, and how the last message ended. */
  said({ content, stopReason, errorMessage }: AssistantMessage): void {
    const text = content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
    if (text.trim() !== "") this.#text = text.slice(0, TEXT_CHARACTERS);
    this.#stop = stopReason;
    this.#error = errorMessage?.slice(0, TEXT_CHARACTERS);
  }

  /** The run has failed before the assistant could say anything. */
  failed(error: string): void {
    this.#stop = "error";
    this.#error = error;
  }

  /** A tool has changed a file; the path is the tool's argument. */
  changed(path: unknown, cwd: string): void {
    if (typeof path !== "string") return;
    const file = resolved(path, cwd);
    const bytes = this.#filesBytes + Buffer.byteLength(JSON.stringify(file)) + 1;
    if (this.#files.has(file) || bytes > FILES_BYTES) return;
    this.#files.add(file);
    this.#filesBytes = bytes;
  }

  /** What is to be said of the run when it has settled. */
  settled(aborted: boolean): JsonObject {
    // A run that settles without a word of the assistant did not get as far as asking the model.
    const stop = aborted ? "aborted" : (this.#stop ?? "error");
    const error = this.#error === undefined ? {} : { error: this.#error };
    return { text: this.#text, stop, ...error, files: this.files };
  }
}

/** The absolute path of what a file tool was given, as Pi's tools resolve it. */
function resolved(path: string, cwd: string): string {
  const spaced = path.replace(SPACES, " ");
  const named = spaced.startsWith("@") ? spaced.slice(1) : spaced;
  if (named === "~" || named.startsWith("~/")) return join(homedir(), named.slice(1));
  return resolve(cwd, named.startsWith("file://") ? fileURLToPath(named) : named);
}
