import { pointerTo } from "../api/json.ts";

/** Where a walk is, cheap to extend and written out only when something is wrong. The root is null. */
export type Path = { readonly up: Path; readonly key: string | number } | null;

/** The JSON pointer (RFC 6901) of a place. */
export const pointerOf = (path: Path): string => (path === null ? "" : pointerTo(pointerOf(path.up), path.key));
