import { promisify } from "node:util";
import { gunzip, zstdDecompress } from "node:zlib";
import { Invalid, messageOf } from "../api/errors.ts";
import type { Packing } from "./manifest.ts";

const inflate = promisify(gunzip);
const inflateZstd = promisify(zstdDecompress);

/** What a tar archive adds to the one file in it: headers, extended headers, directories and padding. */
const archiveOverhead = 1024 * 1024;

const block = 512;

/**
 * The component in a layer. An archive has to hold exactly one regular file that ends in `.wasm`. Nothing is written anywhere, so links and paths in it
 * have no effect. Throws `Invalid` with code `NotAComponentImage` or, when it unpacks to more than `maxBytes`, `ImageTooLarge`.
 */
export const unpackLayer = async (layer: Uint8Array, packing: Packing, maxBytes: number, name: string): Promise<Uint8Array> => {
  if (packing === "bare") return layer;
  const archive = await decompressed(layer, packing, maxBytes + archiveOverhead, name);
  return onlyWasmFile(archive, name);
};

const decompressed = async (
  layer: Uint8Array,
  packing: Exclude<Packing, "bare">,
  maxOutputLength: number,
  name: string,
): Promise<Uint8Array> => {
  if (packing === "tar") return layer;
  try {
    return packing === "tar+gzip" ? await inflate(layer, { maxOutputLength }) : await inflateZstd(layer, { maxOutputLength });
  } catch (thrown) {
    if (isTooLarge(thrown))
      throw new Invalid("ImageTooLarge", `the layer of ${name} unpacks to more than ${maxOutputLength} bytes`, undefined, {
        cause: thrown,
      });
    throw notAComponent(name, `its layer does not unpack (${messageOf(thrown)})`, { cause: thrown });
  }
};

const isTooLarge = (thrown: unknown): boolean => thrown instanceof Error && "code" in thrown && thrown.code === "ERR_BUFFER_TOO_LARGE";

/** Type flags of POSIX.1-2024 `pax`, "ustar Interchange Format", and of GNU tar. */
const regularFile = new Set(["0", "\0"]);
const longName = "L";
const extendedHeader = "x";

/** Bounds what reading an archive costs: a layer for one component has a handful of entries and no name of this length. */
const maxEntries = 1000;
const maxNameBytes = 64 * 1024;

const onlyWasmFile = (archive: Uint8Array, name: string): Uint8Array => {
  const found: Uint8Array[] = [];
  let nextName: string | null = null;
  let entries = 0;
  for (let at = 0; at + block <= archive.length; ) {
    const header = archive.subarray(at, at + block);
    if (header.every((byte) => byte === 0)) break;
    if (++entries > maxEntries) throw notAComponent(name, `its layer's archive has more than ${maxEntries} entries`);
    if (!hasRightChecksum(header)) throw notAComponent(name, `its layer is no tar archive (at byte ${at})`);
    const size = octal(header.subarray(124, 136));
    const content = archive.subarray(at + block, at + block + size);
    if (content.length < size) throw notAComponent(name, `its layer's archive ends within a file (at byte ${at})`);
    const type = String.fromCharCode(header[156] ?? 0);
    const isName = type === longName || type === extendedHeader;
    if (isName && size > maxNameBytes) throw notAComponent(name, `its layer's archive has a name of ${size} bytes (at byte ${at})`);
    if (type === longName) nextName = text(content);
    else if (type === extendedHeader) nextName = paxPath(text(content)) ?? nextName;
    else {
      if (regularFile.has(type) && (nextName ?? headerName(header)).endsWith(".wasm")) found.push(content);
      nextName = null;
    }
    at += block + Math.ceil(size / block) * block;
  }
  const [only] = found;
  if (only === undefined || found.length > 1) throw notAComponent(name, `its layer holds ${found.length} files that end in .wasm, not one`);
  return only;
};

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8").replace(/\0.*$/s, "");

const headerName = (header: Uint8Array): string => text(header.subarray(0, 100));

/** `30 path=some/where.wasm\n` in a pax extended header. */
const paxPath = (records: string): string | null => /^[0-9]+ path=([^\n]*)$/m.exec(records)?.[1] ?? null;

/** Octal digits, as tar has them; infinite for GNU's binary sizes, which only files beyond 8 GiB need, and then no content is long enough. */
const octal = (field: Uint8Array): number => {
  const digits = text(field).trim();
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.POSITIVE_INFINITY;
};

const checksumField = { from: 148, to: 156 };

const hasRightChecksum = (header: Uint8Array): boolean => {
  const sum = header.reduce((total, byte, index) => total + (index >= checksumField.from && index < checksumField.to ? 0x20 : byte), 0);
  return octal(header.subarray(checksumField.from, checksumField.to)) === sum;
};

const notAComponent = (name: string, why: string, options?: ErrorOptions): Invalid =>
  new Invalid("NotAComponentImage", `${name} is no component image: ${why}`, undefined, options);
