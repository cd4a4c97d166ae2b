/** What Ambit reads of an object's metadata; everything else a server or a person put there is kept as it is. */
export interface ObjectMeta {
  readonly name: string;
  /** Without one, the namespace `default`. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly generation?: number;
  readonly resourceVersion?: string;
  readonly uid?: string;
}
