/**
 * Doc comments by where they stand in WIT, whatever they were read from: our own section, a `package-docs` section, or WIT text.
 *
 *   packages: "example:github@0.1.0" → interfaces: "issues" → functions: "list-issues" → "List the issues in a repository."
 *
 * A comment is trimmed, its lines joined by `\n`. What has no comment has no entry, or an empty string where there is an entry for what is inside it.
 */
export interface WitDocs {
  readonly packages: ReadonlyMap<string, PackageDocs>;
}

export interface PackageDocs {
  readonly docs: string;
  readonly interfaces: ReadonlyMap<string, InterfaceDocs>;
  readonly worlds: ReadonlyMap<string, WorldDocs>;
}

export interface InterfaceDocs {
  readonly docs: string;
  readonly functions: ReadonlyMap<string, string>;
  readonly types: ReadonlyMap<string, TypeDocs>;
}

/** `interfaces` are those that a world exports in place, under a plain name; `functions` those that it exports itself. */
export interface WorldDocs extends InterfaceDocs {
  readonly interfaces: ReadonlyMap<string, InterfaceDocs>;
}

/** `members` are fields, cases or flags. */
export interface TypeDocs {
  readonly docs: string;
  readonly members: ReadonlyMap<string, string>;
}

/** `example:github/issues@0.1.0` as its package, `example:github@0.1.0`, and the name in it; null for a name that is no interface id. */
export const splitInterfaceId = (id: string): { readonly package: string; readonly name: string } | null => {
  const match = /^([^/@]+)\/([^@]+)(@.+)?$/.exec(id);
  if (!match?.[1] || !match[2]) return null;
  return { package: match[1] + (match[3] ?? ""), name: match[2] };
};
