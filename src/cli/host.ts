import { readFileSync } from "node:fs";
import { messageOf, Stalled } from "../api/errors.ts";
import type { HostConfig } from "../api/host.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../host/node-arguments.ts";
import { podUidVariable } from "../host/pod-uid.ts";

/**
 * Becomes a host: the process is replaced by Node under the host's flags, which can only be given at its start, and keeps its id, so that a container has one process and
 * its signals reach it. Returns only by throwing: `Stalled` (`HostConfigUnreadable`, `NotReplaceable`).
 */
export const host = (configFile: string): never => {
  const config = readConfig(configFile);
  const podUid = process.env[podUidVariable];
  const environment = { ...hostEnvironment(config), ...(podUid === undefined ? {} : { [podUidVariable]: podUid }) };
  const flags = [...hostArguments(config), `--allow-fs-read=${configFile}`];
  if (process.execve === undefined)
    throw new Stalled("NotReplaceable", "this system can't replace a process by another: run the host in a container of Linux");
  return process.execve(process.execPath, [process.execPath, ...flags, hostEntry, configFile], environment);
};

const readConfig = (file: string): HostConfig => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as HostConfig;
  } catch (error) {
    throw new Stalled("HostConfigUnreadable", `the host's configuration can't be read from ${file}: ${messageOf(error)}`, { cause: error });
  }
};
