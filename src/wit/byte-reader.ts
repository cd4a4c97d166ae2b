import { Invalid } from "../api/errors.ts";

/** A byte offset as errors show it: `0x1a2b`. */
export const offsetText = (offset: number): string => `0x${offset.toString(16)}`;

export const malformed = (message: string, offset: number): Invalid =>
  new Invalid("ComponentMalformed", `not a valid component at ${offsetText(offset)}: ${message}`, offsetText(offset));

export const unsupported = (message: string, offset: number): Invalid =>
  new Invalid("ComponentUnsupported", `${message} (at ${offsetText(offset)})`, offsetText(offset));

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads the primitives of the binary format from a slice, never past its end. Offsets are those of the whole file. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #maxNameBytes: number;
  readonly end: number;
  at: number;

  constructor(bytes: Uint8Array, start: number, end: number, maxNameBytes: number) {
    this.#bytes = bytes;
    this.#maxNameBytes = maxNameBytes;
    this.at = start;
    this.end = end;
  }

  get done(): boolean {
    return this.at >= this.end;
  }

  u8(what: string): number {
    const byte = this.at < this.end ? this.#bytes[this.at] : undefined;
    if (byte === undefined) throw malformed(`${what} expected, but the ${this.#ending()} ends here`, this.at);
    this.at++;
    return byte;
  }

  peek(): number | undefined {
    return this.at < this.end ? this.#bytes[this.at] : undefined;
  }

  /** Unsigned LEB128 of at most 32 bits. */
  u32(what: string): number {
    const start = this.at;
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.u8(what);
      if (shift === 28 && byte > 0x0f) throw malformed(`${what} does not fit 32 bits`, start);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  /** The non-negative half of a signed LEB128 of 33 bits, which is how type indices are told from type codes; undefined if negative. */
  s33Index(what: string): number | undefined {
    const start = this.at;
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.u8(what);
      if (shift === 28 && byte > 0x0f) throw malformed(`${what} does not fit 33 bits`, start);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return (byte & 0x40) !== 0 && shift < 28 ? undefined : value;
    }
  }

  /** How many items follow; each takes at least one byte, so a count beyond the bytes left is refused before anything is allocated. */
  count(what: string): number {
    const start = this.at;
    const count = this.u32(`the number of ${what}`);
    if (count > this.end - this.at) throw malformed(`${count} ${what} announced, but only ${this.end - this.at} bytes are left`, start);
    return count;
  }

  /** A length-prefixed name. */
  name(what: string): string {
    const start = this.at;
    const length = this.count(`bytes of ${what}`);
    if (length > this.#maxNameBytes) {
      throw new Invalid(
        "ComponentTooLarge",
        `${what} at ${offsetText(start)} has ${length} bytes, more than the ${this.#maxNameBytes} allowed`,
        offsetText(start),
      );
    }
    return this.#text(length, what);
  }

  /** A slice of its own for a section or nested component; this reader moves past it. */
  slice(length: number, what: string): ByteReader {
    if (length > this.end - this.at) {
      throw malformed(`${what} is said to have ${length} bytes, but only ${this.end - this.at} are left`, this.at);
    }
    const inner = new ByteReader(this.#bytes, this.at, this.at + length, this.#maxNameBytes);
    this.at += length;
    return inner;
  }

  /** What is left, as a view. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.at, this.end);
  }

  expectEnd(what: string): void {
    if (!this.done) throw malformed(`${what} has ${this.end - this.at} bytes too many`, this.at);
  }

  #text(length: number, what: string): string {
    const bytes = this.#bytes.subarray(this.at, this.at + length);
    try {
      const text = utf8.decode(bytes);
      this.at += length;
      return text;
    } catch (cause) {
      if (cause instanceof TypeError) throw malformed(`${what} is not UTF-8`, this.at);
      throw cause;
    }
  }

  #ending(): string {
    return this.end === this.#bytes.length ? "file" : "section";
  }
}
