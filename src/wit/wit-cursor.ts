import { Invalid } from "../api/errors.ts";
import { cleanDocs } from "./doc-comment.ts";

/** Reads WIT text word by word, and keeps the doc comments that stand before a word. */
export class WitCursor {
  readonly #path: string;
  readonly #text: string;
  #at = 0;
  #comments: string[] = [];

  constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text.startsWith("\uFEFF") ? text.slice(1) : text;
    this.#skip();
  }

  get done(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Takes the doc comments since the last ones were taken, or since the item before ended. */
  takeDocs(): string {
    const docs = cleanDocs(this.#comments);
    this.#comments = [];
    return docs;
  }

  /** Moves past `text` if it is next. Words are compared whole. */
  accept(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    if (/\w$/.test(text) && /[\w-]/.test(this.#text[this.#at + text.length] ?? "")) return false;
    this.#at += text.length;
    // A comment in front of these belongs to nothing, one behind them to what follows.
    if (text === ";" || text === "{" || text === "}") this.#comments = [];
    this.#skip();
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) throw this.unexpected(JSON.stringify(text));
  }

  /** A name such as `list-issues`; `%` in front of one that would be a keyword is left out. */
  name(): string {
    const name = this.#match(/%?([a-zA-Z][a-zA-Z0-9]*(?:-[a-zA-Z0-9]+)*)/y);
    if (name === undefined) throw this.unexpected("a name");
    return name.replace("%", "");
  }

  /** The version after an `@`, as in `0.2.0-rc.1`. */
  version(): string {
    const version = this.#match(/[0-9]+(?:\.[0-9]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?/y);
    if (version === undefined) throw this.unexpected("a version");
    return version;
  }

  /** The single character that is next, without moving; empty at the end. */
  peek(): string {
    return this.#text[this.#at] ?? "";
  }

  /** Moves to the first of these characters that is outside of brackets, without moving past it. */
  skipTo(stops: string): void {
    let open = 0;
    while (!this.done) {
      const c = this.peek();
      if (open === 0 && stops.includes(c)) {
        this.#comments = [];
        return;
      }
      if (this.#text.startsWith("->", this.#at)) this.#at++;
      else if ("<({".includes(c)) open++;
      else if (">)}".includes(c)) open--;
      if (open < 0) break;
      this.#at++;
      this.#skip();
    }
    throw this.unexpected([...stops].map((stop) => JSON.stringify(stop)).join(" or "));
  }

  unexpected(expected: string): Invalid {
    const found = this.done
      ? "the text ends"
      : `found ${JSON.stringify(this.#text.slice(this.#at, this.#at + 20).split("\n", 1)[0] ?? "")}`;
    return this.fail(`expected ${expected}, ${found}`);
  }

  fail(message: string): Invalid {
    const before = this.#text.slice(0, this.#at).split("\n");
    const at = `${this.#path}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    return new Invalid("WitSyntax", `${at}: ${message}`, at);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return undefined;
    this.#at += found.length;
    this.#skip();
    return found;
  }

  /** Moves past white space and comments, keeping doc comments. */
  #skip(): void {
    for (;;) {
      const space = /\s*/y;
      space.lastIndex = this.#at;
      this.#at += space.exec(this.#text)?.[0].length ?? 0;
      if (this.#text.startsWith("//", this.#at)) {
        const end = this.#text.indexOf("\n", this.#at);
        this.#keep(this.#text.slice(this.#at, end < 0 ? undefined : end));
      } else if (this.#text.startsWith("/*", this.#at)) {
        this.#keep(this.#text.slice(this.#at, this.#endOfBlock()));
      } else return;
    }
  }

  #keep(comment: string): void {
    this.#at += comment.length;
    this.#comments.push(comment);
  }

  /** Block comments nest. */
  #endOfBlock(): number {
    const marks = /\/\*|\*\//g;
    marks.lastIndex = this.#at;
    let open = 0;
    for (let mark = marks.exec(this.#text); mark; mark = marks.exec(this.#text)) {
      open += mark[0] === "/*" ? 1 : -1;
      if (open === 0) return marks.lastIndex;
    }
    throw this.fail("a block comment is not closed");
  }
}
