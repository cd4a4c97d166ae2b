import { homedir } from "node:os";
import { join } from "node:path";

/** Where the built tools are kept, outside of the checkout and shared by all checkouts; each build has a folder of its own in it. */
export const buildCache = (): string =>
  process.env.AMBIT_BUILD_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ambit", "cluster");

/** Where one node keeps what it has while it runs. Everything in these folders goes with the node. */
export interface NodePlaces {
  /** Names the network namespaces and the control groups: `ambit-NAME`. */
  readonly name: string;
  /** Images, volumes, etcd's files, credentials, logs. Not on an overlay file system if that can be helped. */
  readonly state: string;
  /** Sockets and pid files. Short, since a socket's path may have 107 bytes only. */
  readonly run: string;
}

/** A name that fits all that is named after it, or an error that says which names do. */
export const nodePlaces = (name: string): NodePlaces => {
  if (!/^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$/.test(name))
    throw new Error(`"${name}" can't name a cluster: lower case letters, digits and dashes, at most 20`);
  return { name: `ambit-${name}`, state: join(buildCache(), "nodes", name), run: `/run/ambit-${name}` };
};

/** The node that commands and suites mean where none is named. */
export const defaultNodeName = (): string => process.env.AMBIT_CLUSTER_NAME || "test";
