/**
 * Something about a manifest that a person should know. An `error` keeps the object from being used; a `notice` does not.
 *
 *   { file: "tools/github.yaml", line: 12, column: 9, path: "/spec/components/0/image", code: "RuleBroken", severity: "error", message: "every image…" }
 *
 * `path` is the JSON Pointer in the object, line and column count from 1. Codes are listed in docs/spec/workload.md.
 */
export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly code: string;
  readonly severity: "error" | "notice";
  readonly message: string;
}

/** A problem before it is known where in which file it stands. */
export interface Finding {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** `tools/github.yaml:12:9: every image needs a digest … (/spec/components/0/image) [RuleBroken]` */
export const problemText = ({ file, line, column, path, code, message }: Problem): string =>
  `${file}:${line}:${column}: ${message}${path === "" ? "" : ` (${path})`} [${code}]`;
