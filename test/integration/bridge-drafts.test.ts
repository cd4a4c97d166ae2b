import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { reply, type ScriptedServer, startScripted, stateless } from "../fixtures/mcp-servers/scripted.ts";
import { ambit, type RunningUp } from "../support/ambit-command.ts";
import { prepareWorkload, type ServedFolder, token } from "../support/served-folder.ts";

/** What nobody but a reviewer may be shown before it was approved, wherever a server can put it. */
const poison = "ZZPOISON";
const poisonedName = "zzinnocent";

const tool = (name: string, more: object = {}) => ({ name, description: "Does it.", inputSchema: { type: "object" }, ...more });
const withArgument = (schema: object) => ({ inputSchema: { type: "object", properties: { a: schema } } });

const poisoned = tool(poisonedName, {
  title: `${poison} title`,
  description: `${poison} description`,
  inputSchema: {
    type: "object",
    description: poison,
    properties: { [`${poison}_key`]: { type: "string", description: poison, enum: [poison], default: poison } },
    required: [`${poison}_key`],
  },
  outputSchema: { type: "object", properties: { [poison]: { type: "string", description: poison } } },
  annotations: { title: poison, readOnlyHint: true },
});

const routed = tool("routed", {
  inputSchema: {
    type: "object",
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      count: { type: "integer", "x-mcp-header": "Count" },
      dry: { type: "boolean", "x-mcp-header": "Dry-Run" },
      deep: { type: "object", properties: { place: { type: "string", "x-mcp-header": "Deep-Place" } } },
    },
  },
});

/** Names, and what is said of those that can't simply be approved: in a draft's file, or of a tool that is left out. */
const asked: Record<string, RegExp> = {
  "with.dots": /the name "with\.dots" is not letters, digits, "_" and "-"/,
  // The last letters are Cyrillic, and so are those of the next.
  "l\u043e\u043ek_up": /is not letters, digits/,
  [`n${"a".repeat(99)}`]: /has 100 characters, more than the 64 that every provider takes/,
  remote: /its schema can't judge arguments \(\/properties\/a\/\$ref: .*nothing is fetched/,
  behind: /its schema can't judge arguments \(.*can't be matched in linear time/,
  circular: /its schema can't judge arguments \(.*refers to itself/,
  silent: /the component documents nothing here/,
};

const leftOut: Record<string, RegExp> = {
  ["m".repeat(128)]: /its name is not 1 to 128 characters/,
  twice: /another tool has the same name/,
  wrong_header: /its input schema asks wrongly for a header: only a string, an integer or a boolean/,
  list_schema: /its input schema is not of the type "object"/,
};

const odd = [
  ...["with.dots", "l\u043e\u043ek_up", `n${"a".repeat(99)}`].map((name) => tool(name)),
  tool("constructor"),
  tool("remote", withArgument({ $ref: "http://localhost/schema.json" })),
  tool("behind", withArgument({ type: "string", pattern: "(?<=a)b" })),
  tool("slow_pattern", withArgument({ type: "string", pattern: "^(a+)+$" })),
  tool("circular", withArgument({ $ref: "#/properties/a" })),
  { name: "silent", inputSchema: { type: "object" } },
  tool("m".repeat(300)),
  tool("twice"),
  tool("twice"),
  tool("wrong_header", withArgument({ type: "number", "x-mcp-header": "A" })),
  tool("list_schema", { inputSchema: { type: "array" } }),
];

/** Arguments, and the headers that they come in as well (MCP 2026-07-28, "Value Encoding"). */
const headersOf: readonly (readonly [args: object, headers: Record<string, string>])[] = [
  [{ region: "us-west1" }, { region: "us-west1" }],
  [{}, {}],
  [{ region: "Hello, 世界" }, { region: "=?base64?SGVsbG8sIOS4lueVjA==?=" }],
  [{ region: " padded " }, { region: "=?base64?IHBhZGRlZCA=?=" }],
  [{ region: "line1\nline2" }, { region: "=?base64?bGluZTEKbGluZTI=?=" }],
  [{ region: "a\r\nmcp-param-count: 7" }, { region: "=?base64?YQ0KbWNwLXBhcmFtLWNvdW50OiA3?=" }],
  [{ region: "=?base64?literal?=" }, { region: "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=" }],
  [{ region: "=?base64?literal" }, { region: "=?base64?literal" }],
  [{ region: "in\tside" }, { region: "in\tside" }],
  [{ region: "\u007f" }, { region: "=?base64?fw==?=" }],
  [{ region: "" }, { region: "=?base64??=" }],
  [{ count: 42 }, { count: "42" }],
  [{ count: -7 }, { count: "-7" }],
  [{ count: 0 }, { count: "0" }],
  [{ count: Number.MAX_SAFE_INTEGER }, { count: "9007199254740991" }],
  [{ count: Number.MIN_SAFE_INTEGER }, { count: "-9007199254740991" }],
  [
    { dry: true, region: "a" },
    { "dry-run": "true", region: "a" },
  ],
  [{ dry: false }, { "dry-run": "false" }],
  [{ deep: { place: "within" } }, { "deep-place": "within" }],
  [{ deep: {} }, {}],
];

const approved = ["routed", "slow_pattern", "constructor"];
const answers = stateless([poisoned, routed, ...odd]);

describe("what a server behind a bridge says, before anybody approved it", () => {
  let server: ScriptedServer;
  let folder: ServedFolder;
  let up: RunningUp;
  before(async () => {
    server = await startScripted(answers);
    const spec = { mcpServers: [{ name: "far", remote: { url: "http://localhost/mcp" } }] };
    folder = await prepareWorkload(spec, {}, ["--resolve", `localhost:80=${server.target}`], (name) => approved.includes(name));
    up = await folder.start();
  });
  after(async () => {
    await up?.stop();
    await folder?.remove();
    await server?.stop();
  });

  const ask = (path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> => {
    const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
    return fetch(`${up.url}${path}`, body === undefined ? { headers: all } : { method: "POST", headers: all, body: JSON.stringify(body) });
  };
  const call = async (name: string, args: object) => (await ask("/v1/calls", { name, arguments: args })).json();

  const drafts = async (): Promise<{ text: string; grant: ToolGrant }[]> => {
    const grants = join(folder.manifests, "grants");
    const texts = await Promise.all((await readdir(grants)).map((file) => readFile(join(grants, file), "utf8")));
    return texts.map((text) => ({ text, grant: parse(text) as ToolGrant }));
  };
  const draftOf = async (name: string) => (await drafts()).find(({ grant }) => grant.spec.tool.tool === name);

  for (const [name, ask] of Object.entries(asked)) {
    it(`is drafted with what a person has to do first: ${name.slice(0, 20)}`, async () => {
      const { text = "" } = (await draftOf(name)) ?? {};
      assert.match(text, /^# Before approval: /);
      assert.match(text, ask);
    });
  }

  it("is not approved while something has to be done first", async () => {
    const { grant } = (await draftOf("remote")) ?? {};
    const file = join(folder.manifests, "grants", `${grant?.metadata.name}.yaml`);
    const options = ["--yes", "--read-only", "--cache", join(folder.manifests, "../cache"), "--resolve", `localhost:80=${server.target}`];
    const { code, err } = await ambit(["approve", ...options, file]);
    assert.notEqual(code, 0);
    assert.match(err, /nothing is fetched/);
    assert.ok(!server.heard.some(({ verb, method }) => verb === "GET" && method === null), "nothing was fetched");
  });

  it("is told with its reason where it is left out, and is a draft where it was not approved", async () => {
    const settled = up.events.findLast(({ event }) => event === "settled");
    assert.ok(settled);
    const [component] = settled.components as { notOffered: { function: string; reason: string }[] }[];
    for (const [name, reason] of Object.entries(leftOut)) {
      assert.match(component?.notOffered.find((one) => one.function === name)?.reason ?? "", reason, name.slice(0, 20));
      assert.equal(await draftOf(name), undefined);
    }
    const grants = settled.grants as { name: string; phase: string; reasons: { code: string; message: string }[] }[];
    const { phase, reasons } = grants.find(({ name }) => name === poisonedName) ?? {};
    assert.equal(phase, "Draft");
    assert.ok(!JSON.stringify(reasons).includes(poison), JSON.stringify(reasons));
    assert.deepEqual(
      grants.filter((grant) => grant.phase === "Active").map(({ name }) => name),
      [...approved].sort(),
    );
  });

  it("is shown to the reviewer whole", async () => {
    const { text = "" } = (await draftOf(poisonedName)) ?? {};
    assert.ok(text.includes(`${poison} description`) && text.includes(`${poison}_key`));
  });

  const formats = ["neutral", "anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mcp"];
  const rpc = (method: string, params: object = {}) => {
    const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
    const headers = {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...("name" in params ? { "mcp-name": String(params.name) } : {}),
    };
    return ask("/mcp", { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }, headers);
  };
  const ways: Record<string, () => Promise<Response>> = {
    ...Object.fromEntries(formats.map((format) => [`declarations for ${format}`, () => ask(`/v1/declarations?format=${format}`)])),
    "declarations with most of them to be searched for": () => ask("/v1/declarations?format=anthropic&defer=1"),
    "one declaration by its name": () => ask(`/v1/declarations/${poisonedName}`),
    "a search for its words": () => ask(`/v1/search?q=${poison}`),
    "a search for its name": () => ask(`/v1/search?q=${poisonedName}&format=openai-chat`),
    "a model's own search": () => ask("/v1/calls", { name: "search_tools", arguments: { query: `${poison} ${poisonedName}`, limit: 20 } }),
    "a call": () => ask("/v1/calls", { name: poisonedName, arguments: {} }),
    "a provider's call": () => ask("/v1/calls?format=anthropic", { type: "tool_use", id: "toolu_1", name: poisonedName, input: { a: 1 } }),
    "a call that does not fit": () => ask("/v1/calls", { name: "routed", arguments: { region: 7, [poisonedName]: 1 } }),
    "the list over MCP": () => rpc("tools/list"),
    "the server's word over MCP": () => rpc("server/discover"),
    "a call over MCP": () => rpc("tools/call", { name: poisonedName, arguments: {} }),
    "the API's document": () => ask("/v1/openapi.json"),
  };
  for (const [what, way] of Object.entries(ways)) {
    it(`is not in ${what}`, async () => {
      const response = await way();
      const text = await response.text();
      assert.ok(response.status < 500 && text.length > 1, `${response.status}: ${text}`);
      assert.ok(!text.includes(poison), text);
    });
  }

  it("is not in what commands print that speak to the catalogue", async () => {
    const to = ["--url", up.url, "--token", token];
    for (const args of [
      ["call", poisonedName, "{}", ...to],
      ["call", poisonedName, "{}", "--json", ...to],
      ["declarations", ...to],
      ["declarations", "--search", poison, ...to],
    ]) {
      const { out, err } = await ambit(args);
      assert.ok(!/unknown option|could not/i.test(err), err);
      assert.ok(!`${out}${err}`.includes(poison), `${out}${err}`);
    }
  });

  it("does not tell callers which arguments the server wants in headers", async () => {
    for (const format of formats) {
      const text = await (await ask(`/v1/declarations?format=${format}`)).text();
      assert.match(text, /"routed"/);
      assert.ok(!text.includes("x-mcp-header"), text);
    }
    assert.ok(!JSON.stringify((await draftOf("routed"))?.grant.spec).includes("x-mcp-header"));
  });

  for (const [args, headers] of headersOf) {
    it(`has the server sent ${JSON.stringify(args)} in headers too`, async () => {
      server.answer(() => false, answers);
      const { outcome } = (await call("routed", args)) as { outcome: string };
      assert.equal(outcome, "ok");
      const heard = server.heard.findLast(({ method }) => method === "tools/call");
      const given = Object.entries(heard?.headers ?? {}).filter(([name]) => name.startsWith("mcp-param-"));
      assert.deepEqual(Object.fromEntries(given.map(([name, value]) => [name.slice("mcp-param-".length), value])), headers);
      assert.deepEqual(heard?.params.arguments, args);
    });
  }

  it("is not sent an integer that a header can't carry exactly everywhere", async () => {
    server.answer(() => false, answers);
    const { outcome, content } = (await call("routed", { count: 2 ** 53 })) as { outcome: string; content: object };
    assert.equal(outcome, "failed");
    assert.match(JSON.stringify(content), /beyond what is exact everywhere/);
    assert.ok(!server.heard.some(({ method }) => method === "tools/call"));
  });

  it("reaches nobody by an error that the server gives in place of its list", async () => {
    server.answer(
      (heard, response) => heard.method === "tools/list" && reply(response, heard, { error: { code: 1, message: poison } }),
      answers,
    );
    const ready = up.events.findLast(({ event }) => event === "host-ready");
    process.kill(Number(ready?.pid), "SIGKILL");
    await up.waitFor(({ event }) => event === "host-ready");
    const { content, isError } = (await call("routed", { region: "eu" })) as { content: object; isError: boolean };
    assert.equal(isError, true);
    assert.deepEqual(content, [{ type: "text", text: "The tool cannot be reached at the moment; the call was not run." }]);
    server.answer(() => false, answers);
  });
});
