import type { ComponentInterface } from "../api/wit.ts";
import { describeComponent } from "./describe.ts";
import { evaluateComponent } from "./evaluate.ts";
import { type DecodeLimits, defaultDecodeLimits } from "./limits.ts";
import { parseComponent } from "./parse-component.ts";

/**
 * Reads what a component's binary says of itself: its imports, its exports, and every exported function with full types and docs
 * (docs/reading-components.md).
 *
 * Hostile input is expected. Throws `Invalid`, `at` a byte offset such as `0x1a2b`, with code `NotWasm`, `CoreModule` (a module, not a component),
 * `ComponentMalformed`, `ComponentTooLarge`, `ComponentTooDeep`, `ComponentUnsupported` (valid, but nothing that a runtime here could run) or
 * `DocsMalformed`.
 *
 * A binary that decodes need not be valid in every respect: the runtime validates it whole before it runs.
 */
export const decodeComponent = (bytes: Uint8Array, limits: DecodeLimits = defaultDecodeLimits): ComponentInterface => {
  const { body } = parseComponent(bytes, limits);
  return describeComponent(evaluateComponent(body, limits));
};
