import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { sha256Of } from "../../src/api/digest.ts";
import { defaultHostLimits, type HostConfig, type SignedDocument } from "../../src/api/host.ts";
import type { TicketClaims } from "../../src/api/ticket.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../../src/host/node-arguments.ts";
import { freshNonce, signTicket } from "../../src/tickets/ticket.ts";

/** A real host process, and everything that a catalogue and an operator know of it. */
export interface HostUnderTest {
  readonly config: HostConfig;
  readonly boot: string;
  /** Where a component that serves HTTP takes requests. */
  readonly serving: string | null;
  readonly child: ChildProcess;
  /** Lines it printed after the first. */
  readonly lines: string[];
  request(method: string, path: string, body?: string | Uint8Array, headers?: Record<string, string>): Promise<HostAnswer>;
  signedByRoot(payload: object, key?: KeyObject): string;
  keySet(change?: object): object;
  ticketFor(body: string, fn: { interface: string | null; function: string }, change?: Partial<TicketClaims>): string;
  call(fn: { interface: string | null; function: string }, args: object | string): Promise<HostAnswer>;
  residentBytes(): number;
  stop(): Promise<number | null>;
}

export interface HostAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it isn't there
  readonly body: any;
}

export interface HostSetup {
  readonly component: Uint8Array;
  readonly limits?: Partial<HostConfig["limits"]>;
  readonly config?: Partial<HostConfig>;
  /** What is delivered before the host is given to the test; all of it by default. */
  readonly deliver?: "all" | "nothing";
  /** Flags of Node besides the host's own. */
  readonly flags?: readonly string[];
  /** Variables of the host's process besides its own. */
  readonly environment?: Readonly<Record<string, string>>;
}

export const fixture = (path: string): Uint8Array => readFileSync(new URL(`../fixtures/components/${path}`, import.meta.url));

/** A folder that is removed when the test file's process ends. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-host-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Hosts of one test file share it, as starting cold takes seconds; a test of the cache itself brings its own. */
const sharedCache = temporaryFolder();

const spkiBase64 = (key: KeyObject): string => key.export({ type: "spki", format: "der" }).toString("base64");

export const startHost = async (setup: HostSetup): Promise<HostUnderTest> => {
  const root = generateKeyPairSync("ed25519");
  const signer = generateKeyPairSync("ed25519");
  const config: HostConfig = {
    component: sha256Of(setup.component),
    rootKey: spkiBase64(root.publicKey),
    podUid: "pod-under-test",
    listen: { address: "127.0.0.1", port: 0 },
    transport: "http",
    allowedHosts: [],
    resolver: "system",
    hostOverrides: {},
    environment: {},
    mounts: [],
    limits: { ...defaultHostLimits, timeoutMs: 10_000, ...setup.limits },
    callsPerInstance: 1,
    cacheFolder: sharedCache,
    ...setup.config,
  };
  const child = spawn(process.execPath, [...hostArguments(config), ...(setup.flags ?? []), hostEntry, "-"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...hostEnvironment(config), ...setup.environment },
  });
  child.stdin?.on("error", () => undefined);
  child.stdin?.write(`${JSON.stringify(config)}\n`);
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout ?? process.stdin });
  // A host that ends before it listens prints nothing, and would be waited for for ever.
  const [first] = await Promise.race([
    once(reader, "line") as Promise<[string]>,
    once(child, "exit").then(([code]) => Promise.reject(new Error(`the host ended with code ${code} before it listened`))),
  ]);
  reader.on("line", (line) => lines.push(line));
  const { listening, serving } = JSON.parse(first) as { listening: { port: number }; serving?: { port: number } };
  const url = `http://127.0.0.1:${listening.port}`;

  const request: HostUnderTest["request"] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body: Buffer.from(body) }) });
    return { status: response.status, body: await response.json() };
  };
  const { boot } = (await request("GET", "/v1/boot")).body as { boot: string };
  const signedByRoot = (payload: object, key: KeyObject = root.privateKey): string => {
    const text = JSON.stringify(payload);
    const document: SignedDocument = { payload: text, signature: sign(null, Buffer.from(text), key).toString("base64") };
    return JSON.stringify(document);
  };
  const keySet = (change: object = {}): object => ({
    kind: "keys",
    boot,
    time: Date.now(),
    keys: [{ kid: "k1", publicKey: spkiBase64(signer.publicKey), notAfter: Date.now() + 3_600_000 }],
    ...change,
  });
  const ticketFor: HostUnderTest["ticketFor"] = (body, fn, change = {}) =>
    signTicket(signer.privateKey, {
      v: 1,
      kid: "k1",
      body: sha256Of(body),
      ...fn,
      definition: `v1:${sha256Of("definition")}`,
      component: config.component,
      grant: sha256Of("grant"),
      pod: config.podUid,
      boot,
      iat: Date.now(),
      exp: Date.now() + 30_000,
      nonce: freshNonce(),
      ...change,
    });
  const call: HostUnderTest["call"] = (fn, args) => {
    const body = typeof args === "string" ? args : JSON.stringify(args);
    return request("POST", "/v1/call", body, { "ambit-ticket": ticketFor(body, fn) });
  };
  if (setup.deliver !== "nothing") {
    for (const [path, body] of [
      ["/v1/keys", signedByRoot(keySet())],
      ["/v1/component", setup.component],
    ] as const) {
      const answer = await request("PUT", path, body);
      if (answer.status !== 200) {
        child.kill("SIGKILL");
        throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
      }
    }
  }
  return {
    config,
    boot,
    serving: serving ? `http://127.0.0.1:${serving.port}` : null,
    child,
    lines,
    request,
    signedByRoot,
    keySet,
    ticketFor,
    call,
    residentBytes: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) * 1024,
    stop: async () => {
      if (child.exitCode !== null) return child.exitCode;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      const [code] = (await exited) as [number | null];
      return code;
    },
  };
};
