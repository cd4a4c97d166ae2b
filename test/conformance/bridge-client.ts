import type { JsonObject, JsonValue } from "../../src/api/json.ts";
import { type Bridged, bridgeTo, type Told } from "../integration/bridge-under-test.ts";

/**
 * The bridge as a client for MCP's conformance suite, which runs this with the address of its server as the last argument. It calls what the suite's context asks for, or
 * every tool with arguments after its schema. `BRIDGE_CACHE` is where hosts keep what they compiled.
 */

interface Context {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments?: object }[];
}

/** The suite has a list refused once: the host asks again by itself. */
const listed = async (bridged: Bridged): Promise<NonNullable<Told["listing"]>> => {
  const { listing } = await bridged.ask();
  return listing ?? (await bridged.ask(null, 20_000)).listing ?? Promise.reject(new Error("the server gave no list"));
};

/** One argument, `schema`, is to be a schema as it was listed. */
const examples = (listedSchema: JsonObject | undefined): Readonly<Record<string, JsonValue>> => ({
  string: "text",
  integer: 7,
  number: 7,
  boolean: true,
  object: listedSchema ?? {},
  array: [],
});

const { port, pathname } = new URL(process.argv.at(-1) ?? "");
const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") as Context;
const cacheFolder = process.env.BRIDGE_CACHE;

const bridged = await bridgeTo(`127.0.0.1:${port}`, { path: pathname, ...(cacheFolder && { config: { cacheFolder } }) });
const { tools } = await listed(bridged);
const argumentsFor = ({ name, inputSchema }: (typeof tools)[number]): object => {
  const other = tools.find((one) => one.name !== name)?.inputSchema;
  const { properties = {} } = inputSchema as { properties?: Readonly<Record<string, { readonly type?: string }>> };
  return Object.fromEntries(Object.entries(properties).map(([key, { type }]) => [key, examples(other)[type ?? "string"]]));
};
for (const tool of tools) {
  const asked = toolCalls?.filter(({ name }) => name === tool.name) ?? [{ arguments: argumentsFor(tool) }];
  for (const call of asked) await bridged.call(tool.name, call.arguments);
}
await bridged.stop();
