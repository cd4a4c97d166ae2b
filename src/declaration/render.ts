import type { CacheTtl, Declaration } from "../api/declaration.ts";
import { compactJson, type JsonObject, type JsonValue } from "../api/json.ts";
import type { DeclarationFormat, ProviderFormat } from "./formats.ts";
import { lintDeclaration, providerRules, type RuleBreach } from "./provider-rules.ts";
import { looseCopy, type StrictCopy, strictCopy } from "./strict-copy.ts";

export interface RenderOptions {
  /** Overrides what the declarations ask for; `off` sets no breakpoint. */
  readonly cache?: "off" | CacheTtl;
  /** False: nothing is sent strict. By default whatever fits the provider's subset and budgets is. */
  readonly strict?: boolean;
  /** What of the provider's budgets the caller needs for its own tools. */
  readonly reserve?: Partial<StrictBudget>;
}

/** A declaration that a provider would refuse, or has no room for. */
export interface LeftOut extends Omit<RuleBreach, "message"> {
  readonly name: string;
  readonly message: string;
}

export interface Rendering {
  /** JSON text of the array that the provider takes as `tools`; the same bytes for the same declarations, whatever order they came in. */
  readonly body: string;
  readonly leftOut: readonly LeftOut[];
}

/** What one request may hold that the provider enforces strictly. */
export interface StrictBudget {
  readonly tools: number;
  readonly optionals: number;
  readonly unions: number;
}

const strictBudgets: Readonly<Record<ProviderFormat, StrictBudget>> = {
  anthropic: { tools: 20, optionals: 24, unions: 16 },
  "openai-chat": { tools: Number.POSITIVE_INFINITY, optionals: Number.POSITIVE_INFINITY, unions: Number.POSITIVE_INFINITY },
  "openai-responses": { tools: Number.POSITIVE_INFINITY, optionals: Number.POSITIVE_INFINITY, unions: Number.POSITIVE_INFINITY },
};

/** The part of a rendering that depends on one declaration alone: worth keeping for as long as the declaration stands. */
export interface PreparedDeclaration {
  readonly name: string;
  readonly cache: CacheTtl | undefined;
  readonly breaches: readonly RuleBreach[];
  readonly loose: Fragment;
  readonly strict: (Fragment & Pick<StrictCopy, "optionals" | "unions">) | null;
}

/** JSON text without its end, so that what depends on the whole list can follow. */
interface Fragment {
  readonly open: string;
  readonly close: string;
}

/**
 * Declarations in one format. Each that the provider would refuse is left out alone, with the rule and the place. Sorted by name.
 */
export const renderDeclarations = (
  format: DeclarationFormat,
  declarations: readonly Declaration[],
  options: RenderOptions = {},
): Rendering =>
  assembleDeclarations(
    format,
    declarations.map((declaration) => prepareDeclaration(format, declaration)),
    options,
  );

export const prepareDeclaration = (format: DeclarationFormat, declaration: Declaration): PreparedDeclaration => {
  const { name, cache } = declaration;
  if (format === "neutral")
    return { name, cache, breaches: [], loose: { open: openObject(neutral(declaration)), close: "}" }, strict: null };
  const strict = strictCopy(declaration.parameters, format);
  return {
    name,
    cache,
    breaches: lintDeclaration(declaration, format),
    loose: fragment(format, declaration, looseCopy(declaration.parameters, format), false),
    strict: strict && { ...fragment(format, declaration, strict.schema, true), optionals: strict.optionals, unions: strict.unions },
  };
};

/** See `renderDeclarations`, which is this after `prepareDeclaration`. */
export const assembleDeclarations = (
  format: DeclarationFormat,
  prepared: readonly PreparedDeclaration[],
  options: RenderOptions = {},
): Rendering => {
  const sorted = [...prepared].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  if (format === "neutral") return { body: `[${sorted.map(({ loose }) => loose.open + loose.close).join(",")}]`, leftOut: [] };
  const { sent, leftOut } = sift(format, sorted);
  const useStrict = chooseStrict(format, sent, options);
  const breakpoint = format === "anthropic" ? cacheControl(sent, options) : "";
  const parts = sent.map((one, index) => {
    const { open, close } = (useStrict.has(one) && one.strict) || one.loose;
    return open + (index === sent.length - 1 ? breakpoint : "") + close;
  });
  return { body: `[${parts.join(",")}]`, leftOut };
};

const neutral = ({ name, description, parameters, cache, tool }: Declaration): JsonObject => ({
  name,
  description,
  parameters,
  ...(cache === undefined ? {} : { cache }),
  ...(tool === undefined ? {} : { tool }),
});

const fragment = (format: ProviderFormat, { name, description }: Declaration, schema: JsonObject, strict: boolean): Fragment => {
  const words: JsonObject = description === "" ? { name } : { name, description };
  switch (format) {
    case "anthropic":
      return { open: openObject({ ...words, input_schema: schema, ...(strict ? { strict } : {}) }), close: "}" };
    case "openai-chat":
      return { open: `{"type":"function","function":${openObject({ ...words, parameters: schema, strict })}`, close: "}}" };
    case "openai-responses":
      return { open: openObject({ type: "function", ...words, parameters: schema, strict }), close: "}" };
  }
};

const openObject = (value: JsonValue): string => compactJson(value).slice(0, -1);

const sift = (format: ProviderFormat, sorted: readonly PreparedDeclaration[]): { sent: PreparedDeclaration[]; leftOut: LeftOut[] } => {
  const { mostTools } = providerRules[format];
  const counts = new Map<string, number>();
  for (const { name } of sorted) counts.set(name, (counts.get(name) ?? 0) + 1);
  const sent: PreparedDeclaration[] = [];
  const leftOut: LeftOut[] = [];
  for (const one of sorted) {
    const { name } = one;
    const [breach] = one.breaches;
    if (breach) {
      leftOut.push({ name, ...breach });
    } else if ((counts.get(name) ?? 0) > 1) {
      leftOut.push({ name, rule: "DuplicateName", where: "/name", message: `several declarations are called "${name}"` });
    } else if (mostTools !== null && sent.length >= mostTools) {
      leftOut.push({ name, rule: "TooManyTools", where: "", message: `${format} takes at most ${mostTools} tools; use search or a limit` });
    } else {
      sent.push(one);
    }
  }
  return { sent, leftOut };
};

/** In order of name, as many as the budgets hold. */
const chooseStrict = (
  format: ProviderFormat,
  sent: readonly PreparedDeclaration[],
  options: RenderOptions,
): ReadonlySet<PreparedDeclaration> => {
  const chosen = new Set<PreparedDeclaration>();
  if (options.strict === false) return chosen;
  let { tools, optionals, unions } = strictBudgets[format];
  tools -= options.reserve?.tools ?? 0;
  optionals -= options.reserve?.optionals ?? 0;
  unions -= options.reserve?.unions ?? 0;
  for (const one of sent) {
    const { strict } = one;
    if (!strict || tools < 1 || strict.optionals > optionals || strict.unions > unions) continue;
    tools -= 1;
    optionals -= strict.optionals;
    unions -= strict.unions;
    chosen.add(one);
  }
  return chosen;
};

const cacheControl = (sent: readonly PreparedDeclaration[], options: RenderOptions): string => {
  const asked = sent.some(({ cache }) => cache === "1h") ? "1h" : sent.some(({ cache }) => cache === "5m") ? "5m" : "off";
  const ttl = options.cache ?? asked;
  return ttl === "off" ? "" : `,"cache_control":{"type":"ephemeral","ttl":"${ttl}"}`;
};
