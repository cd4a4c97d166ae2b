/**
 * The text of a run of comments. Lines that start with three slashes and blocks that start with a slash and two stars are docs, other comments are
 * not. Indentation that all lines share goes, and with it the stars that stand before each line of a block.
 */
export const cleanDocs = (comments: readonly string[]): string => dedent(comments.flatMap(docLines)).join("\n").trim();

const docLines = (comment: string): string[] => {
  if (comment.startsWith("///")) return comment.startsWith("////") ? [] : [comment.slice(3)];
  if (!comment.startsWith("/**") || comment.startsWith("/***") || comment === "/**/") return [];
  const [first = "", ...rest] = comment.slice(3, -2).split("\n");
  const isStarred = rest.every((line) => /^\s*(\*|$)/.test(line));
  // The first line stands right after the opening mark: how far it is indented says nothing about the others.
  const below = dedent(isStarred ? rest.map((line) => line.replace(/^\s*\*/, "")) : rest);
  return [first.trimStart(), ...below].map((line) => ` ${line}`);
};

const dedent = (lines: readonly string[]): string[] => {
  const trimmed = lines.map((line) => line.trimEnd());
  let shared = Number.MAX_SAFE_INTEGER;
  for (const line of trimmed) {
    if (line !== "") shared = Math.min(shared, line.length - line.trimStart().length);
  }
  return trimmed.map((line) => line.slice(shared));
};
