// Made from the component by `npm run build:examples`: the types with which TypeScript calls it.
// biome-ignore-all format: as the generator writes it
// biome-ignore-all lint: as the generator writes it
// biome-ignore-all assist: as the generator writes it
/** @module Interface ambit:github/repositories@0.1.0 **/
export function listIssues(args: ListIssuesArgs): Array<Issue>;
export function getIssue(args: GetIssueArgs): IssueDetail;
export function getPull(args: GetPullArgs): Pull;
export function readFile(args: ReadFileArgs): FileText;
/**
 * # Variants
 * 
 * ## `"open"`
 * 
 * ## `"closed"`
 */
export type IssueState = 'open' | 'closed';
export interface ListIssuesArgs {
  repo: string,
  state: IssueState,
  labels?: Array<string>,
  page?: number,
}
export interface Issue {
  number: number,
  title: string,
  author?: string,
  labels: Array<string>,
  comments: number,
  updated: string,
}
export interface GetIssueArgs {
  repo: string,
  number: number,
}
export interface Comment {
  author?: string,
  created: string,
  text: string,
}
export interface IssueDetail {
  number: number,
  title: string,
  state: string,
  author?: string,
  labels: Array<string>,
  created: string,
  text: string,
  comments: Array<Comment>,
  commentCount: number,
}
export interface GetPullArgs {
  repo: string,
  number: number,
}
export interface ChangedFile {
  path: string,
  status: string,
  additions: number,
  deletions: number,
}
export interface Pull {
  number: number,
  title: string,
  state: string,
  author?: string,
  base: string,
  head: string,
  text: string,
  additions: number,
  deletions: number,
  files: Array<ChangedFile>,
  fileCount: number,
}
export interface ReadFileArgs {
  repo: string,
  path: string,
  ref?: string,
}
export interface FileText {
  text: string,
  truncated: boolean,
}
export type Error = ErrorInvalid | ErrorNotFound | ErrorRateLimited | ErrorDenied | ErrorUnavailable;
export interface ErrorInvalid {
  tag: 'invalid',
  val: string,
}
export interface ErrorNotFound {
  tag: 'not-found',
  val: string,
}
export interface ErrorRateLimited {
  tag: 'rate-limited',
  val: string,
}
export interface ErrorDenied {
  tag: 'denied',
  val: string,
}
export interface ErrorUnavailable {
  tag: 'unavailable',
  val: string,
}
