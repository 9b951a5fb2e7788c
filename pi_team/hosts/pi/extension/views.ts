/**
 * How messages, display entries and the member's state look in a terminal.
 *
 * What is shown may come out of a session file that somebody else has written: its shape is not trusted,
 * and its texts are made harmless once more.
 */

import type { ExtensionAPI, ExtensionContext, KeybindingHints, Theme, ThemeColor } from "@earendil-works/pi-coding-agent";
import {
  Box,
  type Component,
  stripTerminalSequences,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from "@earendil-works/pi-tui";
import { type JsonObject, objectOf, textOf, textsOf } from "./protocol.ts";

/** The type of the message that carries a peer's text into the model's context. */
export const DELIVERED = "pi-team-message";

/** The type of the entries that are shown and never in the model's context. */
export const SHOWN = "pi-team";

const FOLDED_LINES = 4;
const WIDGET_LINES = 10;
const HANGING = "  ";
const WIDGET_INDENT = "   ";
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const OUTCOMES: Readonly<Record<string, ThemeColor>> = {
  completed: "success",
  failed: "error",
  interrupted: "warning",
};

const STATES: Readonly<Record<string, ThemeColor>> = {
  receiving: "success",
  working: "accent",
  paused: "warning",
  leaving: "warning",
};

interface Options extends KeybindingHints {
  readonly expanded: boolean;
}

export function registerViews(pi: ExtensionAPI): void {
  pi.registerMessageRenderer(DELIVERED, (sent, options, theme) => {
    const details = objectOf(sent.details);
    if (textOf(details["from"]) === "" && textOf(details["kind"]) === "") return undefined; // Pi's own view will do
    return card(new Folded(message(details, options.expanded, theme), options, theme), options.outputPad, theme);
  });
  pi.registerEntryRenderer(SHOWN, (entry, options, theme) => {
    const data = objectOf(entry.data);
    return aside(new Folded(shown(data, options.expanded, theme), options, theme));
  });
}

/** The line above the editor. */
export class Widget {
  readonly #ctx: ExtensionContext;
  #shown = "";

  constructor(ctx: ExtensionContext) {
    this.#ctx = ctx;
  }

  /** Show a text, or nothing for the empty one; `state` gives it its colour. */
  set(text: string, state: string): void {
    const shown = text === "" ? "" : `${state}\n${text}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    const lines = harmless(text).split("\n").slice(0, WIDGET_LINES);
    if (text === "") this.#ctx.ui.setWidget(SHOWN, undefined);
    else if (this.#ctx.mode !== "tui") this.#ctx.ui.setWidget(SHOWN, lines);
    else this.#ctx.ui.setWidget(SHOWN, (_tui, theme) => marked(lines, theme.fg(STATES[state] ?? "muted", "●"), theme));
  }
}

/** Lines behind a mark, wrapped: what a person has to do stands at their end. */
function marked(lines: string[], mark: string, theme: Theme): Component {
  const render = (width: number): string[] => {
    const room = width - WIDGET_INDENT.length;
    if (room < WIDGET_INDENT.length) return [truncateToWidth(` ${mark}`, width, "")];
    const wrapped = lines.flatMap((line) => wrapTextWithAnsi(theme.fg("text", line), room)).slice(0, WIDGET_LINES);
    return wrapped.map((line, number) => (number === 0 ? ` ${mark} ${line}` : `${WIDGET_INDENT}${line}`));
  };
  return { render, invalidate: () => {} };
}

/** What is in the model's context stands on a background, as what a person has typed does in Pi. */
function card(content: Component, padding: number, theme: Theme): Component {
  const box = new Box(padding, 1, (text) => theme.bg("customMessageBg", text));
  box.addChild(content);
  return box;
}

/** What only the person sees stands on none. */
function aside(content: Component): Component {
  const box = new Box(1, 0);
  box.addChild(content);
  return box;
}

interface Parts {
  /** Always shown. */
  readonly head: string[];
  /** Shown in part unless expanded. */
  readonly body: string[];
  /** Always shown, below. */
  readonly foot: string[];
}

/** A head, a body of which a few lines are shown until it is expanded, and a foot. */
class Folded implements Component {
  readonly #parts: Parts;
  readonly #options: Options;
  readonly #theme: Theme;

  constructor(parts: Parts, options: Options, theme: Theme) {
    this.#parts = parts;
    this.#options = options;
    this.#theme = theme;
  }

  render(width: number): string[] {
    const body = this.#parts.body.flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width)));
    // One line more is shown rather than replaced by a line that says that there is one more.
    const folds = !this.#options.expanded && body.length > FOLDED_LINES + 1;
    const visible = folds ? body.slice(0, FOLDED_LINES) : body;
    if (folds) visible.push(this.#more(body.length - FOLDED_LINES, width));
    return [...hung(this.#parts.head, width), ...visible, ...hung(this.#parts.foot, width)];
  }

  invalidate(): void {}

  #more(lines: number, width: number): string {
    const more = this.#theme.fg("muted", `… ${lines} more lines`);
    const hint = this.#options.keyHint("app.tools.expand", "to expand");
    return truncateToWidth(hint === "" ? more : `${more}${this.#theme.fg("muted", " · ")}${hint}`, width, "…");
  }
}

/** Lines wrapped so that what belongs to the line before is indented. */
function hung(lines: string[], width: number): string[] {
  const room = width - HANGING.length;
  if (room < HANGING.length) return lines.flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width)));
  return lines.flatMap((line) => {
    if (visibleWidth(line) <= width) return [line];
    const [first = "", ...more] = wrapTextWithAnsi(line, room);
    return [first, ...more.map((part) => HANGING + part.trimStart())];
  });
}

/** What a peer has sent, or was sent: of which kind, who to whom, about what, its text, its files. */
function message(details: JsonObject, expanded: boolean, theme: Theme): Parts {
  const field = (name: string): string => oneLine(textOf(details[name]));
  const outcome = field("outcome");
  const kind = field("kind") === "sent" ? `${field("message")} queued` : `${field("kind")} ${outcome}`.trim();
  const label = theme.fg(OUTCOMES[outcome] ?? "customMessageLabel", theme.bold(kind));
  const ends = [field("from"), field("alias")].filter((end) => end !== "");
  const between = theme.fg("dim", " → ");
  const aside = [field("team"), timeOf(details), ...(expanded ? [field("id")] : [])].filter((part) => part !== "");
  const first = [label, ends.map((end) => theme.fg("accent", end)).join(between), theme.fg("dim", aside.join(" · "))];
  const { title, text } = unrepeated(field("subject"), harmless(textOf(details["body"])).trim());
  return {
    head: [first.filter((part) => part !== "").join("  "), ...(title === "" ? [] : [theme.bold(title)])],
    body: painted(text, theme),
    foot: filesOf(details, expanded, theme),
  };
}

/** A subject that is made of the text's beginning, as that of `/team send` is, is not shown beside it. */
function unrepeated(subject: string, text: string): { title: string; text: string } {
  const [first = "", ...more] = text.split("\n");
  if (first.trim() === subject) return { title: subject, text: more.join("\n").replace(/^\n+/, "") };
  return { title: subject.endsWith("…") && first.startsWith(subject.slice(0, -1)) ? "" : subject, text };
}

function filesOf(details: JsonObject, expanded: boolean, theme: Theme): string[] {
  const files = textsOf(details["files"]).map(oneLine);
  const [first] = files;
  if (first === undefined) return [];
  const omitted = details["filesOmitted"];
  const count = files.length + (typeof omitted === "number" ? omitted : 0);
  const title = theme.fg("muted", count === 1 ? "1 file:" : `${count} files:`);
  if (!expanded) return [`${title} ${theme.fg("dim", count === 1 ? first : `${first}, …`)}`];
  const left = count > files.length ? [theme.fg("dim", `${HANGING}… ${count - files.length} more, left out here`)] : [];
  return [title, ...files.map((file) => theme.fg("dim", `${HANGING}${file}`)), ...left];
}

function timeOf(details: JsonObject): string {
  const created = details["created"];
  const at = typeof created === "number" ? new Date(created) : undefined;
  return at === undefined || Number.isNaN(at.getTime()) ? "" : at.toTimeString().slice(0, 8);
}

/** An entry that is for the person alone: a note, the inbox, a roster, the status, what was sent. */
function shown(data: JsonObject, expanded: boolean, theme: Theme): Parts {
  if (textOf(data["from"]) !== "") return message(data, expanded, theme);
  const title = theme.fg("customMessageLabel", theme.bold(oneLine(textOf(data["title"]))));
  // What a person has asked for is not folded: how many lines it has is bounded where they are made.
  const lines = textsOf(data["lines"]).flatMap((line) => painted(line, theme));
  return { head: [title, ...lines], body: painted(textOf(data["body"]), theme), foot: [] };
}

function painted(text: string, theme: Theme): string[] {
  if (text === "") return [];
  return harmless(text)
    .trimEnd()
    .split("\n")
    .map((line) => theme.fg("customMessageText", line));
}

/** The text without anything that a terminal would act on. */
export function harmless(text: string): string {
  return stripTerminalSequences(text).replaceAll("\t", "    ").replace(CONTROLS, "");
}

/** The same in one line. */
export function oneLine(text: string): string {
  return harmless(text).replace(/\s*\n\s*/g, " ").trim();
}
