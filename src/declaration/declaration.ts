import type { Declaration } from "../api/declaration.ts";
import type { WitFunction } from "../api/wit.ts";
import { toolName } from "./names.ts";
import { parametersSchema } from "./schema.ts";

/**
 * What a draft of this function tells the model: its own comment and types, under its own name unless another is given.
 *
 * A draft only: nothing of it may reach a model before a person approved it. Throws as `parametersSchema` does.
 */
export const declarationOf = (fn: WitFunction, name: string = toolName(fn)): Declaration => ({
  name,
  description: fn.docs,
  parameters: parametersSchema(fn),
});
