import type { CallContext } from "./call-context.ts";
import type { FileErrorCode } from "./filesystem/error-code.ts";
import { GuestError } from "./guest-error.ts";
import type { ErrorCode } from "./http/error-code.ts";
import { blockOn, Pollable, type Readiness } from "./poll.ts";

/** Most that one read gives and one write takes; a guest asks again for more. */
const chunkBytes = 64 * 1024;

/** `wasi:io/error`: what went wrong with a stream. `code` is what `filesystem-error-code` or `http-error-code` gives for it. */
export class IoError {
  readonly #message: string;
  readonly #code: IoErrorCode | null;

  constructor(message: string, code: IoErrorCode | null = null) {
    this.#message = message;
    this.#code = code;
  }

  static codeOf(error: IoError): IoErrorCode | null {
    return error.#code;
  }

  toDebugString(): string {
    return this.#message;
  }
}

export type IoErrorCode =
  | { readonly kind: "filesystem"; readonly code: FileErrorCode }
  | { readonly kind: "http"; readonly code: ErrorCode };

/** Where an input stream's bytes come from. */
export interface InputSource {
  /** Up to `max` bytes that are there now: empty where none are yet, null at the end. Throws `IoError`. */
  readonly read: (max: number) => Uint8Array | null;
  readonly readiness: Readiness;
  readonly close: () => void;
}

/** Where an output stream's bytes go. */
export interface OutputSink {
  /** How many bytes may be written now; 0 where the guest has to wait, null once nothing can be written. Throws `IoError`. */
  readonly room: () => number | null;
  /** At most as many bytes as there is room for. Throws `IoError`. */
  readonly write: (bytes: Uint8Array) => void;
  readonly flush: () => void;
  readonly readiness: Readiness;
  readonly close: () => void;
}

const closed = (): GuestError<unknown> => new GuestError({ tag: "closed" });

/** Runs what may throw an `IoError` and gives the guest its `stream-error`. */
const guarded = <T>(work: () => T): T => {
  try {
    return work();
  } catch (error) {
    throw error instanceof IoError ? new GuestError({ tag: "last-operation-failed", val: error }) : error;
  }
};

const bounded = (length: bigint): number => (length > BigInt(chunkBytes) ? chunkBytes : Number(length));

/** `wasi:io/streams`: input. */
export class InputStream implements Disposable {
  readonly #context: CallContext;
  readonly #source: InputSource;

  constructor(context: CallContext, source: InputSource) {
    this.#context = context;
    this.#source = source;
  }

  read(length: bigint): Uint8Array {
    const bytes = guarded(() => this.#source.read(bounded(length)));
    if (bytes === null) throw closed();
    return bytes;
  }

  blockingRead(length: bigint): Uint8Array | Promise<Uint8Array> {
    const bytes = this.read(length);
    if (bytes.length > 0 || length === 0n) return bytes;
    const wait = blockOn(this.#context, [this.#source.readiness]);
    return wait === undefined ? this.read(length) : wait.then(() => this.blockingRead(length));
  }

  skip(length: bigint): bigint {
    return BigInt(this.read(length).length);
  }

  blockingSkip(length: bigint): bigint | Promise<bigint> {
    const bytes = this.blockingRead(length);
    return bytes instanceof Promise ? bytes.then((read) => BigInt(read.length)) : BigInt(bytes.length);
  }

  subscribe(): Pollable {
    return new Pollable(this.#context, this.#source.readiness);
  }

  [Symbol.dispose](): void {
    this.#source.close();
  }
}

/** `wasi:io/streams`: output. */
export class OutputStream implements Disposable {
  readonly #context: CallContext;
  readonly #sink: OutputSink;

  constructor(context: CallContext, sink: OutputSink) {
    this.#context = context;
    this.#sink = sink;
  }

  checkWrite(): bigint {
    return BigInt(this.#room());
  }

  write(contents: Uint8Array): void {
    const room = this.#room();
    if (contents.length > room) {
      throw new GuestError({
        tag: "last-operation-failed",
        val: new IoError(`wrote ${contents.length} bytes where check-write permitted ${room}`),
      });
    }
    if (contents.length > 0) guarded(() => this.#sink.write(contents));
  }

  flush(): void {
    guarded(() => this.#sink.flush());
  }

  blockingFlush(): void | Promise<void> {
    this.flush();
    return this.#whenRoom();
  }

  blockingWriteAndFlush(contents: Uint8Array): void | Promise<void> {
    let rest = contents;
    while (rest.length > 0) {
      const room = this.#room();
      if (room === 0) {
        const wait = blockOn(this.#context, [this.#sink.readiness]);
        const left = rest;
        if (wait !== undefined) return wait.then(() => this.blockingWriteAndFlush(left));
        continue;
      }
      const part = rest.subarray(0, room);
      guarded(() => this.#sink.write(part));
      rest = rest.subarray(part.length);
    }
    return this.blockingFlush();
  }

  writeZeroes(length: bigint): void {
    this.write(new Uint8Array(this.#zeroes(length)));
  }

  blockingWriteZeroesAndFlush(length: bigint): void | Promise<void> {
    return this.blockingWriteAndFlush(new Uint8Array(this.#zeroes(length)));
  }

  splice(source: InputStream, length: bigint): bigint {
    const room = this.#room();
    const bytes = source.read(length < BigInt(room) ? length : BigInt(room));
    this.write(bytes);
    return BigInt(bytes.length);
  }

  blockingSplice(source: InputStream, length: bigint): bigint | Promise<bigint> {
    const pass = (bytes: Uint8Array): bigint | Promise<bigint> => {
      const written = this.blockingWriteAndFlush(bytes);
      return written === undefined ? BigInt(bytes.length) : written.then(() => BigInt(bytes.length));
    };
    const bytes = source.blockingRead(length);
    return bytes instanceof Promise ? bytes.then(pass) : pass(bytes);
  }

  subscribe(): Pollable {
    return new Pollable(this.#context, this.#sink.readiness);
  }

  [Symbol.dispose](): void {
    this.#sink.close();
  }

  #room(): number {
    const room = guarded(() => this.#sink.room());
    if (room === null) throw closed();
    return Math.min(room, chunkBytes);
  }

  #whenRoom(): void | Promise<void> {
    if (this.#room() > 0) return undefined;
    const wait = blockOn(this.#context, [this.#sink.readiness]);
    return wait?.then(() => {
      this.#room();
    });
  }

  #zeroes(length: bigint): number {
    if (length > BigInt(chunkBytes)) {
      throw new GuestError({
        tag: "last-operation-failed",
        val: new IoError(`asked for ${length} zero bytes at once; ${chunkBytes} are the most`),
      });
    }
    return Number(length);
  }
}
