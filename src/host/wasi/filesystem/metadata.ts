import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { type Datetime, datetimeOf } from "../clocks.ts";

export type DescriptorType =
  | "unknown"
  | "block-device"
  | "character-device"
  | "directory"
  | "fifo"
  | "symbolic-link"
  | "regular-file"
  | "socket";

export interface DescriptorStat {
  readonly type: DescriptorType;
  readonly linkCount: bigint;
  readonly size: bigint;
  readonly dataAccessTimestamp: Datetime;
  readonly dataModificationTimestamp: Datetime;
  readonly statusChangeTimestamp: Datetime;
}

type Kinds = Pick<BigIntStats, "isFile" | "isDirectory" | "isSymbolicLink" | "isFIFO" | "isSocket" | "isBlockDevice" | "isCharacterDevice">;

export const typeOf = (entry: Kinds): DescriptorType => {
  if (entry.isFile()) return "regular-file";
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symbolic-link";
  if (entry.isFIFO()) return "fifo";
  if (entry.isSocket()) return "socket";
  if (entry.isBlockDevice()) return "block-device";
  return entry.isCharacterDevice() ? "character-device" : "unknown";
};

export const statOf = (stats: BigIntStats): DescriptorStat => ({
  type: typeOf(stats),
  linkCount: stats.nlink,
  size: stats.size,
  dataAccessTimestamp: timeOf(stats.atimeNs),
  dataModificationTimestamp: timeOf(stats.mtimeNs),
  statusChangeTimestamp: timeOf(stats.ctimeNs),
});

/** A time before 1970 cannot be said in `datetime`. */
const timeOf = (nanoseconds: bigint): Datetime => datetimeOf(nanoseconds < 0n ? 0n : nanoseconds);

/** Tells files and their versions apart without saying which inode of which device they are. */
export const metadataHash = (stats: BigIntStats): { readonly lower: bigint; readonly upper: bigint } => {
  const hash = createHash("sha256").update(`${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`).digest();
  return { lower: hash.readBigUInt64LE(0), upper: hash.readBigUInt64LE(8) };
};
