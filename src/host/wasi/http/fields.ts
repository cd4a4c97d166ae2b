import { hopHeader } from "../../../api/host.ts";
import { GuestError } from "../guest-error.ts";

type HeaderError = { readonly tag: "invalid-syntax" | "forbidden" | "immutable" };
type Entry = readonly [name: string, value: Uint8Array];

/** Bounds of one set of fields, names and values together. */
const mostFields = 256;
const mostFieldBytes = 64 * 1024;

/** Of one connection only (RFC 9110, 7.6.1), or decided by the host. A guest can neither set them nor see them. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "expect",
  hopHeader,
]);

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const fail = (tag: HeaderError["tag"]): GuestError<HeaderError> => new GuestError({ tag });

const checkedName = (name: string): string => {
  if (!token.test(name)) throw fail("invalid-syntax");
  const lower = name.toLowerCase();
  if (hopByHop.has(lower)) throw fail("forbidden");
  return lower;
};

/** Field values are visible ASCII, spaces, tabs and bytes above 0x7f (RFC 9110, 5.5), without spaces around. */
const checkedValue = (value: Uint8Array): Uint8Array => {
  const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09;
  if (isBlank(value[0]) || isBlank(value.at(-1))) throw fail("invalid-syntax");
  for (const byte of value) {
    if ((byte < 0x20 && byte !== 0x09) || byte === 0x7f) throw fail("invalid-syntax");
  }
  return value;
};

/** `wasi:http/types`: headers and trailers. Names are kept in lower case; `fields` that belong to a request or response are immutable. */
export class Fields {
  #entries: Entry[] = [];
  #bytes = 0;
  #immutable = false;

  static fromList(entries: readonly Entry[]): Fields {
    const made = new Fields();
    for (const [name, value] of entries) made.append(name, value);
    return made;
  }

  /** What an HTTP message had, without what is not the guest's to see. `raw` alternates names and values as Node gives them, one character a byte. */
  static received(raw: readonly string[]): Fields {
    const made = new Fields();
    for (let index = 0; index + 1 < raw.length; index += 2) {
      const name = (raw[index] ?? "").toLowerCase();
      if (!hopByHop.has(name)) made.#entries.push([name, Buffer.from(raw[index + 1] ?? "", "latin1")]);
    }
    made.#immutable = true;
    return made;
  }

  /** The same fields, which can no longer change. */
  static frozen(fields: Fields): Fields {
    const made = new Fields();
    made.#entries = [...fields.#entries];
    made.#immutable = true;
    return made;
  }

  static entriesOf(fields: Fields): readonly Entry[] {
    return fields.#entries;
  }

  get(name: string): Uint8Array[] {
    const lower = name.toLowerCase();
    return this.#entries.filter(([held]) => held === lower).map(([, value]) => value);
  }

  has(name: string): boolean {
    const lower = name.toLowerCase();
    return this.#entries.some(([held]) => held === lower);
  }

  set(name: string, values: readonly Uint8Array[]): void {
    const lower = this.#changeable(name);
    const checked = values.map(checkedValue);
    this.#remove(lower);
    for (const value of checked) this.#add(lower, value);
  }

  delete(name: string): void {
    this.#remove(this.#changeable(name));
  }

  append(name: string, value: Uint8Array): void {
    this.#add(this.#changeable(name), checkedValue(value));
  }

  entries(): [string, Uint8Array][] {
    return this.#entries.map(([name, value]) => [name, value]);
  }

  clone(): Fields {
    const made = new Fields();
    made.#entries = [...this.#entries];
    made.#bytes = this.#bytes;
    return made;
  }

  #changeable(name: string): string {
    if (this.#immutable) throw fail("immutable");
    return checkedName(name);
  }

  #add(name: string, value: Uint8Array): void {
    const bytes = this.#bytes + name.length + value.length;
    if (this.#entries.length >= mostFields || bytes > mostFieldBytes) throw fail("forbidden");
    this.#bytes = bytes;
    this.#entries.push([name, value]);
  }

  #remove(name: string): void {
    for (const [held, value] of this.#entries) {
      if (held === name) this.#bytes -= held.length + value.length;
    }
    this.#entries = this.#entries.filter(([held]) => held !== name);
  }
}
