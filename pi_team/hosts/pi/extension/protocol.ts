/**
 * What crosses the pipe to the Python side: one JSON object a line, read without trust in its shape.
 */

/** The version of the protocol that this extension speaks. */
export const PROTOCOL = 1;

/** The most bytes of a line, its end not counted. */
export const LINE_BYTES = 1_000_000;

/** The most levels of objects and arrays in a line. */
export const LINE_LEVELS = 64;

export type JsonObject = { readonly [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Whether objects and arrays are nested at most so many levels deep. */
export function isWithin(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isWithin(levels - 1, inner));
}

/** An error that the Python side answered, or that stands for its failure. */
export class TeamError extends Error {
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint = "") {
    super(message);
    this.code = code;
    this.hint = hint;
  }

  /** The error for people, in one line. */
  get told(): string {
    const stop = this.hint === "" || /[.!?]$/.test(this.message) ? "" : ".";
    return `${this.message}${stop} ${this.hint}`.trim();
  }

  static from(answer: unknown): TeamError {
    const error = objectOf(answer);
    return new TeamError(textOf(error["code"]), textOf(error["message"]), textOf(error["hint"]));
  }
}

/** What to tell people of anything that was thrown. */
export function told(error: unknown): string {
  if (error instanceof TeamError) return error.told;
  return error instanceof Error ? error.message : String(error);
}
