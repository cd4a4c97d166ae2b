import { generateKeyPairSync, randomBytes } from "node:crypto";
import { Client } from "undici";
import { sha256Of } from "../src/api/digest.ts";
import type { WitFunction } from "../src/api/wit.ts";
import { serviceAccountCaller } from "../src/catalogue/caller.ts";
import { createCatalogue } from "../src/catalogue/catalogue.ts";
import { CatalogueState, type LiveGrant } from "../src/catalogue/state.ts";
import { declarationOf } from "../src/declaration/declaration.ts";
import { definitionDigest } from "../src/grants/definition.ts";
import { type Figure, oneAtATime, percentile } from "./measure.ts";

const grantCount = 10_000;
const callerCount = 100;

/** What a caller with 100 of 10,000 grants waits for its list: rendered anew after a change, from memory, and not at all. */
export const catalogueFigures = async (): Promise<Figure[]> => {
  const state = new CatalogueState();
  const grants = Array.from({ length: grantCount }, (_, index) => grantNumber(index));
  state.apply(grants.map((grant) => ({ kind: "grant", grant })));
  const { privateKey } = generateKeyPairSync("ed25519");
  const catalogue = createCatalogue(
    {
      state,
      authenticate: async (token) => (token === null ? null : serviceAccountCaller("agents", token)),
      signer: () => ({ kid: "bench", key: privateKey }),
      dispatch: async () => ({ kind: "unreachable", message: "nothing is called here" }),
      journal: () => undefined,
      now: Date.now,
      monotonic: () => performance.now(),
      random: (bytes) => randomBytes(bytes),
      isReady: () => true,
      report: (fault) => {
        throw fault;
      },
    },
    { hosts: ["localhost"] },
  );
  const { port } = await catalogue.listen("127.0.0.1", 0);
  const client = new Client(`http://127.0.0.1:${port}`);
  const list = async (headers: Record<string, string> = {}) => {
    const response = await client.request({
      method: "GET",
      path: "/v1/declarations?format=anthropic",
      headers: { authorization: "Bearer agent-7", ...headers },
    });
    const body = await response.body.text();
    return { status: response.statusCode, etag: String(response.headers.etag), tools: body === "" ? [] : (JSON.parse(body) as unknown[]) };
  };
  const first = await list();
  if (first.tools.length !== grantCount / callerCount) throw new Error(`the caller is offered ${first.tools.length} tools`);
  const afterChange = await oneAtATime(200, 20, async (run) => {
    state.apply([{ kind: "grant", grant: { ...grantNumber(7), grant: sha256Of(`change ${run}`) } }]);
    await list();
  });
  const same = await oneAtATime(1000, 100, async () => void (await list()));
  const notModified = await oneAtATime(1000, 100, async () => {
    const { status } = await list({ "if-none-match": first.etag });
    if (status !== 304) throw new Error(`status ${status} instead of 304`);
  });
  const memory = process.memoryUsage().rss / 1024 / 1024;
  await client.close();
  await catalogue.close();
  return [
    {
      name: "`declarations`, 100 of 10,000 grants, after a change, p50",
      value: percentile(afterChange, 0.5),
      unit: "ms",
      aim: { atMost: 5 },
    },
    { name: "`declarations`, 100 of 10,000 grants, after a change, p99", value: percentile(afterChange, 0.99), unit: "ms", aim: null },
    { name: "`declarations`, nothing changed, p50", value: percentile(same, 0.5), unit: "ms", aim: { atMost: 5 } },
    { name: "`declarations`, 304, p50", value: percentile(notModified, 0.5), unit: "ms", aim: { atMost: 1 } },
    { name: "catalogue with 10,000 grants and this benchmark, resident", value: memory, unit: "MB", aim: null },
  ];
};

const grantNumber = (index: number): LiveGrant => {
  const fn: WitFunction = {
    interface: "bench:tools/tools@0.1.0",
    name: `tool-${index}`,
    form: "function",
    async: false,
    docs: `Tool number ${index}, which looks things up in the records of a repository and gives back what it found.`,
    params: [
      { name: "repo", type: { kind: "string" } },
      { name: "number", type: { kind: "u32" } },
      { name: "labels", type: { kind: "option", some: { kind: "list", element: { kind: "string" } } } },
    ],
    result: { kind: "string" },
  };
  const component = sha256Of("bench");
  return {
    namespace: "agents",
    name: `tool-${index}`,
    spec: {
      tool: { workload: "bench", component: "tool", interface: fn.interface ?? "", function: fn.name },
      declaration: declarationOf(fn, `tool_${index}`),
      subjects: [{ kind: "ServiceAccount", namespace: "agents", name: `agent-${index % callerCount}` }],
      mutates: false,
      egressCeiling: "Internal",
    },
    grant: sha256Of(`grant ${index}`),
    definition: definitionDigest(fn),
    components: [component],
    fn,
  };
};
