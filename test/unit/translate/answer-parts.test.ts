import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import type { Message as BedrockMessage } from "@aws-sdk/client-bedrock-runtime";
import type { Content as GeminiContent } from "@google/genai";
import type OpenAI from "openai";
import type { ContentBlock } from "../../../src/api/content.ts";
import { compactJson } from "../../../src/api/json.ts";
import type { TurnFormat } from "../../../src/declaration/formats.ts";
import { answerFor, type CallAnswer } from "../../../src/translate/provider-calls.ts";

const base64 = (...bytes: (string | number[])[]): string =>
  Buffer.concat(bytes.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part)))).toString("base64");
const pngOf = (width: number, height: number, more = ""): string =>
  base64(
    "\x89PNG\r\n\x1a\n",
    [0, 0, 0, 13],
    "IHDR",
    [width, height].flatMap((n) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255]),
    more,
  );
const png = pngOf(4, 3);
const jpeg = base64("\xff\xd8\xff\xe0", [0, 4, 1, 1], "\xff\xc0", [0, 11, 8, 0, 3, 0, 4, 1, 1]);
const gif = base64("GIF89a", [1, 0, 1, 0]);
const pdf = base64("%PDF-1.7\n");

const image: ContentBlock = { type: "image", data: png, mimeType: "image/png" };
const audio: ContentBlock = { type: "audio", data: base64("RIFF....WAVE"), mimeType: "audio/wav" };
const link: ContentBlock = { type: "resource_link", uri: "file:///a.txt", name: "a", mimeType: "text/plain", description: "Notes." };
const file: ContentBlock = { type: "resource", resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "hello" } };
const report: ContentBlock = { type: "resource", resource: { uri: "file:///r.pdf", mimeType: "application/pdf", blob: pdf } };
const archive: ContentBlock = { type: "resource", resource: { uri: "file:///r.zip", mimeType: "application/zip", blob: base64("PK") } };

const call = (content: readonly ContentBlock[], more: Partial<CallAnswer> = {}): CallAnswer => ({
  id: "a",
  name: "t",
  text: "",
  content,
  isError: false,
  ...more,
});
const answer = <T>(format: TurnFormat, ...answers: CallAnswer[]): T => JSON.parse(compactJson(answerFor(format, answers)));

const everything = [{ type: "text", text: "Here." } as const, image, audio, link, file, report, archive];
const words = {
  audio: "[Left out: audio of type audio/wav, 12 bytes, which can't be shown]",
  link: '[Resource "a" (text/plain): file:///a.txt]\nNotes.',
  file: "[Resource file:///a.txt]\nhello",
  archive: "[Left out: resource file:///r.zip of type application/zip, 2 bytes, which can't be shown]",
};

describe("pictures, sound and files are said as each provider can:", () => {
  it("Anthropic's pictures and documents", () => {
    const message: Anthropic.MessageParam = {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [
            { type: "text", text: "Here." },
            { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
            { type: "text", text: words.audio },
            { type: "text", text: words.link },
            { type: "text", text: words.file },
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf } },
            { type: "text", text: words.archive },
          ],
        },
      ],
    };
    assert.deepEqual(answer("anthropic", call(everything)), message);
  });

  it("words alone in Chat Completions", () => {
    const messages: OpenAI.ChatCompletionToolMessageParam[] = [
      {
        role: "tool",
        tool_call_id: "a",
        content: [
          "Here.",
          "[Left out: image of type image/png, 24 bytes, which can't be shown]",
          words.audio,
          words.link,
          words.file,
          "[Left out: resource file:///r.pdf of type application/pdf, 9 bytes, which can't be shown]",
          words.archive,
        ].join("\n"),
      },
    ];
    assert.deepEqual(answer("openai-chat", call(everything)), messages);
  });

  it("Responses' inputs", () => {
    const items: OpenAI.Responses.ResponseInputItem.FunctionCallOutput[] = [
      {
        type: "function_call_output",
        call_id: "a",
        output: [
          { type: "input_text", text: "Here." },
          { type: "input_image", image_url: `data:image/png;base64,${png}` },
          { type: "input_text", text: words.audio },
          { type: "input_text", text: words.link },
          { type: "input_text", text: words.file },
          { type: "input_file", filename: "document.pdf", file_data: `data:application/pdf;base64,${pdf}` },
          { type: "input_text", text: words.archive },
        ],
      },
    ];
    assert.deepEqual(answer("openai-responses", call(everything)), items);
  });

  it("Gemini's parts beside the words", () => {
    const content: GeminiContent = {
      role: "user",
      parts: [
        {
          functionResponse: {
            id: "a",
            name: "t",
            response: { output: ["Here.", words.audio, words.link, words.file, words.archive].join("\n") },
            parts: [{ inlineData: { mimeType: "image/png", data: png } }, { inlineData: { mimeType: "application/pdf", data: pdf } }],
          },
        },
      ],
    };
    assert.deepEqual(answer("gemini", call(everything)), content);
  });

  it("Bedrock's blocks, their bytes in base64 as they travel", () => {
    const asSent = (text: string) => text as unknown as Uint8Array;
    const message: BedrockMessage = {
      role: "user",
      content: [
        {
          toolResult: {
            toolUseId: "a",
            content: [
              { text: "Here." },
              { image: { format: "png", source: { bytes: asSent(png) } } },
              { text: words.audio },
              { text: words.link },
              { text: words.file },
              { document: { format: "pdf", name: "document-1", source: { bytes: asSent(pdf) } } },
              { text: words.archive },
            ],
          },
        },
      ],
    };
    assert.deepEqual(answer("bedrock", call(everything)), message);
  });
});

describe("an answer that a provider would refuse is never made:", () => {
  const partsOf = (format: TurnFormat, ...answers: CallAnswer[]): { type: string }[] =>
    answer<{ content: { content: { type: string }[] }[] }>(format, ...answers).content.flatMap(({ content }) => content);

  it("what a picture is, its bytes say", () => {
    const [part] = partsOf("anthropic", call([{ type: "image", data: jpeg, mimeType: "image/png" }]));
    assert.deepEqual(part, { type: "image", source: { type: "base64", media_type: "image/jpeg", data: jpeg } });
  });
  it("what only claims to be a picture is none", () => {
    const message = answer<{ content: unknown }>("anthropic", call([{ type: "image", data: base64("<svg/>"), mimeType: "image/png" }]));
    assert.deepEqual(message.content, [
      { type: "tool_result", tool_use_id: "a", content: "[Left out: image of type image/png, 6 bytes, which can't be shown]" },
    ]);
  });
  it("nor is what isn't base64", () => {
    const message = answer<{ content: unknown }>("anthropic", call([{ type: "image", data: `${png}!`, mimeType: "image/png" }]));
    assert.match(JSON.stringify(message), /which is not base64/);
  });
  it("Gemini is given no GIF, which it doesn't know", () => {
    assert.deepEqual(answer("gemini", call([{ type: "image", data: gif, mimeType: "image/gif" }])), {
      role: "user",
      parts: [
        {
          functionResponse: {
            id: "a",
            name: "t",
            response: { output: "[Left out: image of type image/gif, 10 bytes, which can't be shown]" },
          },
        },
      ],
    });
  });
  it("Anthropic's errors are text", () => {
    const message = answer<{ content: unknown[] }>("anthropic", call([{ type: "text", text: "no" }, image], { isError: true }));
    assert.deepEqual(message.content, [
      {
        type: "tool_result",
        tool_use_id: "a",
        content: "no\n[Left out: image of type image/png, 24 bytes, which can't be shown]",
        is_error: true,
      },
    ]);
  });
  it("an error that begins with a picture says first that it is one", () => {
    const [item] = answer<OpenAI.Responses.ResponseInputItem.FunctionCallOutput[]>("openai-responses", call([image], { isError: true }));
    assert.deepEqual(item?.output, [
      { type: "input_text", text: "Error:" },
      { type: "input_image", image_url: `data:image/png;base64,${png}` },
    ]);
  });
  it("nothing is an answer too, and so is blank text", () => {
    for (const content of [[], [{ type: "text", text: "" }], [{ type: "text", text: " \n" }]] as ContentBlock[][]) {
      assert.match(JSON.stringify(answer("anthropic", call(content))), /"content":"Done\."/);
    }
  });
  it("a file without words is told to be empty", () => {
    const empty: ContentBlock = { type: "resource", resource: { uri: "file:///e", text: "" } };
    assert.match(JSON.stringify(answer("bedrock", call([empty]))), /\[Resource file:\/\/\/e: empty\]/);
  });
  it("a picture of more than Anthropic's 5 MB in base64 is left out", () => {
    const large = pngOf(4, 3, "x".repeat(4 * 1024 * 1024));
    const text = JSON.stringify(answer("anthropic", call([{ type: "image", data: large, mimeType: "image/png" }])));
    assert.match(text, /too much to be shown/);
    assert.match(JSON.stringify(answer("openai-responses", call([{ type: "image", data: large, mimeType: "image/png" }]))), /input_image/);
  });
  it("a picture of more than 8,000 pixels a side is left out where it would be refused", () => {
    const wide: ContentBlock = { type: "image", data: pngOf(8001, 1), mimeType: "image/png" };
    assert.match(JSON.stringify(answer("anthropic", call([wide]))), /8001 × 1 pixels, too much to be shown/);
    assert.match(JSON.stringify(answer("openai-responses", call([wide]))), /input_image/);
  });
  it("all that a turn shows stays below what a request may have", () => {
    const large: ContentBlock = { type: "image", data: pngOf(4, 3, "x".repeat(3 * 1024 * 1024)), mimeType: "image/png" };
    const parts = partsOf("anthropic", ...Array.from({ length: 4 }, () => call([large, large, large])));
    assert.equal(parts.filter(({ type }) => type === "image").length, 6);
  });
  it("a turn's answers share what a request may hold", () => {
    const parts = partsOf("anthropic", call(Array(15).fill(image)), call(Array(15).fill(image)), call(Array(9).fill(report)));
    assert.deepEqual(
      ["image", "document", "text"].map((kind) => parts.filter(({ type }) => type === kind).length),
      [20, 5, 14],
    );
  });
});
