import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Stalled } from "../../src/api/errors.ts";
import { becomes } from "./becomes.ts";
import { apiServerArguments, certificateNames, etcdArguments } from "./control-plane.ts";
import { makeCredentials, writeKubeconfig } from "./credentials.ts";
import { freePorts } from "./free-ports.ts";
import { isReady, type Request, requestsOf } from "./request.ts";
import { apiTools, areBuilt, program } from "./tools.ts";

/** An API server with etcd behind it and nothing else: no controllers, no node. */
export interface ApiServer extends AsyncDisposable {
  /** Path of a kubeconfig whose user may do everything. */
  readonly kubeconfig: string;
  readonly request: Request;
}

/** One that belongs to the test that started it, which may break it. */
export interface OwnApiServer extends ApiServer {
  /** Path of the private key that it signs tokens of ServiceAccounts with: who has it makes tokens that are not as they should be. */
  readonly serviceAccountKey: string;
  /** Ends the API server, as a machine that goes down does with `SIGKILL`; etcd keeps what it has. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port and waits until it is ready. */
  start(): Promise<void>;
  /** Makes etcd forget all but the newest revision, so that a watch from an older one is answered with 410. */
  compact(): Promise<void>;
}

interface Binaries {
  readonly etcd: string;
  readonly apiServer: string;
}

/** `KUBEBUILDER_ASSETS` names a folder with both, as for the tests of many operators. */
const binaries = (): Binaries => {
  const assets = process.env.KUBEBUILDER_ASSETS;
  if (assets) return { etcd: join(assets, "etcd"), apiServer: join(assets, "kube-apiserver") };
  return { etcd: program("etcd", "etcd"), apiServer: program("kubernetes", "kube-apiserver") };
};

/** A kubeconfig of a cluster that the suites shall use as it is. */
const givenKubeconfig = (): string | undefined => process.env.AMBIT_TEST_KUBECONFIG || undefined;

/** The reason why no API server can be started here, or null. */
export const whyNoOwnApiServer = (): string | null => {
  const { etcd, apiServer } = binaries();
  const assets = process.env.KUBEBUILDER_ASSETS;
  const missing = [etcd, apiServer].filter((path) => !existsSync(path));
  if (assets && missing.length > 0) return `KUBEBUILDER_ASSETS lacks ${missing.join(" and ")}`;
  if (!assets && !areBuilt(apiTools))
    return "etcd and kube-apiserver are not built: `npm run cluster -- build api` (needs Go), or set KUBEBUILDER_ASSETS";
  if (spawnSync("openssl", ["version"]).status !== 0) return "no `openssl` on the PATH to make the API server's certificate with";
  return null;
};

/** The reason why there is no API server to test against, or null. */
export const whyNoApiServer = (): string | null => (givenKubeconfig() === undefined ? whyNoOwnApiServer() : null);

/** An API server to test against: the one of `AMBIT_TEST_KUBECONFIG`, or else one of its own. Takes some five seconds. */
export const startApiServer = async (): Promise<ApiServer> => {
  const kubeconfig = givenKubeconfig();
  if (kubeconfig === undefined) return startOwnApiServer();
  return { kubeconfig, request: requestsOf(kubeconfig), [Symbol.asyncDispose]: async () => {} };
};

/** No controller makes the accounts that admission would ask of every pod. */
const withoutControllers = ["--disable-admission-plugins=ServiceAccount"];

/** How long an API server may take until it is ready, on a machine that builds something else meanwhile. */
const readyWithinMs = 120_000;

/** Starts etcd and an API server on free ports of loopback, with their files in a temporary folder. Throws `Stalled`. */
export const startOwnApiServer = async (): Promise<OwnApiServer> => {
  const reason = whyNoOwnApiServer();
  if (reason !== null) throw new Stalled("NoApiServer", reason);
  const { etcd, apiServer } = binaries();
  const folder = await mkdtemp(join(tmpdir(), "ambit-api-"));
  const credentials = await makeCredentials(join(folder, "pki"), certificateNames);
  const [client = 0, peer = 0, port = 0] = await freePorts(3);
  const store = await startChild(folder, "etcd", [etcd, ...etcdArguments(join(folder, "etcd"), { client, peer })]);
  const kubeconfig = join(folder, "kubeconfig");
  await writeKubeconfig(kubeconfig, `https://127.0.0.1:${port}`, credentials);
  const request = requestsOf(kubeconfig);
  const listening = { credentials, folder, etcdPort: client, port, listen: "127.0.0.1", advertise: "127.0.0.1" };
  let server: Child | null = null;

  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
    await server?.end(signal);
    server = null;
  };
  const start = async (): Promise<void> => {
    if (server !== null) return;
    const started = await startChild(folder, "kube-apiserver", [apiServer, ...apiServerArguments(listening), ...withoutControllers]);
    server = started;
    const ready = await becomes(async () => started.hasEnded() || (await hasStarted(request)), readyWithinMs);
    if (ready && !started.hasEnded()) return;
    await stop("SIGKILL");
    throw new Stalled("ApiServerNotReady", `kube-apiserver is not ready:\n${await started.lastLines()}`);
  };
  const dispose = async (): Promise<void> => {
    await stop("SIGKILL");
    await store.end("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  };
  await start().catch(async (thrown: unknown) => {
    await dispose();
    throw thrown;
  });
  const { serviceAccountKey } = credentials;
  return { kubeconfig, serviceAccountKey, request, stop, start, compact: () => compactEtcd(client), [Symbol.asyncDispose]: dispose };
};

/** Ready, and with the namespace that most objects of tests go into. */
const hasStarted = async (request: Request): Promise<boolean> =>
  (await isReady(request)) && (await request("GET", "/api/v1/namespaces/default")).status === 200;

/** etcd speaks JSON as well; numbers are strings and keys base64 in it. */
const compactEtcd = async (port: number): Promise<void> => {
  const call = async (path: string, body: object): Promise<{ header?: { revision?: string } }> => {
    const response = await fetch(`http://127.0.0.1:${port}/v3/kv/${path}`, { method: "POST", body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`etcd's ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  };
  const { header } = await call("range", { key: Buffer.from("a").toString("base64") });
  await call("compaction", { revision: header?.revision, physical: true });
};

interface Child {
  hasEnded(): boolean;
  end(signal: NodeJS.Signals): Promise<void>;
  lastLines(): Promise<string>;
}

/** A child that ends with this process, however this one ends, where the machine can do that. */
const startChild = async (folder: string, name: string, argv: readonly string[]): Promise<Child> => {
  const path = join(folder, `${name}.log`);
  const log = await open(path, "a");
  const [file = "", ...args] = endsWithParent() ? ["setpriv", "--pdeathsig", "KILL", ...argv] : argv;
  const child: ChildProcess = spawn(file, args, { stdio: ["ignore", log.fd, log.fd] });
  const exited = once(child, "exit");
  // Who waits for it gets the failure; a process that is ended early must not be an unhandled one.
  exited.catch(() => {});
  await once(child, "spawn").finally(() => log.close());
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    hasEnded,
    end: async (signal) => {
      if (hasEnded()) return;
      child.kill(signal);
      await exited;
    },
    lastLines: async () => (await readFile(path, "utf8")).trimEnd().split("\n").slice(-8).join("\n"),
  };
};

const endsWithParent = (): boolean => spawnSync("setpriv", ["--pdeathsig", "KILL", "true"]).status === 0;
