import type { Declaration } from "../api/declaration.ts";
import { isJsonObject, type JsonObject, pointerTo } from "../api/json.ts";
import type { ProviderFormat } from "./formats.ts";
import { childrenOf } from "./subschemas.ts";

/** A rule of a provider's API that a declaration breaks: sent all the same, it would make the provider refuse the whole request. */
export interface RuleBreach {
  /** Stable: `NamePattern`, `RootType`, `RootKeyword`, `PropertyName`, `DescriptionTooLong`, `ExternalReference`, `DuplicateName`, `TooManyTools`. */
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
  readonly propertyPattern: RegExp | null;
  readonly refusedAtRoot: readonly string[];
  /** UTF-16 code units; null where none is known. */
  readonly longestDescription: number | null;
  readonly mostTools: number | null;
}

const openAi: ProviderRules = {
  namePattern: /^[a-zA-Z0-9_-]{1,64}$/,
  propertyPattern: null,
  refusedAtRoot: ["oneOf", "anyOf", "allOf", "enum", "not"],
  longestDescription: 1024,
  mostTools: 128,
};

export const providerRules: Readonly<Record<ProviderFormat, ProviderRules>> = {
  anthropic: {
    namePattern: /^[a-zA-Z0-9_-]{1,64}$/,
    propertyPattern: /^[a-zA-Z0-9_.-]{1,64}$/,
    refusedAtRoot: ["oneOf", "anyOf", "allOf"],
    longestDescription: null,
    mostTools: null,
  },
  "openai-chat": openAi,
  "openai-responses": openAi,
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
  for (const keyword of rules.refusedAtRoot) {
    if (parameters[keyword] === undefined) continue;
    breaches.push({
      rule: "RootKeyword",
      where: `/parameters/${keyword}`,
      message: `${provider} takes no ${keyword} at the schema's root`,
    });
  }
  lintSchema(parameters, "/parameters", rules, breaches);
  return breaches;
};

const lintSchema = (schema: JsonObject, at: string, rules: ProviderRules, breaches: RuleBreach[]): void => {
  if (typeof schema.$ref === "string" && !schema.$ref.startsWith("#")) {
    const message = `the reference ${JSON.stringify(schema.$ref)} leads out of the schema`;
    breaches.push({ rule: "ExternalReference", where: pointerTo(at, "$ref"), message });
  }
  for (const { schema: child, keyword, steps } of childrenOf(schema)) {
    const where = steps.reduce<string>(pointerTo, at);
    const name = String(steps.at(-1));
    if (keyword === "properties" && rules.propertyPattern && !rules.propertyPattern.test(name)) {
      const message = `the property ${JSON.stringify(name)} does not match ${rules.propertyPattern.source}`;
      breaches.push({ rule: "PropertyName", where, message });
    }
    if (isJsonObject(child)) lintSchema(child, where, rules, breaches);
  }
};
