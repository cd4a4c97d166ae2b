import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { sha256Of } from "../api/digest.ts";
import { Invalid, messageOf, Stalled } from "../api/errors.ts";
import type { FileReference } from "./reference.ts";

/**
 * The bytes that a `file:` reference names; a relative path starts at `folder`, where the manifest is. Throws `Stalled` (`ImageNotFound`, `ImageUnreadable`,
 * `DigestMismatch`) or `Invalid` (`NotAComponentImage` for what is no regular file, `ImageTooLarge`).
 */
export const readComponentFile = async (reference: FileReference, folder: string, maxBytes: number): Promise<Uint8Array> => {
  const path = isAbsolute(reference.path) ? reference.path : resolve(folder, reference.path);
  const file = await openFile(path);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Invalid("NotAComponentImage", `${path} is not a regular file`);
    if (stat.size > maxBytes) throw tooLarge(path, maxBytes);
    const bytes = await file.readFile();
    if (bytes.length > maxBytes) throw tooLarge(path, maxBytes);
    const found = sha256Of(bytes);
    if (reference.digest !== null && found !== reference.digest) {
      throw new Stalled(
        "DigestMismatch",
        `${path} is not the file that the image names: it hashes to ${found}, not to ${reference.digest}`,
      );
    }
    return bytes;
  } finally {
    await file.close();
  }
};

/** Without waiting: opening a named pipe would otherwise block until somebody writes to it. */
const openFile = async (path: string): Promise<FileHandle> => {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : "";
    if (code === "ENOENT" || code === "ENOTDIR") throw new Stalled("ImageNotFound", `there is no file ${path}`, { cause: thrown });
    throw new Stalled("ImageUnreadable", `${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
};

const tooLarge = (path: string, maxBytes: number): Invalid =>
  new Invalid("ImageTooLarge", `${path} is longer than the ${maxBytes} bytes that a component may have`);
