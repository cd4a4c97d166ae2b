import { sha256Of } from "../api/digest.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import { definitionText, digestOfDefinitionText } from "./definition.ts";
import { grantText } from "./grant-digest.ts";

/**
 * What was reviewed, kept beside the review so that a later difference can be shown in words. Nothing is decided by these texts: only the digests in the
 * review count, and a text that doesn't hash to its digest is not shown.
 */
const definitionAnnotation = "ambit.dev/reviewed-definition";
const grantAnnotation = "ambit.dev/reviewed-grant";

/** All annotations of an object together may have 256 KiB. */
const longestText = 64 * 1024;

/** The annotations that a review of this grant leaves; a text too long to keep leaves none. */
export const reviewedTextAnnotations = (grant: ToolGrant, fn: ToolDefinition): Record<string, string> => {
  const { [definitionAnnotation]: _, [grantAnnotation]: __, ...others } = grant.metadata.annotations ?? {};
  const definition = definitionText(fn);
  const decided = grantText(grant.spec);
  return {
    ...others,
    ...(definition.length <= longestText ? { [definitionAnnotation]: definition } : {}),
    ...(decided.length <= longestText ? { [grantAnnotation]: decided } : {}),
  };
};

/** The definition's text that was reviewed, if it was kept and is that text. */
export const reviewedDefinition = (grant: ToolGrant): string | null => {
  const text = keptText(grant, definitionAnnotation);
  return text !== null && digestOfDefinitionText(text) === grant.spec.review?.definition ? text : null;
};

/** The grant's text that was reviewed, if it was kept and is that text. */
export const reviewedGrant = (grant: ToolGrant): string | null => {
  const text = keptText(grant, grantAnnotation);
  return text !== null && sha256Of(text) === grant.spec.review?.grant ? text : null;
};

const keptText = (grant: ToolGrant, annotation: string): string | null => {
  const text = grant.metadata.annotations?.[annotation];
  return text === undefined || text.length > longestText ? null : text;
};
