import type { WitFunction, WitType } from "../../../src/api/wit.ts";

/** Short spellings of WIT for tables. */
export const prim = (
  kind: "bool" | "u8" | "u16" | "u32" | "u64" | "s8" | "s16" | "s32" | "s64" | "f32" | "f64" | "char" | "string",
): WitType => ({ kind });
export const list = (element: WitType, length?: number): WitType =>
  length === undefined ? { kind: "list", element } : { kind: "list", element, length };
export const tuple = (...items: WitType[]): WitType => ({ kind: "tuple", items });
export const option = (some: WitType): WitType => ({ kind: "option", some });
export const result = (ok: WitType | null, err: WitType | null): WitType => ({ kind: "result", ok, err });
export const map = (key: WitType, value: WitType): WitType => ({ kind: "map", key, value });
export const enumeration = (cases: Record<string, string>, docs = ""): WitType => ({ kind: "enum", name: "e", docs, cases: labels(cases) });
export const flags = (names: Record<string, string>, docs = ""): WitType => ({ kind: "flags", name: "f", docs, flags: labels(names) });
export const record = (fields: Record<string, WitType | readonly [WitType, string]>, docs = ""): WitType => ({
  kind: "record",
  name: "r",
  docs,
  fields: Object.entries(fields).map(([name, field]) =>
    "kind" in field ? { name, type: field, docs: "" } : { name, type: field[0], docs: field[1] },
  ),
});
export const variant = (cases: Record<string, WitType | null>, docs = ""): WitType => ({
  kind: "variant",
  name: "v",
  docs,
  cases: Object.entries(cases).map(([name, type]) => ({ name, type, docs: "" })),
});

export const func = (
  name: string,
  params: Record<string, WitType>,
  returns: WitType | null = null,
  more: Partial<WitFunction> = {},
): WitFunction => ({
  interface: "example:tools/things@0.1.0",
  name,
  form: "function",
  async: false,
  params: Object.entries(params).map(([param, type]) => ({ name: param, type })),
  result: returns,
  docs: "",
  ...more,
});

const labels = (named: Record<string, string>) => Object.entries(named).map(([name, docs]) => ({ name, docs }));

/** The function of the mission's example. */
export const listIssues = func(
  "list-issues",
  {
    args: record({
      repo: [prim("string"), "The repository, as owner/name."],
      state: [enumeration({ open: "", closed: "" }), "Which issues to list."],
    }),
  },
  result(list(record({ title: prim("string"), number: prim("u32") })), variant({ "not-found": null, failed: prim("string") })),
  { interface: "example:github/issues@0.1.0", async: true, docs: "List the issues in a repository." },
);
