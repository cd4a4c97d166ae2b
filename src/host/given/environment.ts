import type { HostConfig } from "../../api/host.ts";
import { folderStamp, readGivenFolder } from "./folder.ts";
import { type GivenVariables, givenVariables } from "./variables.ts";

/** The variables of one instance. */
export interface GuestEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** Whether a new instance would get the same. */
  readonly isCurrent: () => boolean;
}

interface ReadFolders extends GivenVariables {
  readonly stamp: string;
}

/**
 * What the guests of one host find in their environment: what is configured, and above it what lies in folders now. Folders are read again when they have changed, which is looked up for each
 * instance and each call. What was read stays in this thread.
 */
export class GuestEnvironments {
  readonly #configured: HostConfig["environment"];
  readonly #folders: NonNullable<HostConfig["secretFolders"]>;
  #read: ReadFolders | undefined;

  constructor({ environment, secretFolders = [] }: Pick<HostConfig, "environment" | "secretFolders">) {
    this.#configured = environment;
    this.#folders = secretFolders;
  }

  /** Throws `Transient` (`GivenFolderUnreadable`). */
  now(): GuestEnvironment {
    if (this.#folders.length === 0) return { variables: this.#configured, isCurrent: () => true };
    const { stamp, variables } = this.#current();
    return { variables: { ...this.#configured, ...variables }, isCurrent: () => this.#stamp() === stamp };
  }

  /** What of the folders becomes no variable, and why; no value is in it. */
  leftOut(): readonly string[] {
    return this.#current().leftOut;
  }

  #current(): ReadFolders {
    if (this.#read === undefined || this.#stamp() !== this.#read.stamp) {
      const read = this.#folders.map((given) => ({ given, ...readGivenFolder(given) }));
      const folders = read.map(({ given: { name, as }, files }) => ({ name, as, files }));
      this.#read = { stamp: joinedStamps(read.map(({ stamp }) => stamp)), ...givenVariables(folders) };
    }
    return this.#read;
  }

  /** Null where a folder can't be read: nothing is current then. */
  #stamp(): string | null {
    try {
      return joinedStamps(this.#folders.map(folderStamp));
    } catch {
      // Whoever needs what is in it reads it, and says why it can't be read.
      return null;
    }
  }
}

const joinedStamps = (stamps: readonly string[]): string => JSON.stringify(stamps);
