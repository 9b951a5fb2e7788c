/**
 * One Pi session and the Python side that makes it a member: what Pi tells goes down, what the member does
 * comes up. There is no policy here.
 *
 * An instance lives from `session_start` to `session_shutdown`. After that Pi's objects throw when they are
 * touched, so whatever comes later is dropped.
 */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { getAgentDir, VERSION } from "@earendil-works/pi-coding-agent";
import type { AutocompleteItem } from "@earendil-works/pi-tui";
import { completed, itemsOf, NAMED, usage } from "./commands.ts";
import { DONE, type Ended, GONE, Helper, type Listener, UNSENT } from "./helper.ts";
import { extensionVersion, interpreter, MEND } from "./interpreter.ts";
import { Membership } from "./membership.ts";
import { within } from "./patience.ts";
import { type JsonObject, objectOf, PROTOCOL, TeamError, textOf, told } from "./protocol.ts";
import { Run } from "./run.ts";
import { Tools } from "./tools.ts";
import { type SentMessage, Turns } from "./turns.ts";
import { harmless, SHOWN, Widget } from "./views.ts";

/** How often within how many milliseconds a Python side that ends is started again. */
const RESTARTS = 3;
const RESTART_WINDOW = 60_000;

/** Milliseconds. */
const HELLO_PATIENCE = 20_000;
const COMPLETION_PATIENCE = 2_000;
const SHUTDOWN_PATIENCE = 5_000;
const KILL_PATIENCE = 1_000;
const COMPLETION_PAUSE = 10_000;

export class TeamSession implements Listener {
  readonly run = new Run();
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #membership: Membership;
  readonly #turns: Turns;
  readonly #tools: Tools;
  readonly #widget: Widget;
  #helper: Helper | undefined;
  #starting: Promise<Helper> | undefined;
  #restarts: number[] = [];
  #failed = Number.NEGATIVE_INFINITY;
  /** Pi has begun to end the session; and it has ended. */
  #ending = false;
  #closed = false;
  /** Why the membership has to be restored once the Python side is there. */
  #restoring: string | undefined;
  #joined = false;
  #rules = "";

  constructor(pi: ExtensionAPI, ctx: ExtensionContext) {
    this.#pi = pi;
    this.#ctx = ctx;
    this.#membership = new Membership(pi);
    this.#turns = new Turns(pi, ctx, (why) => this.#notBegun(why));
    this.#tools = new Tools(pi, (name, params) => this.#ask("tool", { name, params }));
    this.#widget = new Widget(ctx);
  }

  // --- what Pi tells

  /** Go on with the membership that this very session has remembered, without keeping Pi waiting. */
  restore(reason: string): void {
    if (!this.#membership.restore(this.#ctx)) return;
    this.#restoring = reason;
    this.#background(this.#started());
  }

  async command(line: string): Promise<void> {
    if (line === "" || line === "help") return this.#show(usage(this.#joined));
    try {
      await this.#ask("command", { line });
    } catch (error) {
      this.#say("error", told(error));
    }
  }

  /** What completes the text after `/team `; nothing where names cannot be had soon. */
  async complete(prefix: string): Promise<AutocompleteItem[] | null> {
    const known = completed(prefix, this.#joined);
    if (known !== NAMED) return known;
    if (performance.now() - this.#failed < COMPLETION_PAUSE) return null; // not a process for each key
    const answer = await within(COMPLETION_PATIENCE, this.#ask("complete", { prefix }));
    return itemsOf(answer?.["items"]);
  }

  /** A person has submitted something; until the agent starts on it, nothing else may begin. */
  typed(): void {
    this.#turns.submitted();
    this.#isThere();
  }

  /** A person has begun a shell command (`!…`), which begins no run; nor may anything else while it runs. */
  shellBegun(): void {
    this.#turns.shellBegun();
    this.#isThere();
  }

  #isThere(): void {
    if (this.#turns.takesOver()) this.#tell("typed", { files: this.run.files });
  }

  promptOpened(): void {
    this.#turns.promptOpened();
  }

  promptClosed(): void {
    this.#turns.promptClosed();
  }

  /** A run is about to start, a person's or with a message: its system prompt gets the rules for peers. */
  beforeRun(sections: Record<string, string>, message?: SentMessage): void {
    const beginning = this.#turns.preparing(message);
    this.run.begin();
    if (this.#rules !== "") sections["pi-team"] = this.#rules;
    if (beginning === "overtaken") this.#tell("typed", { files: [] });
    if (beginning === "abandoned") this.#stop(sections);
  }

  /** Stop a run before it asks the model. */
  #stop(sections: Record<string, string>): void {
    try {
      this.#ctx.abort();
    } catch {
      // Pi has ended this session, and goes on with what it has deferred in it: but not with such a section.
      sections["pi-team: the turn was abandoned with its session"] = "";
    }
  }

  /** The agent runs: from here on Pi tells when it settles, whatever happens. */
  runStarted(): void {
    this.#turns.running();
  }

  /** A message of an extension is in the context. */
  entered(message: SentMessage): void {
    this.#turns.entered(message);
  }

  settled(aborted: boolean): void {
    if (this.#turns.settled()) this.#tellSettled(this.run, aborted);
  }

  #tellSettled(run: Run, aborted: boolean): void {
    this.#tell("settled", run.settled(aborted));
    if (this.#turns.takeVisit()) this.#tell("typed", { files: [] });
  }

  /** Leave, and let the Python side end, before Pi goes on. */
  async shutdown(reason: string): Promise<void> {
    this.#ending = true;
    this.#turns.abandon();
    const helper = this.#helper ?? (await within(SHUTDOWN_PATIENCE, this.#starting));
    if (helper !== undefined) await within(SHUTDOWN_PATIENCE, helper.request("shutdown", { reason }));
    this.#closed = true;
    await helper?.close(KILL_PATIENCE);
  }

  // --- what the Python side tells

  async asked(method: string, params: JsonObject): Promise<JsonObject> {
    // Already while it ends: an error is read as not ready, not started, or no.
    if (this.#ending) throw new TeamError("CLOSED", "this session is over");
    switch (method) {
      case "ready":
        return this.#readiness();
      case "deliver":
        return this.#deliver(params);
      case "confirm":
        return { yes: await this.#ctx.ui.confirm(textOf(params["title"]), textOf(params["message"])) };
      default:
        throw new TeamError("PROTOCOL", `this extension knows no ${method}`);
    }
  }

  /** Before a claim the entry to come back with has to be written: until then the session is not ready. */
  #readiness(): JsonObject {
    try {
      if (this.#membership.write()) return this.#turns.readiness;
    } catch (error) {
      this.#say("error", told(error));
    }
    throw new TeamError("UNWRITTEN", "this session cannot be written");
  }

  #deliver(params: JsonObject): JsonObject {
    const answer = this.#turns.deliver(params);
    // Until Pi prepares the run, which takes long where it compacts before, what was kept is of an earlier one.
    if (answer["started"] === true) this.run.begin();
    return answer;
  }

  informed(method: string, params: JsonObject): void {
    if (this.#closed) return;
    try {
      if (method === "state") this.#state(params);
      else if (method === "remember") this.#membership.remember(objectOf(params["entry"]));
      else if (method === "show") this.#show(objectOf(params["entry"]));
      else if (method === "notify") this.#say(textOf(params["level"]), textOf(params["text"]));
      // Anything else is of a later version, and not needed where it is not known.
    } catch (error) {
      this.#say("error", told(error));
    }
  }

  ended(helper: Helper, ended: Ended): void {
    if (helper !== this.#helper) return;
    this.#helper = undefined;
    this.#turns.abandon();
    if (this.#ending || !(this.#joined || this.#restoring !== undefined)) return;
    try {
      this.#goOn(ended);
    } catch {
      this.#closed = true; // Pi's objects throw when the session is over
    }
  }

  #goOn({ quietly, reason }: Ended): void {
    this.#restoring = "helper";
    const now = performance.now();
    this.#restarts = [...this.#restarts.filter((at) => now - at < RESTART_WINDOW), now];
    if (this.#restarts.length > RESTARTS) {
      this.#state({});
      this.#say("error", `${reason}\nIt ended too often: this session receives nothing. /team status tries again.`);
      return;
    }
    if (!quietly) this.#say("warning", `${reason}\nIt is started again.`);
    this.#background(this.#started());
  }

  // --- the Python side

  /** Ask the Python side, which is started where it is not there. */
  async #ask(method: string, params: JsonObject): Promise<JsonObject> {
    try {
      return await (await this.#started()).request(method, params);
    } catch (error) {
      // It ends by itself when it was not needed for a while: perhaps just when this was asked.
      const again = error instanceof TeamError && error.code === DONE && !this.#ending;
      if (!again) throw error;
      return await (await this.#started()).request(method, params);
    }
  }

  /** Tell the Python side something that only matters to a member. */
  #tell(method: string, params: JsonObject): void {
    const member = this.#joined && !this.#ending;
    if (member && this.#helper !== undefined) this.#background(this.#helper.request(method, params));
  }

  #started(): Promise<Helper> {
    if (this.#helper !== undefined) return Promise.resolve(this.#helper);
    if (this.#ending) return Promise.reject(new TeamError("CLOSED", "this session is over"));
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #start(): Promise<Helper> {
    let helper: Helper | undefined;
    try {
      helper = new Helper(interpreter(), { ...process.env, PI_CODING_AGENT_DIR: getAgentDir() }, this);
      const hello = await within(HELLO_PATIENCE, helper.request("hello", this.#hello()), "tell");
      if (hello === undefined) throw new TeamError("SILENT", "the Python side of pi-team does not answer", MEND);
      if (this.#closed) throw new TeamError("CLOSED", "this session is over");
    } catch (error) {
      this.#failed = performance.now();
      this.#state({});
      await helper?.close(KILL_PATIENCE);
      const ended = error instanceof TeamError && (error.code === GONE || error.code === DONE);
      throw ended ? new TeamError("UNSTARTED", error.message, MEND) : error;
    }
    this.#helper = helper;
    this.#background(this.#restored(helper));
    return helper;
  }

  #hello(): JsonObject {
    return {
      protocol: PROTOCOL,
      extension: extensionVersion(),
      host: { name: "pi", version: VERSION },
      mode: this.#ctx.mode,
      session: { id: this.#ctx.sessionManager.getSessionId(), cwd: this.#ctx.cwd },
      pid: process.pid,
    };
  }

  async #restored(helper: Helper): Promise<void> {
    const reason = this.#restoring;
    if (reason === undefined) return;
    try {
      await helper.request("restore", { entry: this.#membership.entry ?? null, reason });
    } catch (error) {
      if (error instanceof TeamError && error.code === UNSENT) this.#restoring = undefined; // nor will it be later
      throw error;
    }
    this.#restoring = undefined;
  }

  /** Let something go on by itself; its failure is told, and ends nothing. */
  #background(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      const known = error instanceof TeamError && (error.code === DONE || error.code === GONE);
      if (!known) this.#say("error", told(error)); // what is known was told when it ended
    });
  }

  // --- Pi

  /** What was delivered came to nothing; what another run has said so far is not to be told. */
  #notBegun(why: string): void {
    const run = new Run();
    run.failed(why);
    this.#tellSettled(run, false);
  }

  #state(params: JsonObject): void {
    if (this.#closed) return;
    this.#joined = typeof params["team"] === "string";
    if (!this.#joined) this.#turns.abandon();
    this.#rules = textOf(params["rules"]);
    this.#widget.set(textOf(params["widget"]), textOf(params["state"]));
    this.#tools.set(params["tools"] === true);
  }

  #show(entry: JsonObject): void {
    this.#pi.appendEntry(SHOWN, entry);
  }

  #say(level: string, text: string): void {
    if (this.#closed || text === "") return;
    const kind = level === "error" || level === "warning" ? level : "info";
    // What the Python side had to say when it ended unexpectedly may have a peer's text in it.
    const said = harmless(text);
    try {
      this.#ctx.ui.notify(said.startsWith("pi-team") ? said : `pi-team: ${said}`, kind);
    } catch {
      this.#closed = true; // Pi's objects throw when the session is over
    }
  }
}
