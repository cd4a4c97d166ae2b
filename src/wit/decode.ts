import type { ComponentInterface, WitType } from "../api/wit.ts";
import { describeComponent } from "./describe.ts";
import { type InterfaceDocs, type PackageDocs, splitInterfaceId, type WitDocs } from "./docs.ts";
import { decodeDocs, decodePackageDocs } from "./docs-section.ts";
import { evaluateComponent } from "./evaluate.ts";
import { type DecodeLimits, defaultDecodeLimits } from "./limits.ts";
import { parseComponent } from "./parse-component.ts";
import type { ComponentSyntax } from "./syntax.ts";
import { partsOf } from "./type-parts.ts";
import { withDocs } from "./with-docs.ts";

/**
 * Reads what a component's binary says of itself: its imports, its exports, and every exported function with full types and docs
 * (docs/reading-components.md). Docs come from its section `ambit-docs`, and where that has none from a section `package-docs`.
 *
 * Hostile input is expected. Throws `Invalid`, `at` a byte offset such as `0x1a2b`, with code `NotWasm`, `CoreModule` (a module, not a component),
 * `ComponentMalformed`, `ComponentTooLarge`, `ComponentTooDeep`, `ComponentUnsupported` (valid, but nothing that a runtime here could run) or
 * `DocsMalformed`.
 *
 * A binary that decodes need not be valid in every respect: the runtime validates it whole before it runs.
 */
export const decodeComponent = (bytes: Uint8Array, limits: DecodeLimits = defaultDecodeLimits): ComponentInterface => {
  const syntax = parseComponent(bytes, limits);
  const bare = describeComponent(evaluateComponent(syntax.body, limits), syntax.isAsynchronous, limits);
  const own = withOwnDocs(bare, syntax, limits);
  return withPackageDocs(own, syntax, limits);
};

/** The last section of a name counts: tools that add one append it. */
const sectionNamed = (syntax: ComponentSyntax, name: string) => syntax.docsSections.findLast((section) => section.name === name);

const withOwnDocs = (component: ComponentInterface, syntax: ComponentSyntax, limits: DecodeLimits): ComponentInterface => {
  const section = sectionNamed(syntax, "ambit-docs");
  return section ? withDocs(component, decodeDocs(section.content, section.at, limits), "ambit-docs") : component;
};

const withPackageDocs = (component: ComponentInterface, syntax: ComponentSyntax, limits: DecodeLimits): ComponentInterface => {
  const section = sectionNamed(syntax, "package-docs");
  if (!section) return component;
  const docs = decodePackageDocs(section.content, section.at, limits);
  return withDocs(component, placed(docs, interfaceIdsOf(component)), "package-docs");
};

/** Such a section names interfaces without their package: one is meant only where a single interface of the component has that name. */
const placed = (docs: PackageDocs, ids: ReadonlySet<string>): WitDocs => {
  const packages = new Map<string, { docs: string; interfaces: Map<string, InterfaceDocs>; worlds: PackageDocs["worlds"] }>();
  const places = Map.groupBy(
    [...ids].flatMap((id) => splitInterfaceId(id) ?? []),
    (place) => place.name,
  );
  // Worlds are matched by what they export, whatever their package.
  packages.set("", { docs: docs.docs, interfaces: new Map(), worlds: docs.worlds });
  for (const [name, interfaceDocs] of docs.interfaces) {
    const [place, ...others] = places.get(name) ?? [];
    if (!place || others.length > 0) continue;
    const known = packages.get(place.package) ?? { docs: docs.docs, interfaces: new Map(), worlds: new Map() };
    known.interfaces.set(name, interfaceDocs);
    packages.set(place.package, known);
  }
  return { packages };
};

/** Ids of the interfaces that export a function or define a type that one uses. */
const interfaceIdsOf = (component: ComponentInterface): Set<string> => {
  const ids = new Set<string>();
  const seen = new Set<WitType>();
  const visit = (type: WitType | null): void => {
    if (!type || seen.has(type)) return;
    seen.add(type);
    for (const name of type.names ?? []) if (name.interface !== null) ids.add(name.interface);
    for (const part of partsOf(type)) visit(part.type);
  };
  for (const fn of component.functions) {
    if (fn.interface !== null) ids.add(fn.interface);
    for (const param of fn.params) visit(param.type);
    visit(fn.result);
  }
  return ids;
};
