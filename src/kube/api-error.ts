import { AmbitError } from "../api/errors.ts";

/** What an API server said no with (`metav1.Status`). Fields may be missing: proxies answer too. */
export interface ApiStatus {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The words of `metav1.StatusReason`, for answers that come without one. */
const reasonsByStatus: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  502: "BadGateway",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** The API server refused a request. `code` is its reason (`NotFound`, `Conflict`, `Invalid`, `TooManyRequests`, …). */
export class ApiError extends AmbitError {
  readonly status: number;
  readonly causes: readonly StatusCause[];
  /** How long the server asked to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    message: string,
    { status, causes = [], retryAfterMs }: { status: number; causes?: readonly StatusCause[]; retryAfterMs?: number | undefined },
  ) {
    super(code, message);
    this.status = status;
    this.causes = causes;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A field that somebody else set to another value. */
export interface FieldConflict {
  /** As the server writes it: `.spec.replicas`. */
  readonly field: string;
  /** Who set it, in the server's words. */
  readonly message: string;
}

/** Another field manager holds fields that an apply wants otherwise; nothing was written. */
export class ApplyConflict extends ApiError {
  readonly conflicts: readonly FieldConflict[];

  constructor(message: string, causes: readonly StatusCause[]) {
    super("ApplyConflict", message, { status: 409, causes });
    this.conflicts = causes
      .filter(({ reason }) => reason === "FieldManagerConflict")
      .map(({ field = "", message: text = "" }) => ({ field, message: text }));
  }
}

/** The error for a refusal. `asked` is the request in words, for the message; `retryAfter` is the header. */
export const apiErrorOf = (asked: string, httpStatus: number, status: ApiStatus, retryAfter?: string): ApiError => {
  const said = status.message ?? "the server gave no reason";
  const causes = status.details?.causes ?? [];
  if (causes.some(({ reason }) => reason === "FieldManagerConflict")) return new ApplyConflict(`${asked}: ${said}`, causes);
  const code = status.reason || reasonsByStatus[httpStatus] || `Http${httpStatus}`;
  const seconds = secondsOf(retryAfter) ?? status.details?.retryAfterSeconds;
  return new ApiError(code, `${asked}: ${said}`, {
    status: httpStatus,
    causes,
    retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
  });
};

/** Longer than any server asks for in earnest: a wrong header must not stop us for a day. */
const longestRetryAfterSeconds = 300;

/** API servers send seconds; the form with a date is left to the caller's own back-off. */
const secondsOf = (header: string | undefined): number | undefined =>
  header !== undefined && /^[0-9]{1,9}$/.test(header) ? Math.min(Number(header), longestRetryAfterSeconds) : undefined;

const hasCode = (thrown: unknown, ...codes: string[]): boolean => thrown instanceof ApiError && codes.includes(thrown.code);

export const isNotFound = (thrown: unknown): boolean => hasCode(thrown, "NotFound");

/** The object changed since it was read, or is there already. */
export const isConflict = (thrown: unknown): boolean => hasCode(thrown, "Conflict", "AlreadyExists", "ApplyConflict");

/** The resource version, or the continue token, is too old to go on from. */
export const isExpired = (thrown: unknown): boolean =>
  thrown instanceof ApiError && (thrown.status === 410 || hasCode(thrown, "Expired", "Gone"));
