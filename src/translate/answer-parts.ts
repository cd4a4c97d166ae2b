import type { ContentBlock, EmbeddedResource } from "../api/content.ts";
import { isBase64 } from "./base64.ts";
import { type ImageFormat, isPdf, pictureIn } from "./picture.ts";
import { nothingText, silentErrorText } from "./result.ts";
import { cut } from "./wording.ts";

/** A tool's answer in what providers know: texts, pictures and PDFs, which are numbered within a turn. `data` is base64. */
export type AnswerPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly format: ImageFormat; readonly data: string }
  | { readonly type: "pdf"; readonly number: number; readonly data: string };

/** What a provider takes in the answer to a call, besides text. */
export interface MediaRules {
  readonly images: readonly ImageFormat[];
  /** Bytes before base64. */
  readonly largestImage: number;
  readonly largestPdf: number;
  /** Pixels of the longer side. */
  readonly longestSide: number;
  /** In the answers to one turn, `mostBytes` of both. */
  readonly mostImages: number;
  readonly mostPdfs: number;
  readonly mostBytes: number;
}

/** What is left of a turn's allowance; the answers of a turn draw on the same one. */
export interface MediaAllowance {
  images: number;
  pdfs: number;
  bytes: number;
}

export const allowanceOf = ({ mostImages, mostPdfs, mostBytes }: MediaRules): MediaAllowance => ({
  images: mostImages,
  pdfs: mostPdfs,
  bytes: mostBytes,
});

const textOnly: MediaRules = { images: [], largestImage: 0, largestPdf: 0, longestSide: 0, mostImages: 0, mostPdfs: 0, mostBytes: 0 };

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
  answerParts(answered, textOnly, allowanceOf(textOnly))
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
  const isFitting = (largest: number): boolean => bytes <= largest && bytes <= allowance.bytes;
  const picture = pictureIn(data);
  if (picture && rules.images.includes(picture.format)) {
    const { format, width, height } = picture;
    if (Math.max(width, height) > rules.longestSide) return note(`${width} × ${height} pixels, too much to be shown`);
    if (!isFitting(rules.largestImage) || allowance.images < 1) return note(`${bytes} bytes, too much to be shown`);
    allowance.images -= 1;
    allowance.bytes -= bytes;
    return { type: "image", format, data };
  }
  if (isPdf(data) && rules.mostPdfs > 0) {
    if (!isFitting(rules.largestPdf) || allowance.pdfs < 1) return note(`${bytes} bytes, too much to be shown`);
    allowance.pdfs -= 1;
    allowance.bytes -= bytes;
    return { type: "pdf", number: rules.mostPdfs - allowance.pdfs, data };
  }
  return note(`${bytes} bytes, which can't be shown`);
};

const shown = (mimeType: string): string => cut(mimeType, 80);
