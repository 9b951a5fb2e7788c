/** When a turn may begin without the person, and beginning one with what a teammate has sent. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type JsonObject, objectOf, textOf } from "./protocol.ts";
import { ShellCommands } from "./shell.ts";
import { DELIVERED } from "./views.ts";

/** Milliseconds within which the agent begins with what a person has submitted, if it does at all. */
const SUBMISSION_PATIENCE = 10_000;

/** So many milliseconds apart a delivered turn is looked at; where Pi was idle so many times in a row, it will not begin. */
const LOOK_INTERVAL = 1_000;
const UNSTARTED_LOOKS = 3;
const DEFERRED_LOOKS = 60;

/** Why a delivery came to nothing, for whoever has asked for it. */
const UNSTARTED = "Pi did not start the turn";
const MISPLACED = "Pi put the request into a turn that was not begun for it";

/** The parts that matter here of a message that an extension has sent. */
export interface SentMessage {
  readonly customType: string;
  readonly details?: unknown;
}

export interface Readiness extends JsonObject {
  readonly model: boolean;
  readonly idle: boolean;
  readonly queued: boolean;
  readonly prompt: boolean;
  readonly editorEmpty: boolean;
}

/**
 * A message that Pi was given to start a turn with, until that turn's run has settled.
 *
 * As a rule its run is being prepared at once. While Pi tells its extensions that a run has settled, it says
 * that it is idle, and yet defers: other runs may come first then, and nobody tells how many.
 */
interface Delivery {
  /** Stands in the message too: by it the run is known. */
  readonly id: string;
  stage: "deferred" | "preparing" | "running";
}

/**
 * Whose run begins. `overtaken` is the team's, and a person has put something into it before it began;
 * `abandoned` was the team's: its result was told since, or its session has gone.
 */
type Beginning = "team" | "overtaken" | "abandoned" | "other";

export class Turns {
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #notBegun: (why: string) => void;
  readonly #commands: ShellCommands;
  #delivery: Delivery | undefined;
  /** A person has acted while the delivery was deferred; and did so in a run of which it is not known whose it is. */
  #visited = false;
  #meddled = false;
  #prompts = 0;
  #unsettled = false;
  #submitted = Number.NEGATIVE_INFINITY;
  #watch: NodeJS.Timeout | undefined;

  /** `notBegun` is called when a delivered turn turns out never to begin. */
  constructor(pi: ExtensionAPI, ctx: ExtensionContext, notBegun: (why: string) => void) {
    this.#pi = pi;
    this.#ctx = ctx;
    this.#notBegun = notBegun;
    this.#commands = new ShellCommands(ctx);
  }

  get readiness(): Readiness {
    return {
      model: isKnown(this.#ctx),
      idle: this.#ctx.isIdle() && !this.#unsettled && this.#delivery === undefined,
      queued: this.#ctx.hasPendingMessages(),
      prompt: this.#prompts > 0 || this.#isSubmitted || this.#commands.isRunning,
      editorEmpty: this.#ctx.ui.getEditorText() === "",
    };
  }

  /**
   * A person has submitted something. Pi still says that it is idle while the input is looked at, by other
   * extensions too, and a turn that began then would make the person's own fail.
   */
  submitted(): void {
    if (this.#ctx.isIdle()) this.#submitted = performance.now();
  }

  get #isSubmitted(): boolean {
    return performance.now() - this.#submitted < SUBMISSION_PATIENCE;
  }

  /** A person has begun a shell command. */
  shellBegun(): void {
    this.#commands.begun();
  }

  promptOpened(): void {
    this.#prompts += 1;
  }

  promptClosed(): void {
    this.#prompts = Math.max(0, this.#prompts - 1);
  }

  /**
   * A person is there; whether that takes over what was delivered, if anything was. A run that Pi has deferred
   * comes after what the person began, and is none of theirs; one that Pi could not prepare has failed before.
   */
  takesOver(): boolean {
    if (this.#delivery?.stage === "preparing" && this.#ctx.isIdle()) this.#giveUp(UNSTARTED);
    if (this.#delivery?.stage !== "deferred") return true;
    this.#visited = true;
    this.#meddled ||= !this.#ctx.isIdle();
    return false;
  }

  /** Whether a person's presence was kept back for a delivery that is over by now. */
  takeVisit(): boolean {
    const visited = this.#visited && this.#delivery === undefined;
    if (visited) this.#visited = false;
    return visited;
  }

  /** A run is about to begin, with that message if it is not a person's. */
  preparing(message: SentMessage | undefined): Beginning {
    this.#submitted = Number.NEGATIVE_INFINITY;
    const ours = message?.customType === DELIVERED;
    const delivery = this.#delivery;
    if (delivery !== undefined && ours && idOf(message) === delivery.id) return this.#begin(delivery);
    this.#meddled = false; // it went into this run
    if (delivery?.stage === "preparing") this.#giveUp(UNSTARTED); // Pi prepares one at a time: it has failed
    return ours ? "abandoned" : "other";
  }

  #begin(delivery: Delivery): Beginning {
    // What was queued for a run before and stayed in the queue goes into this one.
    const overtaken = delivery.stage === "deferred" && (this.#meddled || this.#ctx.hasPendingMessages());
    if (overtaken) this.#visited = false;
    delivery.stage = "preparing";
    this.#meddled = false;
    this.#watchUntilRunning();
    return overtaken ? "overtaken" : "team";
  }

  /** Begin a turn with a message, if that is still possible: looked at in the very moment. */
  deliver(params: JsonObject): JsonObject {
    const { model, idle, queued, prompt, editorEmpty } = this.readiness;
    if (!(model && idle && !queued && !prompt && editorEmpty)) return { started: false, why: "busy" };
    const delivery: Delivery = { id: crypto.randomUUID(), stage: "preparing" };
    const details = { ...objectOf(params["details"]), delivery: delivery.id };
    const message = { customType: DELIVERED, content: textOf(params["text"]), details, display: true };
    this.#delivery = delivery;
    this.#visited = false;
    this.#meddled = false;
    this.#watchUntilRunning();
    try {
      this.#pi.sendMessage(message, { triggerTurn: true }); // its run may be as far as `preparing` when this returns
    } catch (error) {
      this.abandon(); // else its end would be told as well
      throw error;
    }
    if (this.#ctx.isIdle()) delivery.stage = "deferred";
    return { started: true };
  }

  /** Nobody waits any more for what was delivered; where it has not begun, it will not. */
  abandon(): void {
    this.#delivery = undefined;
    this.#unwatch();
  }

  /** The agent runs, so that Pi will tell when it settles. */
  running(): void {
    this.#unsettled = true;
    if (this.#delivery?.stage !== "preparing") return;
    this.#delivery.stage = "running";
    this.#unwatch();
  }

  /** A message is in the context: one that was deferred may have got into a run that somebody else began. */
  entered(message: SentMessage): void {
    const deferred = this.#delivery?.stage === "deferred" && message.customType === DELIVERED;
    if (deferred && idOf(message) === this.#delivery?.id) this.#giveUp(MISPLACED);
  }

  /**
   * Pi tells that a run has settled; whether it may be told on, because no delivery waits for its own run.
   *
   * Pi says that it is idle before it tells its extensions, one after the other: a turn that began meanwhile
   * would be taken for the one that has settled.
   */
  settled(): boolean {
    this.#unsettled = false;
    this.#meddled = false;
    if (this.#delivery !== undefined && this.#delivery.stage !== "running") return false;
    this.abandon();
    return true;
  }

  /** Look no more whether what was delivered begins. */
  #unwatch(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  #giveUp(why: string): void {
    this.abandon();
    this.#notBegun(why);
  }

  /**
   * A turn that cannot even be prepared never settles, and Pi tells no extension; nor does it tell when it drops
   * what it has deferred: without this its message would stay claimed for ever.
   */
  #watchUntilRunning(): void {
    let looks = 0;
    const look = (): void => {
      looks = this.#ctx.isIdle() ? looks + 1 : 0;
      const enough = this.#delivery?.stage === "deferred" ? DEFERRED_LOOKS : UNSTARTED_LOOKS;
      if (looks >= enough) this.#giveUp(UNSTARTED);
    };
    this.#unwatch();
    this.#watch = setInterval(() => {
      try {
        look();
      } catch {
        this.#unwatch(); // what a timer throws would end Pi
      }
    }, LOOK_INTERVAL).unref();
  }
}

function idOf({ details }: SentMessage): string {
  return textOf(objectOf(details)["delivery"]);
}

/** Whether there is a model to ask: where none is selected, Pi names one that no provider has. */
function isKnown({ model, modelRegistry }: ExtensionContext): boolean {
  if (model === undefined) return false;
  return modelRegistry.hasConfiguredAuth(model) || modelRegistry.find(model.provider, model.id) !== undefined;
}
