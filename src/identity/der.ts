/**
 * The few shapes of DER (X.690) that a certificate is made of. Only writing: what comes from outside is read by OpenSSL, through `node:crypto`.
 */
export type Der = Uint8Array;

const tags = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
};

/** A value under a tag, with its length in the shortest form. */
export const tagged = (tag: number, content: Uint8Array): Der => Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);

const lengthOf = (length: number): number[] => {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
};

export const sequence = (...items: Der[]): Der => tagged(tags.sequence, Buffer.concat(items));

export const set = (...items: Der[]): Der => tagged(tags.set, Buffer.concat(items));

/** A number that is not negative, given by its bytes, the highest first. */
export const unsigned = (bytes: Uint8Array): Der => {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start < 0 ? Buffer.from([0]) : bytes.subarray(start);
  // A first bit that is set would make it negative.
  return tagged(tags.integer, (digits[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), digits]) : digits);
};

export const truth: Der = Buffer.from([0x01, 0x01, 0xff]);

export const octets = (content: Uint8Array): Der => tagged(tags.octetString, content);

/** A string of bits, `unused` of which at the end don't count. */
export const bits = (content: Uint8Array, unused = 0): Der => tagged(tags.bitString, Buffer.concat([Buffer.from([unused]), content]));

export const utf8 = (text: string): Der => tagged(tags.utf8String, Buffer.from(text, "utf8"));

/** `1.2.840.10045.4.3.2` */
export const objectId = (dotted: string): Der => {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(tags.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
};

const base128 = (value: number): number[] => {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift((rest % 128) | 0x80);
  return bytes;
};

/** Whole seconds; two digits for the year until 2049, as RFC 5280 (4.1.2.5) wants. */
export const time = (ms: number): Der => {
  const digits = `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  return Number(digits.slice(0, 4)) < 2050
    ? tagged(tags.utcTime, Buffer.from(digits.slice(2)))
    : tagged(tags.generalizedTime, Buffer.from(digits));
};
