// Made from the component by `npm run build:examples`: the types with which TypeScript calls it.
// biome-ignore-all format: as the generator writes it
// biome-ignore-all lint: as the generator writes it
// biome-ignore-all assist: as the generator writes it
/** @module Interface ambit:fetch/web@0.1.0 **/
export function fetch(args: FetchArgs): Page;
/**
 * # Variants
 * 
 * ## `"text"`
 * 
 * ## `"source"`
 */
export type PageForm = 'text' | 'source';
export interface FetchArgs {
  url: string,
  form?: PageForm,
  maxLength?: number,
}
export interface Page {
  url: string,
  title?: string,
  mediaType?: string,
  text: string,
  truncated: boolean,
}
