import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { Declaration } from "../../../src/api/declaration.ts";
import { declarationOf } from "../../../src/declaration/declaration.ts";
import type { ProviderFormat } from "../../../src/declaration/formats.ts";
import { renderDeclarations } from "../../../src/declaration/render.ts";
import { answerFor, type CallAnswer } from "../../../src/translate/provider-calls.ts";
import { func, list, listIssues, option, prim, record, tuple, variant } from "./wit-types.ts";

/** The providers' own clients, speaking to a server of the test's own that keeps what it is sent and refuses it. */
const declarations: readonly Declaration[] = [
  { ...declarationOf(listIssues), cache: "1h" },
  declarationOf(func("now", {}, prim("string"), { docs: "The time." })),
  declarationOf(
    func("draw", {
      shape: variant({ none: null, circle: prim("f32") }),
      corners: list(tuple(prim("s32"), prim("string"))),
      label: option(record({ text: prim("string"), size: option(list(option(prim("u64")))) })),
    }),
  ),
];
const answers: readonly CallAnswer[] = [
  { id: "call_1", name: "now", text: "noon", structured: { result: "noon" }, isError: false },
  { id: "call_2", name: "draw", text: "no pen", isError: true },
];

const sentBy = async (ask: (url: string) => Promise<unknown>): Promise<Record<string, unknown>> => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (part: string) => {
      text += part;
    });
    request.on("end", () => {
      bodies.push(text);
      response.writeHead(400, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await assert.rejects(ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  } finally {
    server.close();
    server.closeAllConnections();
  }
  assert.equal(bodies.length, 1, "the client refused to send it");
  return JSON.parse(bodies[0] ?? "");
};

/** As an agent has it: parsed, and handed to the client as it is. */
const tools = <T>(format: ProviderFormat): T[] => JSON.parse(renderDeclarations(format, declarations).body);
const answer = <T>(format: "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "bedrock"): T =>
  JSON.parse(JSON.stringify(answerFor(format, answers)));

describe("a provider's own client sends declarations and answers as they are:", () => {
  it("Anthropic's", async () => {
    const message = answer<Anthropic.MessageParam>("anthropic");
    const sent = await sentBy((baseURL) =>
      new Anthropic({ baseURL, apiKey: "x", maxRetries: 0 }).messages.create({
        model: "m",
        max_tokens: 1,
        messages: [message],
        tools: tools<Anthropic.Tool>("anthropic"),
      }),
    );
    assert.deepEqual([sent.tools, sent.messages], [tools("anthropic"), [message]]);
  });

  it("OpenAI's, to Chat Completions", async () => {
    const messages = answer<OpenAI.ChatCompletionToolMessageParam[]>("openai-chat");
    const sent = await sentBy((baseURL) =>
      new OpenAI({ baseURL, apiKey: "x", maxRetries: 0 }).chat.completions.create({
        model: "m",
        messages,
        tools: tools<OpenAI.ChatCompletionTool>("openai-chat"),
      }),
    );
    assert.deepEqual([sent.tools, sent.messages], [tools("openai-chat"), messages]);
  });

  it("OpenAI's, to Responses", async () => {
    const input = answer<OpenAI.Responses.ResponseInputItem[]>("openai-responses");
    const sent = await sentBy((baseURL) =>
      new OpenAI({ baseURL, apiKey: "x", maxRetries: 0 }).responses.create({
        model: "m",
        input,
        tools: tools<OpenAI.Responses.Tool>("openai-responses"),
      }),
    );
    assert.deepEqual([sent.tools, sent.input], [tools("openai-responses"), input]);
  });

  it("Google's", async () => {
    const content = answer<object>("gemini");
    const sent = await sentBy((baseUrl) =>
      new GoogleGenAI({ apiKey: "x", httpOptions: { baseUrl } }).models.generateContent({
        model: "m",
        contents: [content],
        config: { tools: tools<object>("gemini") },
      }),
    );
    assert.deepEqual([sent.tools, sent.contents], [tools("gemini"), [content]]);
  });

  it("Amazon's", async () => {
    const message = answer<never>("bedrock");
    const sent = await sentBy((url) =>
      new BedrockRuntimeClient({
        region: "x",
        maxAttempts: 1,
        credentials: { accessKeyId: "x", secretAccessKey: "x" },
        // Its own speaks HTTP/2 alone.
        requestHandler: {
          handle: async ({ body }: { readonly body: Uint8Array<ArrayBuffer> }) => {
            await fetch(url, { method: "POST", body });
            throw new Error("refused");
          },
        },
      }).send(new ConverseCommand({ modelId: "m", messages: [message], toolConfig: { tools: tools<never>("bedrock") } })),
    );
    assert.deepEqual([sent.toolConfig, sent.messages], [{ tools: tools("bedrock") }, [message]]);
  });
});
