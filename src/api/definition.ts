import type { Sha256Digest } from "./digest.ts";

/**
 * Which tool of which component: a function, whose `interface` is the full export id with its version, null for one of the world itself, or a tool that the
 * component lists under the name `tool`.
 */
export type ToolIdentity = {
  readonly workload: string;
  readonly component: string;
} & ({ readonly interface: string | null; readonly function: string } | { readonly tool: string });

/** `v1:sha256:…`: what the far side says of a tool, in the encoding that the prefix names (docs/review.md). */
export type DefinitionDigest = `v1:${Sha256Digest}`;

/**
 * What a tool may touch, in words that a reviewer reads. Each list is sorted and without duplicates.
 *
 *   { "hosts": ["api.github.com"], "volumes": ["docs:/docs:ro"], "secrets": [], "imports": ["wasi:http/outgoing-handler@0.2.6"] }
 *
 * A volume is `name:mountPath:ro` or `:rw`, `name=claim:mountPath:ro` where it comes from a claim; a secret is the name of what the environment takes from it.
 */
export interface Reach {
  readonly hosts: readonly string[];
  readonly volumes: readonly string[];
  readonly secrets: readonly string[];
  readonly imports: readonly string[];
}
