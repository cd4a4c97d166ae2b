import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import type { ToolGrantSpec } from "../../src/api/generated/toolgrant.ts";
import { defaultHostLimits, type HostConfig } from "../../src/api/host.ts";
import { serviceAccountCaller } from "../../src/catalogue/caller.ts";
import { createCatalogue } from "../../src/catalogue/catalogue.ts";
import { type Dispatch, dispatchToHost } from "../../src/catalogue/dispatch.ts";
import type { JournalEntry } from "../../src/catalogue/journal.ts";
import { CatalogueState, type LiveGrant } from "../../src/catalogue/state.ts";
import { declarationOf } from "../../src/declaration/declaration.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { grantDigest } from "../../src/grants/grant-digest.ts";
import { type HostDeliveries, startHostProcess } from "../../src/local/host-process.ts";
import { OperatorKeys } from "../../src/local/operator-keys.ts";
import { decodeComponent } from "../../src/wit/decode.ts";

const component = { namespace: "agents", workload: "hostile", component: "hostile" } as const;
const attacks = "ambit:hostile/attacks@0.1.0";

/** A catalogue before a real host process that runs the hostile component under a deadline of a second. */
const serving = async () => {
  const bytes = await readFile(new URL("../fixtures/components/hostile.wasm", import.meta.url));
  const code = sha256Of(bytes);
  const { functions } = decodeComponent(bytes);
  const cacheFolder = await mkdtemp(join(tmpdir(), "ambit-catalogue-"));
  const keys = new OperatorKeys(Date.now);
  const config: HostConfig = {
    component: code,
    rootKey: keys.rootPublicKey,
    podUid: "pod-of-the-test",
    listen: { address: "127.0.0.1", port: 0 },
    transport: "http",
    allowedHosts: [],
    resolver: "system",
    hostOverrides: {},
    environment: {},
    mounts: [],
    limits: { ...defaultHostLimits, timeoutMs: 1_000 },
    callsPerInstance: 1,
    cacheFolder,
  };
  const deliveries: HostDeliveries = {
    keys: (boot) => keys.keySetFor(boot),
    listingRequest: (boot, known) => keys.listingRequestFor(boot, known),
    component: async () => bytes,
  };
  const host = await startHostProcess(config, deliveries, { line: () => undefined }, new AbortController().signal);

  const grantOf = (name: string, mutates: boolean): LiveGrant => {
    const fn = functions.find((candidate) => candidate.interface === attacks && candidate.name === name);
    assert.ok(fn, name);
    const spec: ToolGrantSpec = {
      tool: { workload: "hostile", component: "hostile", interface: attacks, function: name },
      declaration: { ...declarationOf(fn) },
      subjects: [{ kind: "ServiceAccount", name: "triage", namespace: "agents" }],
      mutates,
      egressCeiling: "Internal",
      ...(mutates && { fields: [{ path: "", acceptUntrusted: true as const }] }),
    };
    return { namespace: "agents", name, spec, grant: grantDigest(spec), definition: definitionDigest(fn), components: [code], fn };
  };
  const state = new CatalogueState();
  state.apply([
    { kind: "endpoints", of: component, endpoints: [host.endpoint] },
    { kind: "grant", grant: grantOf("echo", false) },
    { kind: "grant", grant: grantOf("fail-at-length", false) },
    { kind: "grant", grant: grantOf("trap", false) },
    { kind: "grant", grant: grantOf("spin", true) },
  ]);

  const { dispatch, close: closeDispatcher } = dispatchToHost();
  const sent: { ticket: string; body: Uint8Array }[] = [];
  const recording: Dispatch = (endpoint, ticket, body) => {
    sent.push({ ticket, body });
    return dispatch(endpoint, ticket, body);
  };
  const journal: JournalEntry[] = [];
  const caller = serviceAccountCaller("agents", "triage");
  const catalogue = createCatalogue(
    {
      state,
      authenticate: async (token) => (token === "secret" ? caller : null),
      signer: () => keys.signer,
      dispatch: recording,
      journal: (entry) => journal.push(entry),
      now: Date.now,
      monotonic: () => performance.now(),
      random: (count) => randomBytes(count),
      isReady: () => true,
      report: (fault) => assert.fail(String(fault)),
    },
    { hosts: [] },
  );
  const { port } = await catalogue.listen("127.0.0.1", 0);
  const call = async (name: string, args: object) => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/calls`, {
      method: "POST",
      headers: { authorization: "Bearer secret", "content-type": "application/json" },
      body: JSON.stringify({ name, arguments: args }),
    });
    assert.equal(response.status, 200);
    return (await response.json()) as { outcome: string; content: { text: string }[]; structuredContent?: unknown };
  };
  return {
    call,
    host,
    sent,
    journal,
    [Symbol.asyncDispose]: async () => {
      catalogue.server.closeAllConnections();
      await catalogue.close();
      await closeDispatcher();
      await host.stop();
      await rm(cacheFolder, { recursive: true });
    },
  };
};

test("calls go through a real host, and what one guest does to itself stays its own", async (t) => {
  await using served = await serving();

  await t.test("a good call gives the value, exactly", async () => {
    const answer = await served.call("echo", { text: "spoon 🥄" });
    assert.deepEqual(answer, {
      content: [{ type: "text", text: "spoon 🥄" }],
      structuredContent: { result: "spoon 🥄" },
      isError: false,
      outcome: "ok",
      label: { sources: ["tool:agents/echo"], trusted: false, sensitivity: "Internal" },
    });
  });

  await t.test("the function's own error is the tool's, a trap of a tool that only reads is a failure", async () => {
    const failed = await served.call("fail_at_length", { length: 3 });
    assert.equal(failed.outcome, "tool-error");
    assert.equal(failed.content[0]?.text.length, 3);
    assert.equal((await served.call("trap", {})).outcome, "failed");
    assert.equal(served.journal.at(-1)?.code, "Trap");
  });

  await t.test("a deadline of a tool that may change things leaves it in doubt, while others are answered", async () => {
    const spinning = served.call("spin", {});
    assert.equal((await served.call("echo", { text: "meanwhile" })).outcome, "ok");
    assert.equal((await spinning).outcome, "in-doubt");
    assert.equal(served.journal.find((entry) => entry.tool === "agents/spin")?.code, "Deadline");
  });

  const callHost = async (headers: Record<string, string>, body: Uint8Array) => {
    const response = await fetch(`${served.host.endpoint.url}/v1/call`, { method: "POST", headers, body: Buffer.from(body) });
    return { status: response.status, code: ((await response.json()) as { code?: string }).code };
  };

  await t.test("who reaches the host directly gets nothing: no ticket, a used one, one of another call", async () => {
    const [first] = served.sent;
    assert.ok(first);
    assert.deepEqual(await callHost({}, first.body), { status: 401, code: "TicketMissing" });
    assert.deepEqual(await callHost({ "ambit-ticket": first.ticket }, first.body), { status: 401, code: "TicketUsed" });
    const other = Buffer.from('{"text":"something else"}');
    assert.equal((await callHost({ "ambit-ticket": first.ticket }, other)).status, 401);
  });

  await t.test("a host that dies while it runs a tool that may change things leaves it in doubt; afterwards nothing runs", async () => {
    const spinning = served.call("spin", {});
    // Answered after the other call was sent, whose guest still spins.
    assert.equal((await served.call("echo", { text: "first" })).outcome, "ok");
    process.kill(served.host.pid, "SIGKILL");
    assert.equal((await spinning).outcome, "in-doubt");
    assert.equal(served.journal.at(-1)?.code, "HostLost");
    await served.host.ended;
    assert.equal((await served.call("echo", { text: "anybody?" })).outcome, "failed");
    assert.equal(served.journal.at(-1)?.code, "HostUnreachable");
  });
});
