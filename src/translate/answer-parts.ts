import type { ContentBlock, EmbeddedResource } from "../api/content.ts";
import { isBase64 } from "./base64.ts";
import { nothingText, silentErrorText } from "./result.ts";
import { cut } from "./wording.ts";

/** A tool's answer in what providers know: texts, pictures and PDFs, which are numbered within a turn. `data` is base64. */
export type AnswerPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly format: ImageFormat; readonly data: string }
  | { readonly type: "pdf"; readonly number: number; readonly data: string };

export type ImageFormat = "png" | "jpeg" | "gif" | "webp";

/** What a provider takes in the answer to a call, besides text. */
export interface MediaRules {
  readonly images: readonly ImageFormat[];
  /** Bytes before base64. */
  readonly largestImage: number;
  readonly largestPdf: number;
  /** In the answers to one turn. */
  readonly mostImages: number;
  readonly mostPdfs: number;
}

export const textOnly: MediaRules = { images: [], largestImage: 0, largestPdf: 0, mostImages: 0, mostPdfs: 0 };

/** What is left of a turn's allowance; the answers of a turn draw on the same one. */
export interface MediaAllowance {
  images: number;
  pdfs: number;
}

export interface Answered {
  readonly text: string;
  readonly content?: readonly ContentBlock[];
  readonly isError: boolean;
}

/**
 * The parts of one answer, at least one, no text blank: a provider refuses a conversation with an empty answer, or with a picture that it can't read. So what a
 * thing is, is told by its first bytes and not by what the tool calls it, and a few words stand for what the provider doesn't take.
 */
export const answerParts = ({ text, content, isError }: Answered, rules: MediaRules, allowance: MediaAllowance): AnswerPart[] => {
  const parts = (content ?? [{ type: "text" as const, text }])
    .map((block) => partOf(block, rules, allowance))
    .filter((part) => part.type !== "text" || isReadable(part.text));
  return parts.length > 0 ? parts : [{ type: "text", text: isError ? silentErrorText : nothingText }];
};

/** The parts as one text, for where nothing else can be said. */
export const answerText = (answered: Answered): string =>
  answerParts(answered, textOnly, { images: 0, pdfs: 0 })
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n");

const isReadable = (text: string): boolean => /\S/.test(text);

const partOf = (block: ContentBlock, rules: MediaRules, allowance: MediaAllowance): AnswerPart => {
  switch (block.type) {
    case "text":
      return block;
    case "image":
    case "audio":
      return mediaPart(block.data, `${block.type} of type ${shown(block.mimeType)}`, rules, allowance);
    case "resource_link": {
      const { uri, name, description, mimeType } = block;
      const kind = mimeType === undefined ? "" : ` (${shown(mimeType)})`;
      return { type: "text", text: `[Resource ${JSON.stringify(name)}${kind}: ${uri}]${description ? `\n${description}` : ""}` };
    }
    case "resource":
      return resourcePart(block.resource, rules, allowance);
  }
};

const resourcePart = (resource: EmbeddedResource, rules: MediaRules, allowance: MediaAllowance): AnswerPart => {
  const { uri, mimeType } = resource;
  if ("text" in resource)
    return { type: "text", text: isReadable(resource.text) ? `[Resource ${uri}]\n${resource.text}` : `[Resource ${uri}: empty]` };
  return mediaPart(resource.blob, `resource ${uri}${mimeType === undefined ? "" : ` of type ${shown(mimeType)}`}`, rules, allowance);
};

const mediaPart = (data: string, what: string, rules: MediaRules, allowance: MediaAllowance): AnswerPart => {
  const note = (why: string): AnswerPart => ({ type: "text", text: `[Left out: ${what}, ${why}]` });
  if (!isBase64(data)) return note("which is not base64");
  const bytes = (data.length / 4) * 3 - (data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0);
  const kind = kindOf(data);
  if (kind === "pdf" && rules.mostPdfs > 0) {
    if (bytes > rules.largestPdf || allowance.pdfs < 1) return note(`${bytes} bytes, too much to be shown`);
    allowance.pdfs--;
    return { type: "pdf", number: rules.mostPdfs - allowance.pdfs, data };
  }
  if (kind !== null && kind !== "pdf" && rules.images.includes(kind)) {
    if (bytes > rules.largestImage || allowance.images < 1) return note(`${bytes} bytes, too much to be shown`);
    allowance.images--;
    return { type: "image", format: kind, data };
  }
  return note(`${bytes} bytes, which can't be shown`);
};

/** By what such a file begins with. */
const kindOf = (data: string): ImageFormat | "pdf" | null => {
  const start = Buffer.from(data.slice(0, 24), "base64").toString("latin1");
  if (start.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (start.startsWith("\xff\xd8\xff")) return "jpeg";
  if (start.startsWith("GIF87a") || start.startsWith("GIF89a")) return "gif";
  if (start.startsWith("RIFF") && start.slice(8, 12) === "WEBP") return "webp";
  return start.startsWith("%PDF-") ? "pdf" : null;
};

const shown = (mimeType: string): string => cut(mimeType, 80);
