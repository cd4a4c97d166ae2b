import type { Declaration } from "../api/declaration.ts";
import { type ProviderFormat, providerFormats } from "./formats.ts";
import { lintDeclaration, providerRules, type RuleBreach } from "./provider-rules.ts";

/** A rule that a declaration breaks, and for whom: providers have much in common. */
export interface ProviderFinding extends RuleBreach {
  readonly providers: readonly ProviderFormat[];
}

/** What these providers would refuse of a declaration, each rule and place once, in the order of formats. */
export const providerFindings = (
  declaration: Declaration,
  providers: readonly ProviderFormat[] = providerFormats,
): readonly ProviderFinding[] => {
  const found = new Map<string, ProviderFinding>();
  for (const provider of providers) {
    for (const breach of lintDeclaration(declaration, provider)) {
      const key = `${breach.rule} ${breach.where}`;
      const known = found.get(key);
      found.set(key, { ...(known ?? breach), providers: [...(known?.providers ?? []), provider] });
    }
  }
  return [...found.values()];
};

/** The providers whose lists have no room for so many tools, with how many they take. */
export const crowdedProviders = (
  tools: number,
  providers: readonly ProviderFormat[] = providerFormats,
): readonly { readonly provider: ProviderFormat; readonly most: number }[] =>
  providers.flatMap((provider) => {
    const most = providerRules[provider].mostTools;
    return most !== null && tools > most ? [{ provider, most }] : [];
  });
