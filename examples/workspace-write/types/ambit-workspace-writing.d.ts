// Made from the component by `npm run build:examples`: the types with which TypeScript calls it.
// biome-ignore-all format: as the generator writes it
// biome-ignore-all lint: as the generator writes it
// biome-ignore-all assist: as the generator writes it
/** @module Interface ambit:workspace/writing@0.1.0 **/
export function write(args: WriteArgs): Written;
export function edit(args: EditArgs): Edited;
export function move(args: MoveArgs): void;
export { _delete as delete };
function _delete(args: DeleteArgs): Deleted;
export interface WriteArgs {
  path: string,
  text: string,
  overwrite?: boolean,
}
export interface Written {
  bytes: bigint,
  created: boolean,
}
export interface EditArgs {
  path: string,
  oldText: string,
  newText: string,
  all?: boolean,
}
export interface Edited {
  replaced: number,
  firstLine: number,
}
export interface MoveArgs {
  source: string,
  destination: string,
  overwrite?: boolean,
}
export interface DeleteArgs {
  path: string,
  recursive?: boolean,
}
export interface Deleted {
  count: number,
}
