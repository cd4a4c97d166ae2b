import { hash } from "node:crypto";

/** `sha256:` and 64 lower-case hexadecimal digits, as OCI spells content digests. */
export type Sha256Digest = `sha256:${string}`;

const sha256Pattern = /^sha256:[0-9a-f]{64}$/;

export const isSha256Digest = (text: string): text is Sha256Digest => sha256Pattern.test(text);

export const sha256Of = (content: Uint8Array | string): Sha256Digest => `sha256:${hash("sha256", content, "hex")}`;
