/**
 * How messages, display entries and the member's state look in a terminal.
 *
 * What is shown may come out of a session file that somebody else has written: its shape is not trusted,
 * and its texts are made harmless once more.
 */

import type { ExtensionAPI, ExtensionContext, KeybindingHints, Theme, ThemeColor } from "@earendil-works/pi-coding-agent";
import { Box, type Component, stripTerminalSequences, truncateToWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { type JsonObject, objectOf, textOf, textsOf } from "./protocol.ts";

/** The type of the message that carries a peer's text into the model's context. */
export const DELIVERED = "pi-team-message";

/** The type of the entries that are shown and never in the model's context. */
export const SHOWN = "pi-team";

const FOLDED_LINES = 4;
const WIDGET_LINES = 10;
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
  pi.registerMessageRenderer(DELIVERED, (message, options, theme) => {
    const details = objectOf(message.details);
    if (textOf(details["from"]) === "" && textOf(details["kind"]) === "") return undefined; // Pi's own view will do
    return card(new Folded(delivery(details, options.expanded, theme), options, theme), options.outputPad, theme);
  });
  pi.registerEntryRenderer(SHOWN, (entry, options, theme) => {
    const data = objectOf(entry.data);
    return card(new Folded(shown(data, theme), options, theme), 1, theme);
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
    else this.#ctx.ui.setWidget(SHOWN, (_tui, theme) => fitted(() => coloured(lines, state, theme)));
  }
}

function coloured([first = "", ...more]: string[], state: string, theme: Theme): string[] {
  const mark = theme.fg(STATES[state] ?? "muted", "●");
  return [` ${mark} ${theme.fg("text", first)}`, ...more.map((line) => `   ${theme.fg("muted", line)}`)];
}

/** Lines that are cut, not wrapped, at the terminal's width. */
function fitted(lines: () => string[]): Component {
  return { render: (width) => lines().map((line) => truncateToWidth(line, width, "…")), invalidate: () => {} };
}

function card(content: Component, padding: number, theme: Theme): Component {
  const box = new Box(padding, 1, (text) => theme.bg("customMessageBg", text));
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
    const wrap = (lines: string[]): string[] => lines.flatMap((line) => wrapTextWithAnsi(line, Math.max(1, width)));
    const body = wrap(this.#parts.body);
    // One line more is shown rather than replaced by a line that says that there is one more.
    const folds = !this.#options.expanded && body.length > FOLDED_LINES + 1;
    const visible = folds ? body.slice(0, FOLDED_LINES) : body;
    if (folds) visible.push(this.#more(body.length - FOLDED_LINES, width));
    return [...wrap(this.#parts.head), ...visible, ...wrap(this.#parts.foot)];
  }

  invalidate(): void {}

  #more(lines: number, width: number): string {
    const more = this.#theme.fg("muted", `… ${lines} more lines`);
    const hint = this.#options.keyHint("app.tools.expand", "to expand");
    return truncateToWidth(hint === "" ? more : `${more} (${hint})`, width, "…");
  }
}

/** What a peer has sent: who to whom, of which kind and about what, its text, its files. */
function delivery(details: JsonObject, expanded: boolean, theme: Theme): Parts {
  const field = (name: string): string => oneLine(textOf(details[name]));
  const outcome = field("outcome");
  const colour = OUTCOMES[outcome] ?? "customMessageLabel";
  const kind = [field("kind"), outcome].filter((part) => part !== "").join(" ");
  const files = textsOf(details["files"]).map(oneLine);
  const ends = `${theme.fg("accent", field("from"))} ${theme.fg("dim", "→")} ${theme.fg("accent", field("alias"))}`;
  const head = [`${theme.fg(colour, theme.bold(kind))}  ${ends}  ${theme.fg("muted", field("team"))}`];
  if (field("subject") !== "") head.push(theme.bold(field("subject")));
  const body = painted(textOf(details["body"]), theme, "customMessageText");
  return { head, body, foot: [...filesOf(files, expanded, theme), ...(expanded ? [origin(details, theme)] : [])] };
}

function filesOf(files: string[], expanded: boolean, theme: Theme): string[] {
  const [first] = files;
  if (first === undefined) return [];
  if (expanded) return files.map((file) => theme.fg("muted", `  ${file}`));
  return [theme.fg("muted", files.length === 1 ? first : `${first} and ${files.length - 1} more files`)];
}

function origin(details: JsonObject, theme: Theme): string {
  const created = details["created"];
  const at = typeof created === "number" ? new Date(created) : undefined;
  const when = at === undefined || Number.isNaN(at.getTime()) ? "" : `  ${at.toLocaleString()}`;
  return theme.fg("dim", `${oneLine(textOf(details["id"]))}${when}`);
}

/** An entry that is for the person alone: a note, the inbox, a roster, the status, what was sent. */
function shown(data: JsonObject, theme: Theme): Parts {
  const kind = oneLine(textOf(data["kind"]));
  const title = oneLine(textOf(data["title"]));
  const head = [`${theme.fg("customMessageLabel", theme.bold(kind))}  ${theme.bold(title)}`];
  const lines = textsOf(data["lines"]).flatMap((line) => painted(line, theme, "customMessageText"));
  return { head, body: [...lines, ...painted(textOf(data["body"]), theme, "customMessageText")], foot: [] };
}

function painted(text: string, theme: Theme, colour: ThemeColor): string[] {
  if (text === "") return [];
  return harmless(text)
    .trimEnd()
    .split("\n")
    .map((line) => theme.fg(colour, line));
}

/** The text without anything that a terminal would act on. */
export function harmless(text: string): string {
  return stripTerminalSequences(text).replaceAll("\t", "    ").replace(CONTROLS, "");
}

/** The same in one line. */
export function oneLine(text: string): string {
  return harmless(text).replace(/\s*\n\s*/g, " ").trim();
}
