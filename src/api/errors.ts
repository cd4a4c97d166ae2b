/**
 * Errors are typed by what follows from them, each with a stable code that documents and tests may rely on.
 *
 * Towards a caller: `Refused` (policy said no, nothing ran) and `Invalid` (the input is wrong; the message says where and how).
 * Towards a reconciler: `Stalled` (a person must act), `Waiting` (something will change by itself), `Transient` (try again, backing off).
 */
export class AmbitError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The input is wrong. `at` is where: a JSON pointer, `file:line:column`, or a byte offset, as the code's documentation says. */
export class Invalid extends AmbitError {
  readonly at: string | undefined;

  constructor(code: string, message: string, at?: string, options?: ErrorOptions) {
    super(code, message, options);
    this.at = at;
  }
}

/** Policy says no. Nothing ran and nothing changed. */
export class Refused extends AmbitError {}

/** Cannot go on until a person acts; the message says what to do. */
export class Stalled extends AmbitError {}

/** Cannot go on yet; `retryAfterMs` is when a look is worth it even if no event arrives. */
export class Waiting extends AmbitError {
  readonly retryAfterMs: number;

  constructor(code: string, message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(code, message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A passing fault of something outside: a connection, a full disk, a busy server. */
export class Transient extends AmbitError {}

/** The message of anything that was thrown. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
