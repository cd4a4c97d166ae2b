import { isSha256Digest, type Sha256Digest } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";

/** Where a component's bytes are, as `image` of a Workload's component names them. */
export type ImageReference = RegistryReference | FileReference;

/**
 * An artifact in a registry. What is pulled is the digest if there is one; a tag beside it only tells people which release it is.
 *
 *   ghcr.io/example/tools/github:1.2@sha256:…
 *   └registry ┘└──repository───┘ └tag└─digest─
 */
export interface RegistryReference {
  readonly kind: "registry";
  /** Host and, where it is not the scheme's default, port; `docker.io` for names that do not say. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string | null;
  readonly digest: Sha256Digest | null;
}

/** A file on this machine, for development: `file:PATH` or `file:PATH@sha256:…`, where the digest is that of the file's bytes. */
export interface FileReference {
  readonly kind: "file";
  readonly path: string;
  readonly digest: Sha256Digest | null;
}

/** Longest reference accepted, the same as in the Workload's schema. */
const maxReferenceLength = 512;
const maxRepositoryLength = 255;

const hostName = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]{1,5})?$/;
const ipv6Host = /^\[[0-9a-fA-F:.]+\](?::[0-9]{1,5})?$/;
const pathComponent = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

/**
 * Reads a reference in the grammar of the distribution project (`reference` package), with sha256 as the only digest, or a `file:` path. Throws `Invalid` with
 * code `ImageReferenceInvalid`.
 */
export const parseImageReference = (text: string): ImageReference => {
  if (text.length > maxReferenceLength) {
    throw invalid(`${text.slice(0, 60)}…`, `it has ${text.length} characters, more than the ${maxReferenceLength} allowed`);
  }
  if (/^\.{0,2}\//.test(text)) throw invalid(text, `a file is written file:${text}`);
  const [name, digest] = splitDigest(text);
  return name.startsWith("file:") ? fileReference(text, name.slice("file:".length), digest) : registryReference(text, name, digest);
};

/** The reference as text, in full: with its registry, and with the digest if it has one. */
export const formatReference = (reference: ImageReference): string => {
  const digest = reference.digest === null ? "" : `@${reference.digest}`;
  if (reference.kind === "file") return `file:${reference.path}${digest}`;
  const tag = reference.tag === null ? "" : `:${reference.tag}`;
  return `${reference.registry}/${reference.repository}${tag}${digest}`;
};

const splitDigest = (text: string): [string, Sha256Digest | null] => {
  const at = text.lastIndexOf("@");
  if (at === -1) return [text, null];
  const digest = text.slice(at + 1);
  if (!isSha256Digest(digest)) throw invalid(text, "after @ there must be sha256: and 64 lower-case hexadecimal digits");
  return [text.slice(0, at), digest];
};

const fileReference = (text: string, path: string, digest: Sha256Digest | null): FileReference => {
  // file:///x is the absolute path /x; an authority would name another machine.
  const bare = path.startsWith("///") ? path.slice(2) : path;
  if (bare.startsWith("//")) throw invalid(text, "a file: reference names a path on this machine, not a host");
  if (bare === "") throw invalid(text, "a path must follow file:");
  if (bare.includes("\0")) throw invalid(text, "a path has no NUL character");
  return { kind: "file", path: bare, digest };
};

const registryReference = (text: string, name: string, digest: Sha256Digest | null): RegistryReference => {
  const slash = name.indexOf("/");
  const first = slash === -1 ? "" : name.slice(0, slash);
  const namesRegistry = first === "localhost" || /[.:[]/.test(first);
  const registry = namesRegistry ? first : "docker.io";
  const [path, tag] = splitTag(namesRegistry ? name.slice(slash + 1) : name);
  if (!hostName.test(registry) && !ipv6Host.test(registry)) throw invalid(text, `${JSON.stringify(registry)} is no registry host`);
  const port = /:([0-9]+)$/.exec(registry)?.[1];
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) throw invalid(text, `${port} is no port`);
  if (tag !== null && !tagPattern.test(tag)) throw invalid(text, `${JSON.stringify(tag)} is no tag`);
  for (const component of path.split("/")) {
    if (!pathComponent.test(component)) {
      throw invalid(
        text,
        `${JSON.stringify(component)} is no part of a repository name: those are lower-case letters and digits, with . _ - between them`,
      );
    }
  }
  const repository = registry === "docker.io" && !path.includes("/") ? `library/${path}` : path;
  if (repository.length > maxRepositoryLength) throw invalid(text, `the repository name is longer than ${maxRepositoryLength} characters`);
  return { kind: "registry", registry: registry.toLowerCase(), repository, tag, digest };
};

const splitTag = (path: string): [string, string | null] => {
  const colon = path.lastIndexOf(":");
  return colon === -1 ? [path, null] : [path.slice(0, colon), path.slice(colon + 1)];
};

const invalid = (text: string, why: string): Invalid =>
  new Invalid("ImageReferenceInvalid", `the image reference ${JSON.stringify(text)} is wrong: ${why}`);
