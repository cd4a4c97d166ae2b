const outsideAlphabet = /[^A-Za-z0-9+/]/;

/**
 * Whether text is what the schema's base64 pattern admits (standard alphabet, padded), decided without a backtracking expression: the text may be
 * as long as the arguments.
 */
export const isBase64 = (text: string): boolean => {
  if (text.length % 4 !== 0) return false;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return !outsideAlphabet.test(text.slice(0, text.length - padding));
};

export const bytesOfBase64 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64"));

export const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
