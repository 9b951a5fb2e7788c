/** When a turn may begin without the person, and beginning one with what a teammate has sent. */

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type JsonObject, objectOf, textOf } from "./protocol.ts";
import { DELIVERED } from "./views.ts";

/** Milliseconds within which the agent begins with what a person has submitted, if it does at all. */
const SUBMISSION_PATIENCE = 10_000;

/** A delivered turn that was found not begun so many times in a row, so many milliseconds apart, will not begin. */
const UNSTARTED_LOOKS = 3;
const UNSTARTED_INTERVAL = 1_000;

export interface Readiness extends JsonObject {
  readonly model: boolean;
  readonly idle: boolean;
  readonly queued: boolean;
  readonly prompt: boolean;
  readonly editorEmpty: boolean;
}

export class Turns {
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #unstarted: () => void;
  #prompts = 0;
  #unsettled = false;
  #submitted = Number.NEGATIVE_INFINITY;
  #watch: NodeJS.Timeout | undefined;

  /** `unstarted` is called when a delivered turn turns out never to begin. */
  constructor(pi: ExtensionAPI, ctx: ExtensionContext, unstarted: () => void) {
    this.#pi = pi;
    this.#ctx = ctx;
    this.#unstarted = unstarted;
  }

  get readiness(): Readiness {
    return {
      model: isKnown(this.#ctx),
      idle: this.#ctx.isIdle() && !this.#unsettled,
      queued: this.#ctx.hasPendingMessages(),
      prompt: this.#prompts > 0 || performance.now() - this.#submitted < SUBMISSION_PATIENCE,
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

  promptOpened(): void {
    this.#prompts += 1;
  }

  promptClosed(): void {
    this.#prompts = Math.max(0, this.#prompts - 1);
  }

  /** A run is being prepared. */
  preparing(): void {
    this.#submitted = Number.NEGATIVE_INFINITY;
  }

  /** Begin a turn with a message, if that is still possible: looked at in the very moment. */
  deliver(params: JsonObject): JsonObject {
    const { model, idle, queued, prompt, editorEmpty } = this.readiness;
    if (!(model && idle && !queued && !prompt && editorEmpty)) return { started: false, why: "busy" };
    const message = { customType: DELIVERED, content: textOf(params["text"]), details: objectOf(params["details"]) };
    this.#pi.sendMessage({ ...message, display: true }, { triggerTurn: true });
    this.#watchUntilRunning();
    return { started: true };
  }

  /** The agent runs, so that Pi will tell when it settles. */
  running(): void {
    this.#unsettled = true;
    this.unwatch();
  }

  /**
   * Pi tells that the run has settled. It says that it is idle before it tells its extensions, one after the
   * other: a turn that began meanwhile would be taken for the one that has settled.
   */
  settled(): void {
    this.#unsettled = false;
    this.unwatch();
  }

  /** Nobody wants to know any more. */
  unwatch(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /**
   * A turn that cannot even be prepared (a compaction before it fails, say) never settles, and Pi tells no
   * extension: without this its message would stay claimed for ever.
   */
  #watchUntilRunning(): void {
    let looks = 0;
    const look = (): void => {
      looks = this.#ctx.isIdle() ? looks + 1 : 0;
      if (looks < UNSTARTED_LOOKS) return;
      this.unwatch();
      this.#unstarted();
    };
    this.unwatch();
    this.#watch = setInterval(() => {
      try {
        look();
      } catch {
        this.unwatch(); // what a timer throws would end Pi
      }
    }, UNSTARTED_INTERVAL).unref();
  }
}

/** Whether there is a model to ask: where none is selected, Pi names one that no provider has. */
function isKnown({ model, modelRegistry }: ExtensionContext): boolean {
  if (model === undefined) return false;
  return modelRegistry.hasConfiguredAuth(model) || modelRegistry.find(model.provider, model.id) !== undefined;
}
