import type { Declaration } from "../api/declaration.ts";
import { isJsonObject, type JsonObject, pointerTo } from "../api/json.ts";
import type { ProviderFormat } from "./formats.ts";
import { circleIn, type Passage } from "./references.ts";
import { childrenOf } from "./subschemas.ts";

/** A rule of a provider's API that a declaration breaks: sent all the same, it would make the provider refuse the whole request. */
export interface RuleBreach {
  /**
   * Stable: `NamePattern`, `RootType`, `RootKeyword`, `PropertyName`, `DescriptionTooLong`, `ExternalReference`, `EndlessReference`, `DuplicateName`,
   * `TooManyTools`.
   */
  readonly rule: string;
  /** JSON pointer into the neutral declaration. */
  readonly where: string;
  readonly message: string;
}

/**
 * What a provider's API refuses (docs/translation.md, Providers, has the sources). Limits that a provider has moved in the past are fields, so that
 * an installation can follow without a new version.
 */
export interface ProviderRules {
  readonly namePattern: RegExp;
  /** Of properties at any depth; null for none. */
  readonly propertyPattern: RegExp | null;
  /** Of the root's properties, which are the parameters; null for none. */
  readonly parameterPattern: RegExp | null;
  readonly refusedAtRoot: readonly string[];
  /** Whether such keywords may stand beside properties, which alone are sent then. */
  readonly besideProperties: boolean;
  /** UTF-16 code units; null where none is known. */
  readonly longestDescription: number | null;
  readonly mostTools: number | null;
  /** Whether every circle of references must run through a property that may be left out. */
  readonly circlesMustEnd: boolean;
}

const anthropic: ProviderRules = {
  namePattern: /^[a-zA-Z0-9_-]{1,64}$/,
  propertyPattern: /^[a-zA-Z0-9_.-]{1,64}$/,
  parameterPattern: null,
  refusedAtRoot: ["oneOf", "anyOf", "allOf"],
  besideProperties: false,
  longestDescription: null,
  mostTools: 10_000,
  circlesMustEnd: false,
};

const openAi: ProviderRules = {
  namePattern: /^[a-zA-Z0-9_-]{1,64}$/,
  propertyPattern: null,
  parameterPattern: null,
  refusedAtRoot: ["oneOf", "anyOf", "allOf", "enum", "not"],
  besideProperties: false,
  longestDescription: 1024,
  mostTools: 128,
  circlesMustEnd: false,
};

export const providerRules: Readonly<Record<ProviderFormat, ProviderRules>> = {
  anthropic,
  "openai-chat": openAi,
  "openai-responses": openAi,
  gemini: {
    namePattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/,
    propertyPattern: null,
    parameterPattern: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/,
    refusedAtRoot: ["oneOf", "anyOf", "allOf"],
    besideProperties: true,
    longestDescription: null,
    mostTools: 512,
    circlesMustEnd: true,
  },
  // Converse hands the schema on to the model, and which one that is isn't known here: so Anthropic's rules count as well.
  bedrock: { ...anthropic, mostTools: null },
  mcp: {
    namePattern: /^[a-zA-Z0-9_.-]{1,128}$/,
    propertyPattern: null,
    parameterPattern: null,
    refusedAtRoot: [],
    besideProperties: true,
    longestDescription: null,
    mostTools: null,
    circlesMustEnd: false,
  },
};

/** Every rule of the provider that this declaration breaks by itself; none means that it can be sent. */
export const lintDeclaration = (declaration: Declaration, provider: ProviderFormat, rules = providerRules[provider]): RuleBreach[] => {
  const breaches: RuleBreach[] = [];
  const { name, description, parameters } = declaration;
  if (!rules.namePattern.test(name)) {
    breaches.push({ rule: "NamePattern", where: "/name", message: `${JSON.stringify(name)} does not match ${rules.namePattern.source}` });
  }
  if (rules.longestDescription !== null && description.length > rules.longestDescription) {
    const message = `the description has ${description.length} characters, more than the ${rules.longestDescription} that ${provider} takes`;
    breaches.push({ rule: "DescriptionTooLong", where: "/description", message });
  }
  if (parameters.type !== "object") {
    breaches.push({ rule: "RootType", where: "/parameters/type", message: 'the schema\'s root must have the type "object"' });
  }
  const hasProperties = isJsonObject(parameters.properties) && Object.keys(parameters.properties).length > 0;
  for (const keyword of rules.refusedAtRoot) {
    if (parameters[keyword] === undefined || (rules.besideProperties && hasProperties)) continue;
    breaches.push({
      rule: "RootKeyword",
      where: `/parameters/${keyword}`,
      message: `${provider} takes no ${keyword} at the schema's root${rules.besideProperties ? " without properties" : ""}`,
    });
  }
  if (rules.parameterPattern && isJsonObject(parameters.properties)) {
    for (const property of Object.keys(parameters.properties)) checkName(property, rules.parameterPattern, "/parameters", breaches);
  }
  lintSchema(parameters, "/parameters", rules, breaches);
  const circle = rules.circlesMustEnd ? circleIn(parameters, mustBeThere) : null;
  if (circle !== null) {
    const message = `${provider} follows a circle of references only where it runs through a property that may be left out`;
    breaches.push({ rule: "EndlessReference", where: `/parameters${circle}`, message });
  }
  return breaches;
};

/** Whether a value that has what holds the subschema has the subschema's part as well. An empty list would end a circle, but providers don't count it. */
const mustBeThere: Passage = ({ required }, { keyword, steps }) =>
  keyword !== "properties" || (Array.isArray(required) && required.includes(String(steps[1])));

const checkName = (property: string, pattern: RegExp, schemaAt: string, breaches: RuleBreach[]): void => {
  if (pattern.test(property)) return;
  const where = pointerTo(pointerTo(schemaAt, "properties"), property);
  breaches.push({ rule: "PropertyName", where, message: `the property ${JSON.stringify(property)} does not match ${pattern.source}` });
};

const lintSchema = (schema: JsonObject, at: string, rules: ProviderRules, breaches: RuleBreach[]): void => {
  if (typeof schema.$ref === "string" && !schema.$ref.startsWith("#")) {
    const message = `the reference ${JSON.stringify(schema.$ref)} leads out of the schema`;
    breaches.push({ rule: "ExternalReference", where: pointerTo(at, "$ref"), message });
  }
  for (const { schema: child, keyword, steps } of childrenOf(schema)) {
    if (keyword === "properties" && rules.propertyPattern) checkName(String(steps.at(-1)), rules.propertyPattern, at, breaches);
    if (isJsonObject(child)) lintSchema(child, steps.reduce<string>(pointerTo, at), rules, breaches);
  }
};
