/** The catalogue gave no answer, or said that the request is wrong. What a call itself came to is never an error: that is an answer for the model. */
export class CatalogueError extends Error {
  /** Stable, such as `Unauthenticated`; `Unreachable` where there was no answer at all. */
  readonly code: string;
  /** The HTTP status, null where there was no answer. */
  readonly status: number | null;
  /** JSON pointer into the request's body, where the fault lies there. */
  readonly at: string | undefined;
  /** Whether a tool may have run, so that making the call again could do its work twice. */
  readonly mayHaveRun: boolean;

  constructor(
    code: string,
    message: string,
    about: { readonly status: number | null; readonly at?: string | undefined; readonly mayHaveRun: boolean },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "CatalogueError";
    this.code = code;
    this.status = about.status;
    this.at = about.at;
    this.mayHaveRun = about.mayHaveRun;
  }
}
