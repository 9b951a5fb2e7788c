/**
 * The Python side as a child process: JSON Lines over its standard streams, both sides asking and answering.
 *
 * Nothing that happens to the child may reach Pi as an uncaught exception: every stream has its error
 * listener, and every callback that is called from one of them is guarded.
 */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import {
  isObject,
  isWithin,
  type JsonObject,
  LINE_BYTES,
  LINE_LEVELS,
  objectOf,
  TeamError,
  textOf,
  told,
} from "./protocol.ts";

/** The code of the error that stands for a child that ended before it answered. */
export const GONE = "HELPER_GONE";

/** The same where it ended by itself and as it should, as it does when it was not needed for a while. */
export const DONE = "HELPER_DONE";

/** What was to be asked is nothing that the child can be asked. */
export const UNSENT = "PROTOCOL";

const STDERR_CHARACTERS = 4_000;
const STDERR_LINES = 3;

/** Milliseconds after the child's end in which what it has written may still be read. */
const STREAM_PATIENCE = 500;

/** How the child ended. */
export interface Ended {
  readonly quietly: boolean;
  readonly reason: string;
}

/** Who hears what the child says. */
export interface Listener {
  asked(method: string, params: JsonObject): Promise<JsonObject>;
  informed(method: string, params: JsonObject): void;
  ended(helper: Helper, ended: Ended): void;
}

interface Pending {
  resolve(result: JsonObject): void;
  reject(error: TeamError): void;
}

export class Helper {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #listener: Listener;
  readonly #pending = new Map<number, Pending>();
  readonly #over: Promise<void>;
  #finish: () => void = () => {};
  #ended = false;
  #failure: string | undefined;
  #lastId = 0;
  #unread = "";
  #stderr = "";

  /**
   * Start the child.
   *
   * `-P` keeps the working directory, which is whatever project the person works on, off Python's path.
   * Throws where the system does not even try; a program that is not there is told by the listener.
   */
  constructor(python: string, environment: NodeJS.ProcessEnv, listener: Listener) {
    this.#listener = listener;
    this.#over = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#child = spawn(python, ["-P", "-m", "pi_team.hosts.pi"], { env: environment, stdio: "pipe" });
    this.#child.on("error", (error) => this.#end(`cannot run ${python}: ${error.message}`, false));
    this.#child.on("exit", () => setTimeout(() => this.#hangUp(), STREAM_PATIENCE).unref());
    this.#child.on("close", (code, signal) => this.#closed(code, signal));
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      stream.on("error", () => {}); // the end of the child tells what there is to tell
    }
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARACTERS);
    });
  }

  /** Ask the child; rejects with a TeamError. */
  request(method: string, params: JsonObject): Promise<JsonObject> {
    if (this.#ended) return Promise.reject(new TeamError(DONE, "the Python side of pi-team has ended"));
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      if (!this.#write({ id, method, params })) {
        this.#pending.delete(id);
        reject(new TeamError(UNSENT, `what pi-team's ${method} would need is too long or too deeply nested`));
      }
    });
  }

  /** Close the child's standard input, which ends it; kill it where that takes too long. */
  async close(patience: number): Promise<void> {
    if (this.#ended) return;
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#kill(), patience);
    await this.#over;
    clearTimeout(timer);
  }

  /** Write a line; false where it is one that the child would not read. */
  #write(message: JsonObject): boolean {
    if (!isWithin(LINE_LEVELS, message)) return false;
    const line = JSON.stringify(message);
    if (Buffer.byteLength(line) > LINE_BYTES) return false;
    this.#child.stdin.write(`${line}\n`);
    return true;
  }

  #read(text: string): void {
    const lines = (this.#unread + text).split("\n");
    this.#unread = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
    if (this.#unread.length > LINE_BYTES) this.#fail("it wrote a line without an end");
  }

  #take(line: string): void {
    if (this.#failure !== undefined) return;
    try {
      const message: unknown = JSON.parse(line);
      if (!isObject(message)) throw new SyntaxError("not an object");
      const { id, method } = message;
      if (typeof method !== "string") this.#answered(message);
      else if (id === undefined) this.#listener.informed(method, objectOf(message["params"]));
      else void this.#answer(id, method, objectOf(message["params"]));
    } catch (error) {
      this.#fail(`what it wrote could not be taken: ${told(error)}`);
    }
  }

  #answered(message: JsonObject): void {
    const { id, error, result } = message;
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (typeof id !== "number" || pending === undefined) {
      // An answer to nobody is how the other side says that it could not read a line of ours.
      throw new SyntaxError(textOf(objectOf(error)["message"]) || "an answer that was not asked for");
    }
    this.#pending.delete(id);
    if (error === undefined) pending.resolve(objectOf(result));
    else pending.reject(TeamError.from(error));
  }

  async #answer(id: unknown, method: string, params: JsonObject): Promise<void> {
    let answer: JsonObject;
    try {
      answer = { id, result: await this.#listener.asked(method, params) };
    } catch (error) {
      answer = { id, error: { code: "HOST", message: told(error), hint: "", retryable: false } };
    }
    if (!this.#ended) this.#write(answer);
  }

  #fail(why: string): void {
    this.#failure ??= why;
    this.#kill();
  }

  #kill(): void {
    this.#child.kill("SIGKILL");
    this.#hangUp();
  }

  /** Read nothing more: the streams may be open in processes that the child has left behind. */
  #hangUp(): void {
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }

  #closed(code: number | null, signal: string | null): void {
    const how = this.#failure ?? (signal === null ? `exit status ${code}` : `signal ${signal}`);
    const last = this.#stderr.trimEnd().split("\n").slice(-STDERR_LINES).join("\n");
    const reason = `the Python side ended (${how})${last === "" ? "" : `:\n${last}`}`;
    this.#end(reason, code === 0 && this.#failure === undefined);
  }

  #end(reason: string, quietly: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#finish();
    const unanswered = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of unanswered) pending.reject(new TeamError(quietly ? DONE : GONE, reason));
    this.#listener.ended(this, { quietly, reason });
  }
}
