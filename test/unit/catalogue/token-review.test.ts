import assert from "node:assert/strict";
import { test } from "node:test";
import { Transient } from "../../../src/api/errors.ts";
import { tokenReviewer } from "../../../src/catalogue/token-review.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { ApiRequest } from "../../../src/kube/client.ts";

const limits = { acceptedMs: 60_000, refusedMs: 10_000, unreachableMs: 600_000, kept: 100, answerMs: 5_000, asked: 2 };

const triage = { username: "system:serviceaccount:agents:triage", groups: ["system:serviceaccounts", "system:authenticated"] };

const accepted = { status: { authenticated: true, audiences: ["ambit"], user: triage } };

/** A reviewer on an API server that answers with what `answer` gives, and a clock that the test moves. */
const reviewing = (answer: (request: ApiRequest) => unknown) => {
  const asked: ApiRequest[] = [];
  const clock = { time: 0, elapsed: () => clock.time };
  const client = {
    request: async (request: ApiRequest) => {
      asked.push(request);
      return answer(request);
    },
  };
  return { asked, clock, authenticate: tokenReviewer({ client, clock, audience: "ambit", limits }) };
};

const unreachable = () => {
  throw new Transient("ApiUnreachable", "no route");
};

test("a token that the API server vouches for is its account, for our audience alone", async () => {
  const { authenticate, asked } = reviewing(() => accepted);
  assert.deepEqual(await authenticate("a.b.c"), { user: triage.username, groups: triage.groups, namespace: "agents" });
  assert.deepEqual((asked[0]?.body as { spec: unknown } | undefined)?.spec, { token: "a.b.c", audiences: ["ambit"] });
});

const nobody: Record<string, unknown> = {
  "an unknown token": { status: { authenticated: false } },
  "a token for another audience": { status: { authenticated: true, audiences: ["other"], user: triage } },
  "a token of a server that knows no audiences": { status: { authenticated: true, user: triage } },
  "an answer without a user": { status: { authenticated: true, audiences: ["ambit"] } },
  "an answer without a status": {},
  "no answer": null,
};

for (const [what, answer] of Object.entries(nobody)) {
  test(`${what} is nobody's`, async () => {
    assert.equal(await reviewing(() => answer).authenticate("a.b.c"), null);
  });
}

test("nobody is asked about no token", async () => {
  const { authenticate, asked } = reviewing(() => accepted);
  assert.equal(await authenticate(null), null);
  assert.equal(asked.length, 0);
});

test("a user that is no service account has no namespace", async () => {
  const { authenticate } = reviewing(() => ({ status: { ...accepted.status, user: { username: "system:serviceaccount:x" } } }));
  assert.deepEqual(await authenticate("a.b.c"), { user: "system:serviceaccount:x", groups: [], namespace: null });
});

test("an accepted token is asked about again after a minute, and is then whatever it is by then", async () => {
  let answer: unknown = accepted;
  const { authenticate, asked, clock } = reviewing(() => answer);
  await authenticate("a.b.c");
  answer = { status: { authenticated: false } };
  clock.time = 59_999;
  assert.notEqual(await authenticate("a.b.c"), null);
  clock.time = 60_000;
  assert.equal(await authenticate("a.b.c"), null);
  assert.equal(asked.length, 2);
});

test("a refused token is asked about again after ten seconds", async () => {
  let answer: unknown = { status: { authenticated: false } };
  const { authenticate, clock } = reviewing(() => answer);
  assert.equal(await authenticate("a.b.c"), null);
  answer = accepted;
  clock.time = 9_999;
  assert.equal(await authenticate("a.b.c"), null);
  clock.time = 10_000;
  assert.notEqual(await authenticate("a.b.c"), null);
});

test("all who send one token at the same time wait for one answer", async () => {
  const { authenticate, asked } = reviewing(() => accepted);
  const callers = await Promise.all(Array.from({ length: 50 }, () => authenticate("a.b.c")));
  assert.equal(asked.length, 1);
  assert.equal(new Set(callers).size, 1);
});

test("more tokens at a time than may be asked about are told to come again", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const { authenticate } = reviewing(() => promise);
  const waiting = [authenticate("1"), authenticate("2")];
  await assert.rejects(authenticate("3"), { code: "AuthenticationBusy" });
  resolve(accepted);
  await Promise.all(waiting);
  assert.notEqual(await authenticate("3"), null);
});

test("while the API server can't be reached an accepted token holds ten minutes, asked about every five seconds", async () => {
  let answer: () => unknown = () => accepted;
  const { authenticate, asked, clock } = reviewing(() => answer());
  await authenticate("a.b.c");
  answer = unreachable;
  clock.time = 100_000;
  assert.notEqual(await authenticate("a.b.c"), null);
  assert.notEqual(await authenticate("a.b.c"), null);
  assert.equal(asked.length, 2);
  clock.time = 105_000;
  assert.notEqual(await authenticate("a.b.c"), null);
  assert.equal(asked.length, 3);
  clock.time = 600_000;
  await assert.rejects(authenticate("a.b.c"), { code: "ApiUnreachable" });
});

test("a token that was never seen is nobody's word while the API server can't be reached", async () => {
  await assert.rejects(reviewing(unreachable).authenticate("a.b.c"), { code: "ApiUnreachable" });
});

test("a server that forbids us to ask is not taken for one that is away", async () => {
  let answer: () => unknown = () => accepted;
  const { authenticate, clock } = reviewing(() => answer());
  await authenticate("a.b.c");
  answer = () => {
    throw new ApiError("Forbidden", "no", { status: 403 });
  };
  clock.time = 60_000;
  await assert.rejects(authenticate("a.b.c"), { code: "Forbidden" });
});
