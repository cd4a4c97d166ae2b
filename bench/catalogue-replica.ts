import { generateKeyPairSync, randomBytes } from "node:crypto";
import { sha256Of } from "../src/api/digest.ts";
import type { WitFunction } from "../src/api/wit.ts";
import { serviceAccountCaller } from "../src/catalogue/caller.ts";
import { createCatalogue } from "../src/catalogue/catalogue.ts";
import type { GrantObject } from "../src/catalogue/cluster-objects.ts";
import { ClusterFeed, podIndexes } from "../src/catalogue/cluster-state.ts";
import { CatalogueState } from "../src/catalogue/state.ts";
import { declarationOf } from "../src/declaration/declaration.ts";
import { definitionText, digestOfDefinitionText } from "../src/grants/definition.ts";
import { grantDigest } from "../src/grants/grant-digest.ts";
import { Store } from "../src/kube/store.ts";

/**
 * One replica of a catalogue that holds 10,000 ToolGrants in the stores that informers fill, as a process of its own: bench/catalogue.ts starts it, sends what
 * a watch would tell, and asks for its memory.
 */
export const grantCount = 10_000;
/** Each has a hundred tools, and each tool ten callers. */
export const callerCount = 1_000;
const teamCount = 100;
/** Who has a thousand tools, and who has all. */
export const [broadAgent, everyAgent] = ["broad", "every"];

export type Order = { readonly kind: "change"; readonly grant: number; readonly revision: number } | { readonly kind: "memory" };
export type Report = { readonly kind: "listening"; readonly port: number } | { readonly kind: "memory"; readonly megabytes: number };

const subjectsOf = (index: number): string[] => [
  ...Array.from({ length: callerCount / teamCount }, (_, turn) => `agent-${(index % teamCount) + turn * teamCount}`),
  ...(index < 1_000 ? [broadAgent] : []),
  everyAgent,
];

const verbs = ["list", "get", "create", "update", "delete", "search", "export", "archive", "assign", "close"];
const things = ["issue", "invoice", "calendar event", "message", "customer", "build", "deployment", "document", "alert", "order"];
const component = sha256Of("bench");

/** A live ToolGrant as the operator leaves it; another `revision` has another description. */
export const grantNumber = (index: number, revision = 0): GrantObject => {
  const [verb = "", thing = ""] = [verbs[Math.floor(index / 100) % 10], things[Math.floor(index / 1_000) % 10]];
  const fn: WitFunction = {
    interface: `bench:system-${index % 100}/tools@0.1.0`,
    name: `${verb}-${thing.replace(" ", "-")}-${index}`,
    form: "function",
    async: false,
    docs: `Does the ${verb} of one ${thing} in the records of system ${index % 100}, and gives back what it found there.`,
    params: [
      { name: "repo", type: { kind: "string" } },
      { name: "number", type: { kind: "u32" } },
      { name: "labels", type: { kind: "option", some: { kind: "list", element: { kind: "string" } } } },
    ],
    result: { kind: "string" },
  };
  const declaration = declarationOf(fn, `${fn.name.replaceAll("-", "_")}`);
  const spec: GrantObject["spec"] = {
    tool: { workload: "bench", component: "tool", interface: fn.interface ?? "", function: fn.name },
    declaration: { ...declaration, description: `${declaration.description} (${revision})` },
    subjects: subjectsOf(index).map((name) => ({ kind: "ServiceAccount", namespace: "agents", name })),
    mutates: false,
    egressCeiling: "Internal",
  };
  const text = definitionText(fn);
  const definition = digestOfDefinitionText(text);
  const reach = { hosts: [], volumes: [], secrets: [], imports: [] };
  return {
    apiVersion: "ambit.dev/v1alpha1",
    kind: "ToolGrant",
    metadata: {
      namespace: "agents",
      name: `tool-${index}`,
      uid: `uid-${index}`,
      resourceVersion: String(revision + 1),
      generation: revision + 1,
    },
    spec: { ...spec, review: { definition, grant: grantDigest(spec), reach, component: [component] } },
    status: { phase: "Active", observedGeneration: revision + 1, observed: { digest: definition, text }, components: [component] },
  };
};

const serve = async (): Promise<void> => {
  const state = new CatalogueState();
  const grants = new Store<GrantObject>();
  const feed = new ClusterFeed(state, { grants, pods: new Store(podIndexes), namespaces: new Store() }, Date.now);
  for (let index = 0; index < grantCount; index++) grants.apply(grantNumber(index));
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
  const tell = (report: Report): void => void process.send?.(report);
  process.on("message", (order: Order) => {
    if (order.kind === "change") grants.apply(grantNumber(order.grant, order.revision));
    else tell({ kind: "memory", megabytes: process.memoryUsage().rss / 1024 / 1024 });
  });
  process.once("disconnect", () => {
    feed.close();
    process.exit(0);
  });
  tell({ kind: "listening", port: (await catalogue.listen("127.0.0.1", 0)).port });
};

if (import.meta.main) await serve();
