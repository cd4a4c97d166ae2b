const outsideAlphabet = /[^A-Za-z0-9+/]/;
/** The last character before one or two signs of padding leaves the bits unused that the bytes don't need. */
const lastBeforePadding = ["", "AEIMQUYcgkosw048", "AQgw"];

/**
 * Whether text is what the schema's base64 pattern admits (standard alphabet, padded, unused bits zero), decided without a backtracking expression: the text may be
 * as long as the arguments.
 */
export const isBase64 = (text: string): boolean => {
  if (text.length % 4 !== 0) return false;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const body = text.slice(0, text.length - padding);
  return !outsideAlphabet.test(body) && (padding === 0 || (lastBeforePadding[padding] ?? "").includes(body.charAt(body.length - 1)));
};

export const bytesOfBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64"));

export const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
