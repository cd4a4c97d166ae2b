import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Invalid, messageOf } from "../api/errors.ts";
import { anonymous, parseDockerConfig, type RegistryCredentials } from "./docker-config.ts";

/** Where Docker's clients keep their configuration: in `$DOCKER_CONFIG`, or else in `.docker` of the home folder. */
export const dockerConfigPath = (environment: Readonly<Record<string, string | undefined>>, home: string): string =>
  join(environment.DOCKER_CONFIG || join(home, ".docker"), "config.json");

/** Credentials from a Docker configuration file; a file that is not there has none. Throws `Invalid` with code `DockerConfigInvalid`. */
export const readDockerConfig = async (path: string): Promise<RegistryCredentials> => {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : "";
    if (code === "ENOENT" || code === "ENOTDIR") return anonymous;
    throw new Invalid("DockerConfigInvalid", `${path} cannot be read: ${messageOf(thrown)}`, undefined, { cause: thrown });
  }
  return parseDockerConfig(text);
};
