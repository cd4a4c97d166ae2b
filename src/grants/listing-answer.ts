import { isSha256Digest, type Sha256Digest } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { ToolListing } from "../api/untyped.ts";
import { readListing } from "./listing.ts";

/** A host's answer to who asks for its component's tools; `listing` is null where it is the one that was known, or there is none. */
export interface HostListing {
  readonly digest: Sha256Digest | null;
  readonly listing: ToolListing | null;
  readonly fault: { readonly code: string; readonly message: string } | null;
}

/** More than a host's own bound on what a component may list comes to in JSON. */
const longestAnswer = 32 * 1024 * 1024;
const deepestAnswer = 72;
const longestMessage = 1024;

/** Throws `Invalid` (`ListingMalformed`, `ListingTooLarge`, `Json…`). */
export const readListingAnswer = (text: string): HostListing => {
  const answer = parseJson(text, { maxLength: longestAnswer, maxDepth: deepestAnswer });
  if (!isJsonObject(answer)) throw malformed();
  const { digest = null, listing = null } = answer;
  if (digest !== null && (typeof digest !== "string" || !isSha256Digest(digest))) throw malformed();
  return { digest, listing: listing === null ? null : readListing(listing), fault: faultIn(answer.fault) };
};

const faultIn = (fault: JsonValue | undefined): HostListing["fault"] => {
  if (!isJsonObject(fault)) return null;
  const { code, message } = fault;
  if (typeof code !== "string" || typeof message !== "string") throw malformed();
  return { code: code.slice(0, longestMessage), message: message.slice(0, longestMessage) };
};

const malformed = (): Invalid => new Invalid("ListingMalformed", "what the host gave is no answer about its tools");
