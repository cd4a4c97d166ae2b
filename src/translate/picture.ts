/** What can be told of a picture by its first bytes. */
export interface Picture {
  readonly format: ImageFormat;
  readonly width: number;
  readonly height: number;
}

export type ImageFormat = "png" | "jpeg" | "gif" | "webp";

/** A photograph's size stands after its metadata, which may hold a small picture of it. */
const mostRead = 256 * 1024;

/** The picture that base64 text is; null where it is none, or one whose size isn't told where it should be. */
export const pictureIn = (base64: string): Picture | null => {
  const bytes = Buffer.from(base64.slice(0, (mostRead / 3) * 4), "base64");
  const sized = (format: ImageFormat, size: Size | null): Picture | null =>
    size && size.width > 0 && size.height > 0 ? { format, ...size } : null;
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return sized("png", pngSize(bytes));
  if (startsWith(bytes, "\xff\xd8\xff")) return sized("jpeg", jpegSize(bytes));
  if (startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a")) return sized("gif", gifSize(bytes));
  if (startsWith(bytes, "RIFF") && startsWith(bytes.subarray(8), "WEBP")) return sized("webp", webpSize(bytes));
  return null;
};

export const isPdf = (base64: string): boolean => startsWith(Buffer.from(base64.slice(0, 8), "base64"), "%PDF-");

interface Size {
  readonly width: number;
  readonly height: number;
}

const startsWith = (bytes: Buffer, text: string): boolean => bytes.subarray(0, text.length).equals(Buffer.from(text, "latin1"));

/** PNG specification, IHDR: the first chunk. */
const pngSize = (bytes: Buffer): Size | null =>
  bytes.length >= 24 && startsWith(bytes.subarray(12), "IHDR") ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) } : null;

/** GIF89a, logical screen descriptor. */
const gifSize = (bytes: Buffer): Size | null =>
  bytes.length >= 10 ? { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) } : null;

/** ITU-T T.81, B.2: marker segments until a start of frame. */
const jpegSize = (bytes: Buffer): Size | null => {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) at += 1;
    else if (isStartOfFrame(marker)) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2;
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
};

/** All of SOF0 to SOF15 but DHT, JPG and DAC, which share their range. */
const isStartOfFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** WebP container specification: lossy, lossless and extended files. */
const webpSize = (bytes: Buffer): Size | null => {
  if (bytes.length < 30) return null;
  if (startsWith(bytes.subarray(12), "VP8X")) return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  if (startsWith(bytes.subarray(12), "VP8 ")) {
    return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  }
  if (!startsWith(bytes.subarray(12), "VP8L")) return null;
  const sizes = bytes.readUInt32LE(21);
  return { width: 1 + (sizes & 0x3fff), height: 1 + ((sizes >>> 14) & 0x3fff) };
};
