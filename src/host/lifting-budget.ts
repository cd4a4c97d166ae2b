import { AmbitError } from "../api/errors.ts";

/** What one list element or one string costs besides its bytes; about what V8 keeps for the reference to it. */
const bytesPerElement = 8;

/** A guest hands over more than it may. Thrown out of the generated code while it lifts, before the memory is taken. */
export class TooMuchLifted extends AmbitError {
  constructor(limit: number) {
    super("ResultTooLarge", `a value that the component hands over takes more than the ${limit} bytes allowed`);
  }
}

/**
 * What generated code gets in place of globals and calls while it copies out of a guest's memory (`generated-source.ts`): each copy is charged before it is
 * made. `refill` starts anew, for each import that the guest calls and for its result.
 */
export class LiftingGuard {
  #limit: number;
  #left: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.#left = limit;
    const charge = (bytes: number): void => this.#charge(bytes);
    this.TextDecoder = class {
      readonly #decoder: TextDecoder;

      constructor(encoding = "utf-8") {
        this.#decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
      }

      decode(bytes: Uint8Array | Uint16Array | DataView): string {
        charge(bytes.byteLength + bytesPerElement);
        return this.#decoder.decode(bytes);
      }
    };
  }

  readonly TextDecoder: new (
    encoding?: string,
  ) => { decode(bytes: Uint8Array | Uint16Array | DataView): string };

  /** Generated code reports values of the guest's choosing on the console; nobody asked for them. */
  readonly console = { log: ignore, error: ignore, warn: ignore, debug: ignore };

  /** For what comes next, until the next call of this. */
  allow(limit: number): void {
    this.#limit = limit;
    this.#left = limit;
  }

  refill(): void {
    this.#left = this.#limit;
  }

  /** Charges for a list of `count` elements; gives 0, where its loop starts. */
  elements(count: number): 0 {
    this.#charge(count * bytesPerElement);
    return 0;
  }

  slice(buffer: ArrayBuffer, start: number, end: number): ArrayBuffer {
    this.#charge(end - start + bytesPerElement);
    return buffer.slice(start, end);
  }

  #charge(bytes: number): void {
    this.#left -= bytes;
    if (!(this.#left >= 0)) throw new TooMuchLifted(this.#limit);
  }
}

const ignore = (): void => {};
