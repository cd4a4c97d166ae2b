import { type JsonValue, parseJson } from "../api/json.ts";

/** A number that a double may not hold exactly has as many digits in a row, with a point or without. */
const manyDigits = /[0-9][0-9.]{15}/;

/** No list page and no object comes near it; an API server that sends more is not one. */
const maxDepth = 512;

/**
 * JSON from an API server, exact: integers beyond 2^53, which the schemas in a ToolGrant may hold, are `bigint`. The fast parser of the platform reads
 * everything that has no long number. Throws `Invalid` or `SyntaxError`.
 */
export const parseClusterJson = (text: string): unknown =>
  manyDigits.test(text) ? parseJson(text, { maxLength: text.length, maxDepth }) : (JSON.parse(text) as JsonValue);
