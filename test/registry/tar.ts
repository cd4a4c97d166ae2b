/** One entry of a tar archive as a test wants it; `type` is the flag of POSIX.1 `pax`. */
export interface TarEntry {
  readonly name: string;
  readonly content?: Uint8Array;
  readonly type?: string;
  /** The size that the header claims, where it is not the content's. */
  readonly claimedSize?: string;
}

const block = 512;

/** A ustar archive of these entries. */
export const tarOf = (...entries: readonly TarEntry[]): Buffer => {
  const parts = entries.flatMap(({ name, content = new Uint8Array(), type = "0", claimedSize }) => {
    const header = Buffer.alloc(block);
    header.write(name, 0, 100, "utf8");
    header.write("0000644\0", 100);
    header.write(claimedSize ?? content.length.toString(8).padStart(11, "0"), 124, 12, "latin1");
    header.write("00000000000\0", 136);
    header.write(type, 156, 1, "latin1");
    header.write("ustar\u000000", 257, "latin1");
    header.fill(" ", 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return [header, content, Buffer.alloc((block - (content.length % block)) % block)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
};
