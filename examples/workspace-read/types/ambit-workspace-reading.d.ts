// Made from the component by `npm run build:examples`: the types with which TypeScript calls it.
// biome-ignore-all format: as the generator writes it
// biome-ignore-all lint: as the generator writes it
// biome-ignore-all assist: as the generator writes it
/** @module Interface ambit:workspace/reading@0.1.0 **/
export function search(args: SearchArgs): SearchResult;
export function find(args: FindArgs): FindResult;
export function read(args: ReadArgs): FileText;
export function list(args: ListArgs): Array<Entry>;
export function compare(args: CompareArgs): Comparison;
export interface SearchArgs {
  pattern: string,
  path?: string,
  glob?: string,
  ignoreCase?: boolean,
  limit?: number,
}
export interface Line {
  number: number,
  text: string,
}
export interface FileMatches {
  path: string,
  lines: Array<Line>,
}
export interface SearchResult {
  files: Array<FileMatches>,
  truncated: boolean,
}
export interface FindArgs {
  glob: string,
  path?: string,
  limit?: number,
}
export interface FindResult {
  paths: Array<string>,
  truncated: boolean,
}
export interface ReadArgs {
  path: string,
  startLine?: number,
  lineCount?: number,
}
export interface FileText {
  text: string,
  startLine: number,
  totalLines: number,
  truncated: boolean,
}
/**
 * # Variants
 * 
 * ## `"file"`
 * 
 * ## `"folder"`
 * 
 * ## `"symlink"`
 * 
 * ## `"other"`
 */
export type EntryKind = 'file' | 'folder' | 'symlink' | 'other';
export interface Entry {
  name: string,
  kind: EntryKind,
  size?: bigint,
}
export interface ListArgs {
  path?: string,
}
export interface CompareArgs {
  oldPath: string,
  newPath: string,
}
export interface Comparison {
  same: boolean,
  diff: string,
}
