import { LRUCache } from "lru-cache";
import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { AmbitError, Transient } from "../api/errors.ts";
import { ApiError } from "../kube/api-error.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../kube/clock.ts";
import type { Authenticate, Caller } from "./caller.ts";

export interface TokenReviewOptions {
  readonly client: Pick<ClusterClient, "request">;
  readonly clock: Pick<Clock, "elapsed">;
  /** What a token must have been made for. A token for the API server alone is no token for us. */
  readonly audience: string;
  readonly limits?: TokenReviewLimits;
}

export interface TokenReviewLimits {
  /** How long the API server's word is enough without asking again. */
  readonly acceptedMs: number;
  readonly refusedMs: number;
  /** The same for an accepted token while the API server can't be asked; counted from when it was asked last. */
  readonly unreachableMs: number;
  /** Answers kept. */
  readonly kept: number;
  /** How long an answer is waited for, and after a failure how long the word of before is enough. */
  readonly answerMs: number;
  /** Questions under way; one more is told to come again, so that a flood of made-up tokens can't flood the API server. */
  readonly asked: number;
}

export const defaultTokenReviewLimits: TokenReviewLimits = {
  acceptedMs: 60_000,
  refusedMs: 10_000,
  unreachableMs: 10 * 60_000,
  kept: 20_000,
  answerMs: 5_000,
  asked: 64,
};

interface Known {
  readonly caller: Caller | null;
  /** In elapsed time: when the question was sent. */
  readonly at: number;
  /** When to ask again where asking failed since. */
  readonly againAt?: number;
}

/**
 * Tells who holds a token by asking the API server (TokenReview), once for all who ask at the same time and not again for a while. Tokens are kept as digests only.
 *
 * Rejects with `Transient` (`AuthenticationBusy`, or what asking failed with) where nobody can be vouched for.
 */
export const tokenReviewer = ({ client, clock, audience, limits = defaultTokenReviewLimits }: TokenReviewOptions): Authenticate => {
  const known = new LRUCache<Sha256Digest, Known>({ max: limits.kept });
  const underWay = new Map<Sha256Digest, Promise<Caller | null>>();

  const ask = async (digest: Sha256Digest, token: string): Promise<Caller | null> => {
    const at = clock.elapsed();
    const before = known.get(digest);
    try {
      const caller = callerIn(await client.request(reviewOf(token, audience, limits.answerMs)), audience);
      known.set(digest, { caller, at });
      return caller;
    } catch (thrown) {
      if (!isPassing(thrown)) throw thrown;
      if (before?.caller && at - before.at < limits.unreachableMs) {
        known.set(digest, { ...before, againAt: clock.elapsed() + limits.answerMs });
        return before.caller;
      }
      throw thrown instanceof Transient
        ? thrown
        : new Transient("AuthenticationUnavailable", "the API server does not answer TokenReviews now", { cause: thrown });
    }
  };

  return async (token) => {
    if (token === null) return null;
    const digest = sha256Of(token);
    const kept = known.get(digest);
    if (kept && isEnough(kept, clock.elapsed(), limits)) return kept.caller;
    const asked = underWay.get(digest);
    if (asked) return asked;
    if (underWay.size >= limits.asked) {
      throw new Transient("AuthenticationBusy", `${limits.asked} tokens are being checked; try again in a moment`);
    }
    const answer = ask(digest, token).finally(() => underWay.delete(digest));
    underWay.set(digest, answer);
    return answer;
  };
};

const isEnough = ({ caller, at, againAt }: Known, now: number, { acceptedMs, refusedMs }: TokenReviewLimits): boolean =>
  now - at < (caller ? acceptedMs : refusedMs) || (againAt !== undefined && now < againAt);

/** No answer, or one that says nothing of the token. A server that forbids us to ask is not passing, and is told. */
const isPassing = (thrown: unknown): boolean =>
  thrown instanceof ApiError
    ? thrown.status === 429 || thrown.status >= 500
    : thrown instanceof AmbitError || (thrown instanceof DOMException && thrown.name === "TimeoutError");

const reviewOf = (token: string, audience: string, answerMs: number) =>
  ({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences: [audience] } },
    retries: 0,
    signal: AbortSignal.timeout(answerMs),
  }) as const;

interface ReviewAnswer {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly audiences?: readonly string[];
    readonly user?: { readonly username?: string; readonly groups?: readonly string[] };
  };
}

/** An API server that knows nothing of audiences names none, and its word is then not enough. */
const callerIn = (answer: unknown, audience: string): Caller | null => {
  const { authenticated, audiences = [], user } = (answer as ReviewAnswer | null)?.status ?? {};
  if (authenticated !== true || !user?.username || !audiences.includes(audience)) return null;
  return { user: user.username, groups: user.groups ?? [], namespace: namespaceOf(user.username) };
};

const namespaceOf = (user: string): string | null => /^system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+$/.exec(user)?.[1] ?? null;
