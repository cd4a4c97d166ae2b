import { randomBytes } from "node:crypto";
import { type IncomingHttpHeaders, request } from "node:http";
import type { Caller } from "../../../src/catalogue/caller.ts";
import { type Catalogue, type CatalogueConfig, type CatalogueDeps, createCatalogue } from "../../../src/catalogue/catalogue.ts";
import type { JournalEntry } from "../../../src/catalogue/journal.ts";
import { CatalogueState } from "../../../src/catalogue/state.ts";
import { endpoint, githubComponent, liveGrant, okReply, scriptedHost, signingKeys, triage } from "./world.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly token?: string | null;
}

/** A catalogue that listens on loopback, with one live tool, one ready host that always answers well, and the token `secret` for `triage`. */
export const serving = async (change: Partial<CatalogueDeps> = {}, config: Partial<CatalogueConfig> = {}) => {
  const state = new CatalogueState();
  state.apply([
    { kind: "grant", grant: liveGrant() },
    { kind: "endpoints", of: githubComponent, endpoints: [endpoint()] },
  ]);
  const host = scriptedHost({ kind: "replied", reply: okReply('["an issue"]') });
  const journal: JournalEntry[] = [];
  const faults: unknown[] = [];
  const keys = signingKeys();
  const callers = new Map<string, Caller>([["secret", triage]]);
  const catalogue = createCatalogue(
    {
      state,
      authenticate: async (token) => callers.get(token ?? "") ?? null,
      signer: () => keys,
      dispatch: host.dispatch,
      journal: (entry) => journal.push(entry),
      now: () => 1_800_000_000_000,
      monotonic: () => 0,
      random: (bytes) => randomBytes(bytes),
      isReady: () => true,
      report: (fault) => faults.push(fault),
      ...change,
    },
    { hosts: ["localhost"], ...config },
  );
  const { port } = await catalogue.listen("127.0.0.1", 0);
  const ask = (path: string, { method = "GET", headers = {}, body, token = "secret" }: Ask = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = request({
        host: "127.0.0.1",
        port,
        path,
        method,
        headers: { ...(token !== null && { authorization: `Bearer ${token}` }), ...headers },
      });
      sent.on("error", reject);
      sent.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const whole = Buffer.concat(chunks);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole, text: whole.toString("utf8") });
        });
      });
      sent.end(body);
    });
  const post = (path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
    ask(path, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
  return { catalogue, state, sent: host.sent, journal, faults, callers, port, ask, post, [Symbol.asyncDispose]: () => stop(catalogue) };
};

const stop = async (catalogue: Catalogue): Promise<void> => {
  const closed = catalogue.close();
  catalogue.server.closeAllConnections();
  await closed;
};
