import assert from "node:assert/strict";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type DispatchLimits, defaultDispatchLimits, dispatchToHost } from "../../../src/catalogue/dispatch.ts";
import { endpoint, stats } from "./world.ts";

const limits: DispatchLimits = { ...defaultDispatchLimits, graceMs: 200, replyBytes: 4096 };

/** Sends one call to a host that does as it is told, over a real connection. */
const dispatchedTo = async (answer: RequestListener, body = "{}") => {
  const host = createServer(answer);
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  const { port } = host.address() as AddressInfo;
  const dispatcher = dispatchToHost(limits);
  try {
    return await dispatcher.dispatch(endpoint({ url: `http://127.0.0.1:${port}`, deadlineMs: 0 }), "a.ticket", Buffer.from(body));
  } finally {
    await dispatcher.close();
    host.closeAllConnections();
    host.close();
  }
};

const json = (response: ServerResponse, status: number, text: string) =>
  response.writeHead(status, { "content-type": "application/json" }).end(text);

test("a host gets the bytes and the ticket as they are", async () => {
  let got = "";
  const dispatched = await dispatchedTo((request, response) => {
    request.on("data", (chunk) => {
      got += chunk;
    });
    request.on("end", () => {
      got += ` ${request.method} ${request.url} ${request.headers["ambit-ticket"]}`;
      json(response, 200, `{"outcome":"ok","text":"done","structured":{"n":18446744073709551615},"stats":{"queueMs":1,"runMs":2}}`);
    });
  }, '{"a":"é"}');
  assert.equal(got, '{"a":"é"} POST /v1/call a.ticket');
  assert.equal(dispatched.kind, "replied");
  assert.ok(dispatched.kind === "replied" && dispatched.reply.outcome === "ok");
  assert.deepEqual({ ...(dispatched.reply.structured as object) }, { n: 18446744073709551615n });
  assert.deepEqual(dispatched.reply.stats, stats);
});

test("what a host says of itself is read as figures and short words, or as nothing", async () => {
  const exchange = `{"method":"${"M".repeat(40)}","host":7,"atMs":-1,"ms":1e300,"status":"200"}`;
  const use = `{"requests":2.5e300,"deniedRequests":"1","sentBytes":3,"receivedBytes":null,"exchanges":[1,${Array(20).fill(exchange).join()}]}`;
  const said = `{"outcome":"ok","text":"","stats":{"queueMs":-5,"runMs":{"valueOf":1},"use":${use}}}`;
  const dispatched = await dispatchedTo((_, response) => json(response, 200, said));
  assert.ok(dispatched.kind === "replied");
  const { use: read, ...times } = dispatched.reply.stats;
  assert.deepEqual(times, { queueMs: 0, runMs: 0 });
  const { exchanges = [], ...counts } = read ?? {};
  assert.deepEqual(counts, { requests: 0, deniedRequests: 0, sentBytes: 3, receivedBytes: 0, writtenFileBytes: 0 });
  assert.equal(exchanges.length, 15);
  assert.deepEqual(exchanges[0], { method: "M".repeat(16), host: "", atMs: 0, ms: 0, status: null });
});

const answers: Record<string, { readonly answer: RequestListener; readonly kind: string }> = {
  "a refusal means that nothing ran": {
    answer: (_, response) => json(response, 401, '{"refused":true,"code":"TicketUsed","message":"used"}'),
    kind: "refused",
  },
  "a host that is not ready ran nothing": {
    answer: (_, response) => json(response, 503, '{"refused":true,"code":"NotReady","message":"no component yet"}'),
    kind: "refused",
  },
  "a host that failed within itself may have run it": {
    answer: (_, response) => json(response, 500, '{"refused":true,"code":"Internal","message":"see the log"}'),
    kind: "lost",
  },
  "a tool's error is a reply": { answer: (_, response) => json(response, 200, '{"outcome":"tool-error","text":"no"}'), kind: "replied" },
  "an error page is no answer": { answer: (_, response) => json(response, 502, "<html>"), kind: "lost" },
  "JSON in another shape is no answer": { answer: (_, response) => json(response, 200, '{"outcome":"maybe","text":"x"}'), kind: "lost" },
  "a reply under an error status is no answer": {
    answer: (_, response) => json(response, 500, '{"outcome":"ok","text":"x"}'),
    kind: "lost",
  },
  "an answer past the cap is none": {
    answer: (_, response) => json(response, 200, `{"outcome":"ok","text":"${"x".repeat(8192)}"}`),
    kind: "lost",
  },
  "a connection that ends midway leaves it open whether it ran": { answer: (request) => request.socket.destroy(), kind: "lost" },
  "an answer that ends midway too": {
    answer: (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("{", () => response.destroy());
    },
    kind: "lost",
  },
  "silence past the deadline too": { answer: () => undefined, kind: "lost" },
};
for (const [what, { answer, kind }] of Object.entries(answers)) {
  test(`what a host's answer means: ${what}`, async () => {
    assert.equal((await dispatchedTo(answer)).kind, kind);
  });
}

test("a port where nobody listens means that nothing ran", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  const dispatcher = dispatchToHost(limits);
  const dispatched = await dispatcher.dispatch(endpoint({ url: `http://127.0.0.1:${port}` }), "a.ticket", Buffer.from("{}"));
  await dispatcher.close();
  assert.equal(dispatched.kind, "unreachable");
});

test("hosts that went away do not keep connections for ever", async () => {
  const few = dispatchToHost({ ...limits, hosts: 1 });
  const host = createServer((_, response) => json(response, 200, '{"outcome":"ok","text":"x"}'));
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  const { port } = host.address() as AddressInfo;
  for (const name of ["127.0.0.1", "localhost", "127.0.0.1"]) {
    const { kind } = await few.dispatch(endpoint({ url: `http://${name}:${port}` }), "a.ticket", Buffer.from("{}"));
    assert.equal(kind, "replied");
  }
  await few.close();
  host.closeAllConnections();
  host.close();
});
