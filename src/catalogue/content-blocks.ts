import type { ContentBlock } from "../api/content.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";

/** The blocks that a host's reply holds; null for anything else, down to a member that is no text. */
export const contentBlocks = (value: JsonValue): readonly ContentBlock[] | null => {
  if (!Array.isArray(value)) return null;
  const blocks = value.map((block: JsonValue) => (isJsonObject(block) && isBlock(block) ? (block as unknown as ContentBlock) : null));
  return blocks.every((block) => block !== null) ? blocks : null;
};

const isBlock = (block: JsonObject): boolean => {
  switch (block.type) {
    case "text":
      return hasTexts(block, ["type", "text"], []);
    case "image":
    case "audio":
      return hasTexts(block, ["type", "data", "mimeType"], []);
    case "resource_link":
      return hasTexts(block, ["type", "uri", "name"], ["description", "mimeType"]);
    case "resource":
      return Object.keys(block).length === 2 && isJsonObject(block.resource) && isResource(block.resource);
    default:
      return false;
  }
};

const isResource = (resource: JsonObject): boolean =>
  hasTexts(resource, ["uri", "text"], ["mimeType"]) || hasTexts(resource, ["uri", "blob"], ["mimeType"]);

/** Whether these members and no others are there, and are texts. */
const hasTexts = (object: JsonObject, needed: readonly string[], optional: readonly string[]): boolean =>
  needed.every((key) => typeof object[key] === "string") &&
  Object.entries(object).every(([key, value]) => typeof value === "string" && (needed.includes(key) || optional.includes(key)));
