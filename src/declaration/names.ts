import { Invalid } from "../api/errors.ts";
import type { WitFunction } from "../api/wit.ts";

/** What every provider accepts as a tool's name (docs/translation.md, Names). */
const safeName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/;

/** A WIT name as the property of a JSON object: `list-issues` → `list_issues`, `get-URL` → `get_URL`. */
export const propertyName = (witName: string): string => witName.replaceAll("-", "_");

/** The WIT name that a property stands for; null where it stands for none. WIT names have no underscores, so there is one at most. */
export const witNameOf = (property: string): string | null => (property.includes("-") ? null : property.replaceAll("_", "-"));

/** What is named: a function, or (`untyped`) a tool whose far side named it for models already. */
export type Named = Pick<WitFunction, "name"> & { readonly form?: WitFunction["form"] | "untyped" };

/** The name that a tool is drafted under when nothing else wants it. Not checked: see `nameProblem`. */
export const toolName = ({ name, form }: Named): string => (form === "untyped" ? name : propertyName(name));

/** Why `name` can't be a tool's name, in words; null if it can. */
export const nameProblem = (name: string): string | null => {
  if (safeName.test(name)) return null;
  if (name.length > 64) return `the name "${name.slice(0, 64)}…" has ${name.length} characters, more than the 64 that every provider takes`;
  return `the name ${JSON.stringify(name)} is not letters, digits, "_" and "-" after a letter or "_"`;
};

/** The name of an interface without its package and version: `example:github/issues@0.1.0` → `issues`. */
export const interfaceName = (id: string): string => id.replace(/@.*$/, "").replace(/^.*[/:]/, "");

/** A drafted name, or why a person has to choose one. `code` is `NameClash` or `NameUnusable`. */
export type DraftName = { readonly name: string } | { readonly name: null; readonly code: string; readonly message: string };

/**
 * Names for all offered functions of one workload, none twice. A function whose name another one wants as well is named
 * `<interface>_<function>`; where that is taken too, or a name is one that a provider refuses, a person must choose: no name is cut or numbered.
 *
 * The answer depends on the set of functions, not on their order.
 */
export const draftNames = <F extends Named & Pick<WitFunction, "interface">>(functions: Iterable<F>): Map<F, DraftName> => {
  const all = [...functions];
  const plain = countBy(all, toolName);
  const wanted = (fn: F): string =>
    (plain.get(toolName(fn)) ?? 0) > 1 && fn.interface !== null
      ? `${propertyName(interfaceName(fn.interface))}_${toolName(fn)}`
      : toolName(fn);
  const claims = countBy(all, wanted);
  return new Map(all.map((fn) => [fn, draftName(wanted(fn), claims.get(wanted(fn)) ?? 0)]));
};

const draftName = (name: string, claims: number): DraftName => {
  const problem = nameProblem(name);
  if (problem) return { name: null, code: "NameUnusable", message: `${problem}; choose another in the grant` };
  if (claims > 1) {
    return {
      name: null,
      code: "NameClash",
      message: `${claims} functions of this workload would be called "${name}"; choose a name in the grant`,
    };
  }
  return { name };
};

const countBy = <T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
};

/** Throws `Invalid` with code `NameUnusable` unless every provider takes `name`. */
export const assertToolName = (name: string): void => {
  const problem = nameProblem(name);
  if (problem) throw new Invalid("NameUnusable", problem);
};
