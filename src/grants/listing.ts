import { AmbitError, Invalid } from "../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import { excludedReason, type ToolListing, type UntypedTool, type UnusableTool } from "../api/untyped.ts";
import { wrongHeader } from "./parameter-headers.ts";
import { untypedText } from "./untyped-definition.ts";

/** A definition as a component gives it: JSON as text (wit/untyped.wit, `definition`). */
export interface ListedDefinition {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: string;
  readonly outputSchema?: string | undefined;
  readonly annotations?: string | undefined;
}

/** What a listing says for all of its tools at once. */
export interface ListedServer {
  readonly server?: string | undefined;
  readonly instructions?: string | undefined;
}

/** What a listing may hold; what a model never reads has bounds that no honest far side meets. */
export const listingLimits = {
  tools: 5000,
  notOffered: 200,
  serverLength: 256,
  instructionsLength: 16 * 1024,
  nameLength: 128,
  titleLength: 1024,
  /** As a ToolGrant's declaration bounds it. */
  descriptionLength: 16_384,
  annotationsLength: 16 * 1024,
  schemaDepth: 64,
  /** Of all that is said of one tool: what a ToolGrant's status may hold. */
  definitionLength: 128 * 1024,
} as const;

/**
 * The tools of a complete list. A definition that is not one, or too large to review, is left out with its reason, and harms no other; of two under one name neither is
 * offered. Throws `Invalid` (`ListingTooLarge`) where what is said of all of them is too much.
 */
export const toolListing = (said: ListedServer, definitions: readonly ListedDefinition[]): ToolListing => {
  const server = bounded(said.server, listingLimits.serverLength, "the server's name");
  const instructions = bounded(said.instructions, listingLimits.instructionsLength, "the server's instructions");
  if (definitions.length > listingLimits.tools) {
    throw new Invalid("ListingTooLarge", `it lists ${definitions.length} tools, more than ${listingLimits.tools}`);
  }
  const counts = new Map<string, number>();
  for (const { name } of definitions) counts.set(name, (counts.get(name) ?? 0) + 1);
  const tools: UntypedTool[] = [];
  const notOffered: UnusableTool[] = [];
  for (const definition of definitions) {
    const { name } = definition;
    try {
      if ((counts.get(name) ?? 0) > 1) throw unusable("another tool has the same name, and a call could mean either");
      tools.push(toolOf(definition, server, instructions));
    } catch (thrown) {
      if (!(thrown instanceof AmbitError)) throw thrown;
      if (notOffered.length < listingLimits.notOffered)
        notOffered.push({ name: name.slice(0, listingLimits.nameLength), reason: thrown.message });
    }
  }
  return { tools: tools.sort(byName), notOffered: distinct(notOffered).sort(byName) };
};

const bounded = (text: string | undefined, longest: number, what: string): string | null => {
  if (text === undefined) return null;
  if (text.length > longest) throw new Invalid("ListingTooLarge", `${what} has ${text.length} characters, more than ${longest}`);
  return text;
};

const toolOf = (definition: ListedDefinition, server: string | null, instructions: string | null): UntypedTool => {
  const { name } = definition;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what nobody sees in a name is what is looked for
  if (name === "" || name.length > listingLimits.nameLength || /[\u0000-\u001f\u007f]/.test(name)) {
    throw unusable(`its name is not 1 to ${listingLimits.nameLength} characters without control characters`);
  }
  const tool: UntypedTool = {
    form: "untyped",
    name,
    title: textOf(definition.title, listingLimits.titleLength, "title"),
    description: textOf(definition.description, listingLimits.descriptionLength, "description"),
    inputSchema: objectIn(definition.inputSchema, listingLimits.definitionLength, "input schema"),
    outputSchema: optionalObject(definition.outputSchema, listingLimits.definitionLength, "output schema"),
    annotations: optionalObject(definition.annotations, listingLimits.annotationsLength, "annotations"),
    server,
    instructions,
  };
  if (tool.inputSchema.type !== "object") throw unusable('its input schema is not of the type "object"');
  const wrong = wrongHeader(tool.inputSchema);
  if (wrong !== null) throw unusable(`its input schema asks wrongly for a header: ${wrong}`);
  const { length } = untypedText(tool);
  if (length > listingLimits.definitionLength) {
    throw unusable(`what is said of it has ${length} characters, more than ${listingLimits.definitionLength}`);
  }
  return tool;
};

const textOf = (text: string | undefined, longest: number, what: string): string | null => {
  if (text === undefined) return null;
  if (text.length > longest) throw unusable(`its ${what} has ${text.length} characters, more than ${longest}`);
  return text;
};

const optionalObject = (text: string | undefined, longest: number, what: string): JsonObject | null =>
  text === undefined ? null : objectIn(text, longest, what);

const objectIn = (text: string, longest: number, what: string): JsonObject => {
  let value: JsonValue;
  try {
    value = parseJson(text, { maxLength: longest, maxDepth: listingLimits.schemaDepth });
  } catch (thrown) {
    if (!(thrown instanceof Invalid)) throw thrown;
    throw unusable(`its ${what} can't be read: ${thrown.message}`);
  }
  if (!isJsonObject(value)) throw unusable(`its ${what} is not a JSON object`);
  return value;
};

const unusable = (why: string): Invalid => new Invalid("ToolUnusable", why);

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

const distinct = (tools: readonly UnusableTool[]): UnusableTool[] => [
  ...new Map(tools.map((tool) => [JSON.stringify(tool), tool])).values(),
];

/** The tools that a Workload's `tools.exclude` leaves; what it names that is not there is in `unmatched`. */
export const withoutExcluded = (
  listing: ToolListing,
  exclude: readonly string[],
): { readonly listing: ToolListing; readonly unmatched: readonly string[] } => {
  const excluded = listing.tools.filter(({ name }) => exclude.includes(name));
  return {
    listing: {
      tools: listing.tools.filter(({ name }) => !exclude.includes(name)),
      notOffered: [...listing.notOffered, ...excluded.map(({ name }) => ({ name, reason: excludedReason }))],
    },
    unmatched: exclude.filter((entry) => !excluded.some(({ name }) => name === entry)),
  };
};

/**
 * A listing as hosts give it, the same text for the same listing. What is said for all tools is written once.
 *
 *   { "server": "issues", "instructions": null, "tools": [{ "name": "list_issues", "inputSchema": {…}, … }], "notOffered": [{ "name": "x", "reason": "…" }] }
 */
export const listingText = ({ tools, notOffered }: ToolListing): string => {
  const [first] = tools;
  return compactJson({
    server: first?.server ?? null,
    instructions: first?.instructions ?? null,
    tools: tools.map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
      name,
      title,
      description,
      inputSchema,
      outputSchema,
      annotations,
    })),
    notOffered: notOffered.map(({ name, reason }) => ({ name, reason })),
  });
};

/**
 * Reads what `listingText` wrote, held to the same bounds: a host is not trusted with what a model reads. Throws `Invalid` (`ListingMalformed`, `ListingTooLarge`).
 */
export const readListing = (value: JsonValue): ToolListing => {
  const { server, instructions, tools, notOffered } = objectOr(value);
  const definitions = listOr(tools).map((tool): ListedDefinition => {
    const { name, title, description, inputSchema, outputSchema, annotations } = objectOr(tool);
    return {
      name: stringOr(name),
      title: given(title, stringOr),
      description: given(description, stringOr),
      inputSchema: compactJson(objectOr(inputSchema)),
      outputSchema: given(outputSchema, (schema) => compactJson(objectOr(schema))),
      annotations: given(annotations, (hints) => compactJson(objectOr(hints))),
    };
  });
  const listing = toolListing({ server: given(server, stringOr), instructions: given(instructions, stringOr) }, definitions);
  const reasons = listOr(notOffered)
    .slice(0, listingLimits.notOffered)
    .map(objectOr)
    .map(({ name, reason }) => ({ name: stringOr(name).slice(0, listingLimits.nameLength), reason: stringOr(reason).slice(0, 1024) }));
  return { tools: listing.tools, notOffered: [...listing.notOffered, ...reasons] };
};

const given = <T>(value: JsonValue | undefined, read: (value: JsonValue) => T): T | undefined =>
  value === undefined || value === null ? undefined : read(value);

const malformed = (): Invalid => new Invalid("ListingMalformed", "what the host gave is no list of tools");

const objectOr = (value: JsonValue | undefined): JsonObject => {
  if (isJsonObject(value)) return value;
  throw malformed();
};

const listOr = (value: JsonValue | undefined): readonly JsonValue[] => {
  if (Array.isArray(value)) return value;
  throw malformed();
};

const stringOr = (value: JsonValue | undefined): string => {
  if (typeof value === "string") return value;
  throw malformed();
};
