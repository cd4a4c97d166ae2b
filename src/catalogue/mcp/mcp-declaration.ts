import type { Declaration } from "../../api/declaration.ts";
import type { JsonObject } from "../../api/json.ts";
import { outputSchema } from "../../declaration/schema.ts";
import type { Offer } from "../offers.ts";
import type { LiveGrant } from "../state.ts";

/** The reviewed words, the shape of what the tool answers, and hints that follow from the review: nothing that the far side says of itself. */
export const mcpDeclaration = ({ declaration, grant }: Offer): Declaration => {
  const output = outputSchema(grant.fn);
  return { ...declaration, ...(output && { outputSchema: output }), annotations: annotationsOf(grant) };
};

/** A tool without hosts touches nothing outside of its sandbox and its folders. */
const annotationsOf = ({ spec }: LiveGrant): JsonObject => {
  const mutates = spec.mutates ?? true;
  return { readOnlyHint: !mutates, destructiveHint: mutates, openWorldHint: (spec.review?.reach.hosts ?? []).length > 0 };
};
