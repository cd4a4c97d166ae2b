import type { HostMount } from "../../../api/host.ts";

/**
 * What the process's permissions must allow so that these mounts can be used: their folders, and `/proc/self/fd`, by which entries are found relative to a
 * folder that is held open. What lies under it are only descriptors that the process already has.
 */
export const pathsForMounts = (mounts: readonly HostMount[]): { readonly read: readonly string[]; readonly write: readonly string[] } => {
  const writable = mounts.filter(({ readOnly }) => !readOnly);
  const held = ["/proc/self/fd"];
  return {
    read: mounts.length === 0 ? [] : [...mounts.map(({ folder }) => folder), ...held],
    write: writable.length === 0 ? [] : [...writable.map(({ folder }) => folder), ...held],
  };
};
