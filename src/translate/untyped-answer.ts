import type { ContentBlock } from "../api/content.ts";
import { Invalid } from "../api/errors.ts";
import { compactJson, type JsonValue, parseJson } from "../api/json.ts";
import { nothingText, silentErrorText } from "./result.ts";

/** What `call-tool` returns, as jco lifts it (wit/untyped.wit, `answer`). */
export interface LiftedAnswer {
  readonly content: readonly LiftedContent[];
  readonly structured?: string | undefined;
  readonly isError: boolean;
}

export type LiftedContent =
  | { readonly tag: "text"; readonly val: string }
  | { readonly tag: "image" | "audio"; readonly val: { readonly data: Uint8Array; readonly mimeType: string } }
  | {
      readonly tag: "resource-link";
      readonly val: { readonly uri: string; readonly name: string; readonly description?: string; readonly mimeType?: string };
    }
  | { readonly tag: "text-resource"; readonly val: { readonly uri: string; readonly mimeType?: string; readonly text: string } }
  | { readonly tag: "blob-resource"; readonly val: { readonly uri: string; readonly mimeType?: string; readonly blob: Uint8Array } };

/** The answer of an untyped tool. `content` is there where it is more than one text; `text` then holds its texts, joined by line breaks. */
export interface UntypedAnswer {
  readonly outcome: "ok" | "tool-error";
  readonly text: string;
  readonly content?: readonly ContentBlock[];
  readonly structured?: JsonValue;
}

const deepestStructured = 64;

/** What a block costs besides what it holds. */
const blockBytes = 64;

/**
 * What a model and a client get of what an untyped tool answered. Without content the structured value is the text; beside an error there is none.
 *
 * Throws `Invalid`: `ResultTooLarge` where texts, base64 and structured value are together more than `maxBytes` of UTF-8, `ResultInvalid` where what is given as
 * structured value is not JSON.
 */
export const untypedAnswer = ({ content, structured, isError }: LiftedAnswer, maxBytes: number): UntypedAnswer => {
  const blocks = content.map(blockOf);
  const value = structured === undefined || isError ? undefined : structuredIn(structured, maxBytes);
  const bytes = blocks.reduce((sum, block) => sum + sizeOf(block), 0) + (value === undefined ? 0 : Buffer.byteLength(structured ?? ""));
  if (bytes > maxBytes) throw new Invalid("ResultTooLarge", `the tool's result has ${bytes} bytes, more than its limit of ${maxBytes}`, "");
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const isText = blocks.length === texts.length && texts.length <= 1;
  const unsaid = isError ? silentErrorText : value === undefined ? nothingText : compactJson(value);
  return {
    outcome: isError ? "tool-error" : "ok",
    text: isText ? texts[0] || unsaid : texts.join("\n"),
    ...(isText ? {} : { content: blocks }),
    ...(value === undefined ? {} : { structured: value }),
  };
};

const structuredIn = (text: string, maxBytes: number): JsonValue => {
  try {
    return parseJson(text, { maxLength: maxBytes, maxDepth: deepestStructured });
  } catch (thrown) {
    if (!(thrown instanceof Invalid)) throw thrown;
    if (thrown.code === "JsonTooLong") throw new Invalid("ResultTooLarge", thrown.message, "", { cause: thrown });
    throw new Invalid("ResultInvalid", `its structured result is not JSON: ${thrown.message}`, "", { cause: thrown });
  }
};

const blockOf = (block: LiftedContent): ContentBlock => {
  switch (block.tag) {
    case "text":
      return { type: "text", text: block.val };
    case "image":
    case "audio":
      return { type: block.tag, data: base64Of(block.val.data), mimeType: block.val.mimeType };
    case "resource-link": {
      const { uri, name, description, mimeType } = block.val;
      return {
        type: "resource_link",
        uri,
        name,
        ...(description !== undefined && { description }),
        ...(mimeType !== undefined && { mimeType }),
      };
    }
    case "text-resource": {
      const { uri, mimeType, text } = block.val;
      return { type: "resource", resource: { uri, ...(mimeType !== undefined && { mimeType }), text } };
    }
    case "blob-resource": {
      const { uri, mimeType, blob } = block.val;
      return { type: "resource", resource: { uri, ...(mimeType !== undefined && { mimeType }), blob: base64Of(blob) } };
    }
  }
};

const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");

const sizeOf = (block: ContentBlock): number => {
  const texts = block.type === "resource" ? Object.values(block.resource) : Object.values(block);
  return texts.reduce((sum: number, text: string) => sum + Buffer.byteLength(text), blockBytes);
};
