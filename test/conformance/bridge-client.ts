import type { JsonObject, JsonValue } from "../../src/api/json.ts";
import { type Bridged, bridgeTo, type Told } from "../integration/bridge-under-test.ts";

/** What a scenario of MCP's conformance suite asks of a client. */
export interface ClientContext {
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

/**
 * The bridge as a client of the server at `url`: it calls what the scenario asks for, or every tool with arguments after its schema.
 */
export const callByBridge = async (url: string, { toolCalls }: ClientContext): Promise<void> => {
  const { port, pathname } = new URL(url);
  const bridged = await bridgeTo(`127.0.0.1:${port}`, { path: pathname });
  try {
    const { tools } = await listed(bridged);
    for (const tool of tools) {
      const other = tools.find(({ name }) => name !== tool.name)?.inputSchema;
      const asked = toolCalls?.filter(({ name }) => name === tool.name) ?? [{ arguments: argumentsFor(tool.inputSchema, other) }];
      for (const call of asked) await bridged.call(tool.name, call.arguments);
    }
  } finally {
    await bridged.stop();
  }
};

const argumentsFor = (schema: JsonObject, other: JsonObject | undefined): object => {
  const { properties = {} } = schema as { properties?: Readonly<Record<string, { readonly type?: string }>> };
  return Object.fromEntries(Object.entries(properties).map(([key, { type }]) => [key, examples(other)[type ?? "string"]]));
};
