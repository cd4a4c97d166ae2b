import type { CacheTtl, Declaration } from "../api/declaration.ts";
import { compactJson, isJsonObject, type JsonObject } from "../api/json.ts";
import { type Dialect, dialects, type Fragment, type StrictBudget, type ToolSearchKind } from "./dialects.ts";
import type { DeclarationFormat } from "./formats.ts";
import { looseCopy } from "./loose-copy.ts";
import { lintDeclaration, providerRules, type RuleBreach } from "./provider-rules.ts";
import { type StrictCopy, strictCopy } from "./strict-copy.ts";
import { mapChildren } from "./subschemas.ts";

export interface RenderOptions {
  /** Overrides what the declarations ask for; `off` sets no breakpoint. */
  readonly cache?: "off" | CacheTtl;
  /** False: nothing is sent strict. True: whatever fits the provider's subset and budgets is. Without it, the format decides. */
  readonly strict?: boolean;
  /** What of the provider's budgets the caller needs for its own tools. */
  readonly reserve?: Partial<StrictBudget>;
  /** Sends declarations beyond the first `after` (at least 1) for the provider's tool search to find, where it has one. */
  readonly defer?: { readonly after: number; readonly search: ToolSearchKind };
  /** Writes these alone, in order of name: from `start` up to `end`. What depends on the whole list is as if all were written. */
  readonly page?: { readonly start: number; readonly end: number };
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

/** The part of a rendering that depends on one declaration alone: worth keeping for as long as the declaration stands. */
export interface PreparedDeclaration {
  readonly name: string;
  readonly cache: CacheTtl | undefined;
  readonly breaches: readonly RuleBreach[];
  readonly loose: Fragment;
  readonly strict: (Fragment & Pick<StrictCopy, "optionals" | "unions">) | null;
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

export const prepareDeclaration = (format: DeclarationFormat, given: Declaration): PreparedDeclaration => {
  const { name, cache } = given;
  const declaration = { ...given, parameters: presentable(given.parameters) };
  const { parameters } = declaration;
  const { declare } = dialects[format];
  if (format === "neutral") return { name, cache, breaches: [], loose: declare(declaration, parameters, false), strict: null };
  const strict = strictCopy(parameters, format);
  return {
    name,
    cache,
    breaches: lintDeclaration(declaration, format),
    loose: declare(declaration, looseCopy(parameters, format), false),
    strict: strict && { ...declare(declaration, strict.schema, true), optionals: strict.optionals, unions: strict.unions },
  };
};

/**
 * The same schema for all others: without MCP's mark of arguments that travel in headers, which is between Ambit and the server, and with `true` for `{}` where it
 * is about other properties, since there are clients that fail at it.
 */
const presentable = (schema: JsonObject): JsonObject => {
  const { "x-mcp-header": _mark, ...rest } = mapChildren(schema, (child) => (isJsonObject(child) ? presentable(child) : child));
  const { additionalProperties: others } = rest;
  return isJsonObject(others) && Object.keys(others).length === 0 ? { ...rest, additionalProperties: true } : rest;
};

/** One declaration by itself, as an entry of the provider's list; null where the provider would refuse it. Never strict, deferred or a breakpoint. */
export const assembleOne = ({ breaches, loose }: PreparedDeclaration): string | null => (breaches.length > 0 ? null : loose.whole);

/** See `renderDeclarations`, which is this after `prepareDeclaration`. */
export const assembleDeclarations = (
  format: DeclarationFormat,
  prepared: readonly PreparedDeclaration[],
  options: RenderOptions = {},
): Rendering => {
  const dialect = dialects[format];
  const sorted = inOrder(prepared);
  const { sent, leftOut } = sift(format, sorted);
  const useStrict = chooseStrict(dialect, sent, options);
  const { deferral, breakpoint } = dialect;
  const read = deferral && options.defer && sent.length > options.defer.after ? Math.max(1, options.defer.after) : sent.length;
  const ttl = cacheTtl(sent, options);
  const written = onPage(sorted, options);
  const entries: string[] = [];
  // First, so that the page with the declarations that a model reads has it.
  if (deferral && options.defer && read < sent.length && written(sorted[0])) entries.push(compactJson(deferral.tool(options.defer.search)));
  for (const [index, one] of sent.entries()) {
    if (!written(one)) continue;
    const fragment = (useStrict.has(one) && one.strict) || one.loose;
    const point = index === read - 1 && ttl !== "off" && breakpoint ? breakpoint.text(ttl) : "";
    if (index >= read) entries.push(fragment.open + deferral?.mark + fragment.close);
    else if (point !== "" && breakpoint?.within) entries.push(fragment.open + point + fragment.close);
    else entries.push(fragment.whole);
    if (point !== "" && !breakpoint?.within) entries.push(point);
  }
  return { body: dialect.list(entries), leftOut: leftOut.filter(({ one }) => written(one)).map(({ told }) => told) };
};

/** Sorted by name; lists mostly come so. */
const inOrder = (prepared: readonly PreparedDeclaration[]): readonly PreparedDeclaration[] => {
  const isSorted = prepared.every(({ name }, index) => index === 0 || (prepared[index - 1]?.name ?? "") <= name);
  return isSorted ? prepared : [...prepared].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
};

/** Whether a declaration is on the page that is asked for. */
const onPage = (sorted: readonly PreparedDeclaration[], { page }: RenderOptions): ((one: PreparedDeclaration | undefined) => boolean) => {
  if (!page) return () => true;
  const written = new Set(sorted.slice(page.start, page.end));
  return (one) => one !== undefined && written.has(one);
};

interface Sifted {
  readonly sent: readonly PreparedDeclaration[];
  readonly leftOut: readonly { readonly one: PreparedDeclaration; readonly told: LeftOut }[];
}

const sift = (format: DeclarationFormat, sorted: readonly PreparedDeclaration[]): Sifted => {
  const leftOut: { one: PreparedDeclaration; told: LeftOut }[] = [];
  if (format === "neutral") return { sent: sorted, leftOut };
  const sent: PreparedDeclaration[] = [];
  const { mostTools } = providerRules[format];
  for (const [index, one] of sorted.entries()) {
    const { name } = one;
    const [breach] = one.breaches;
    const leave = (told: RuleBreach) => leftOut.push({ one, told: { name, ...told } });
    if (breach) {
      leave(breach);
    } else if (sorted[index - 1]?.name === name || sorted[index + 1]?.name === name) {
      leave({ rule: "DuplicateName", where: "/name", message: `several declarations are called "${name}"` });
    } else if (mostTools !== null && sent.length >= mostTools) {
      const message = `${format} takes at most ${mostTools} tools; ask for fewer by search, names or namespace`;
      leave({ rule: "TooManyTools", where: "", message });
    } else {
      sent.push(one);
    }
  }
  return { sent, leftOut };
};

/** In order of name, as many as the budgets hold. */
const chooseStrict = (
  { strictUnasked, budget }: Dialect,
  sent: readonly PreparedDeclaration[],
  { strict: asked = strictUnasked, reserve }: RenderOptions,
): ReadonlySet<PreparedDeclaration> => {
  const chosen = new Set<PreparedDeclaration>();
  if (!asked) return chosen;
  let { tools, optionals, unions } = budget;
  tools -= reserve?.tools ?? 0;
  optionals -= reserve?.optionals ?? 0;
  unions -= reserve?.unions ?? 0;
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

const cacheTtl = (sent: readonly PreparedDeclaration[], { cache }: RenderOptions): "off" | CacheTtl => {
  if (cache !== undefined) return cache;
  if (sent.some((one) => one.cache === "1h")) return "1h";
  return sent.some((one) => one.cache === "5m") ? "5m" : "off";
};
