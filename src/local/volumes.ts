import { mkdir, mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Invalid, Stalled } from "../api/errors.ts";
import type { HostMount } from "../api/host.ts";
import type { DesiredMount } from "./desired.ts";

/**
 * Folders of this machine that stand in for volumes: a claim is the folder that the command line binds to it, or one of its own below the state folder; an
 * ephemeral volume is a new folder that is removed with the runtime.
 */
export class LocalVolumes {
  readonly #claims: ReadonlyMap<string, string>;
  readonly #stateFolder: string;
  readonly #made: string[] = [];

  constructor(claims: ReadonlyMap<string, string>, stateFolder: string) {
    this.#claims = claims;
    this.#stateFolder = stateFolder;
  }

  /** Throws `Stalled` `VolumeMissing` where a bound folder is not there. `made` hears of folders made for claims that nothing was bound to. */
  async mount(namespace: string, mounts: readonly DesiredMount[], made: (claim: string, folder: string) => void): Promise<HostMount[]> {
    return Promise.all(
      mounts.map(async ({ name, mountPath, readOnly, claim }) => ({
        name,
        mountPath,
        readOnly,
        folder: claim === null ? await this.#ephemeral(name) : await this.#claim(namespace, claim, made),
      })),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#made.map((folder) => rm(folder, { recursive: true, force: true })));
  }

  async #ephemeral(name: string): Promise<string> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), `ambit-${name}-`)));
    this.#made.push(folder);
    return folder;
  }

  async #claim(namespace: string, claim: string, made: (claim: string, folder: string) => void): Promise<string> {
    const bound = this.#claims.get(claim);
    if (bound === undefined) {
      const folder = join(this.#stateFolder, "volumes", namespace, claim);
      if ((await mkdir(folder, { recursive: true })) !== undefined) made(claim, folder);
      return realpath(folder);
    }
    const found = await stat(bound).catch((cause: unknown) => {
      throw new Stalled("VolumeMissing", `the folder ${bound} for the claim ${claim} is not there`, { cause });
    });
    if (!found.isDirectory()) throw new Stalled("VolumeMissing", `${bound}, given for the claim ${claim}, is no folder`);
    return realpath(bound);
  }
}

/** Reads `claim=folder` pairs of a command line. Throws `Invalid` `VolumeOptionInvalid`. */
export const claimFolders = (pairs: readonly string[], resolve: (folder: string) => string): Map<string, string> =>
  new Map(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1 || at === pair.length - 1)
        throw new Invalid("VolumeOptionInvalid", `--volume takes claim=folder, not ${JSON.stringify(pair)}`);
      return [pair.slice(0, at), resolve(pair.slice(at + 1))];
    }),
  );
