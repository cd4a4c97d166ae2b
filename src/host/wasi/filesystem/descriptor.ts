import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import type { CallContext } from "../call-context.ts";
import type { Datetime } from "../clocks.ts";
import { GuestError } from "../guest-error.ts";
import { InputStream, IoError, OutputStream } from "../streams.ts";
import { DirectoryEntryStream } from "./directory-entry-stream.ts";
import { fileError, system } from "./error-code.ts";
import { entryPath, type Folder, locate, type Place } from "./folder.ts";
import { type DescriptorStat, type DescriptorType, metadataHash, statOf, typeOf } from "./metadata.ts";

export interface DescriptorFlags {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly fileIntegritySync?: boolean;
  readonly dataIntegritySync?: boolean;
  readonly requestedWriteSync?: boolean;
  readonly mutateDirectory?: boolean;
}

interface PathFlags {
  readonly symlinkFollow?: boolean;
}

interface OpenFlags {
  readonly create?: boolean;
  readonly directory?: boolean;
  readonly exclusive?: boolean;
  readonly truncate?: boolean;
}

type NewTimestamp = { readonly tag: "no-change" | "now" } | { readonly tag: "timestamp"; readonly val: Datetime };

/** Most that one read or write moves. */
const chunkBytes = 1024 * 1024;

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

/** What opening gives a descriptor. */
interface Opened {
  readonly descriptor: number;
  readonly path: string;
  readonly type: DescriptorType;
  readonly flags: DescriptorFlags;
  /** Nothing may be changed through it, nor through what is opened from it. */
  readonly isReadOnly: boolean;
}

/**
 * `wasi:filesystem/types`: an open file or folder below a mount.
 *
 * Every path is walked as `locate` says, so nothing outside a mount is named or reached. New symbolic links are refused: one that a tool leaves in a
 * volume would be followed by whoever reads the volume after it.
 */
export class Descriptor implements Disposable {
  readonly #context: CallContext;
  readonly #opened: Opened;
  #isClosed = false;

  constructor(context: CallContext, opened: Opened) {
    this.#context = context;
    this.#opened = opened;
  }

  readViaStream(offset: bigint): InputStream {
    this.#mustRead();
    let position = offset;
    return new InputStream(this.#context, {
      read: (max) => {
        const bytes = new Uint8Array(max);
        const count = streaming(() => readSync(this.#file(), bytes, 0, max, positionOf(position)));
        position += BigInt(count);
        return count === 0 && max > 0 ? null : bytes.subarray(0, count);
      },
      readiness: { kind: "always" },
      close: () => undefined,
    });
  }

  writeViaStream(offset: bigint): OutputStream {
    this.#mustWrite();
    let position = offset;
    return this.#writing((bytes) => {
      writeAll(this.#file(), bytes, position);
      position += BigInt(bytes.length);
    });
  }

  appendViaStream(): OutputStream {
    this.#mustWrite();
    return this.#writing((bytes) => {
      // The position is taken afresh each time: another descriptor may have written since.
      writeAll(this.#file(), bytes, fstatSync(this.#file(), { bigint: true }).size);
    });
  }

  advise(_offset: bigint, _length: bigint, _advice: string): void {}

  syncData(): void {
    this.sync();
  }

  /**
   * Where the process may not flush files (the permission model leaves `fsync` out), what was written is as durable as the system makes it by itself: every
   * other reader sees it already.
   */
  sync(): void {
    try {
      fsyncSync(this.#file());
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ERR_ACCESS_DENIED") return;
      system(() => {
        throw error;
      });
    }
  }

  getFlags(): DescriptorFlags {
    return this.#opened.flags;
  }

  getType(): DescriptorType {
    return this.#opened.type;
  }

  setSize(size: bigint): void {
    this.#mustWrite();
    const now = this.#stats().size;
    if (size > now && !this.#context.charge("writtenFileBytes", Number(size - now))) throw fileError("quota");
    system(() => ftruncateSync(this.#file(), Number(size)));
  }

  setTimes(access: NewTimestamp, modification: NewTimestamp): void {
    if (this.#opened.isReadOnly) throw fileError("read-only");
    const path = this.#opened.type === "directory" ? entryPath(this.#folder(), ".") : `/proc/self/fd/${this.#file()}`;
    this.#touch(path, this.#stats(), access, modification, utimesSync);
  }

  read(length: bigint, offset: bigint): [Uint8Array, boolean] {
    this.#mustRead();
    const position = positionOf(offset);
    // Guests ask for a mebibyte to read a line: what is set aside follows the file. A size of 0 says nothing where a file system makes content up.
    const size = system(() => fstatSync(this.#file()).size);
    const most = size === 0 ? chunkBytes : Math.max(0, size - Number(position));
    const wanted = Math.min(Number(length), chunkBytes, most);
    const bytes = new Uint8Array(wanted);
    const count = wanted === 0 ? 0 : system(() => readSync(this.#file(), bytes, 0, wanted, position));
    return [bytes.subarray(0, count), count < wanted || (size > 0 && wanted === most && length > 0n)];
  }

  write(contents: Uint8Array, offset: bigint): bigint {
    this.#mustWrite();
    const part = contents.subarray(0, chunkBytes);
    if (!this.#context.charge("writtenFileBytes", part.length)) throw fileError("quota");
    return BigInt(system(() => writeSync(this.#file(), part, 0, part.length, Number(positionOf(offset)))));
  }

  readDirectory(): DirectoryEntryStream {
    const folder = this.#folder();
    this.#mustHaveRoom();
    const entries = system(() => opendirSync(entryPath(folder, ".")));
    return this.#context.hold(new DirectoryEntryStream(this.#context, entries));
  }

  createDirectoryAt(path: string): void {
    this.#change(path, ({ parent, name }) => mkdirSync(entryPath(parent, name)));
  }

  stat(): DescriptorStat {
    return statOf(this.#stats());
  }

  statAt(flags: PathFlags, path: string): DescriptorStat {
    return statOf(this.#statsAt(flags, path));
  }

  setTimesAt(flags: PathFlags, path: string, access: NewTimestamp, modification: NewTimestamp): void {
    if (this.#opened.isReadOnly) throw fileError("read-only");
    const follow = flags.symlinkFollow === true;
    locate(this.#folder(), path, follow, (place) => {
      const entry = entryPath(place.parent, place.name);
      this.#touch(entry, statsOf(place), access, modification, lutimesSync);
    });
  }

  linkAt(flags: PathFlags, path: string, target: Descriptor, newPath: string): void {
    if (this.#opened.isReadOnly) throw fileError("read-only");
    locate(this.#folder(), path, flags.symlinkFollow === true, (from) => {
      // A name for a link would be a link wherever it is put.
      if (typeOf(statsOf(from)) !== "regular-file") throw fileError("not-permitted");
      target.#change(newPath, (to) => linkSync(entryPath(from.parent, from.name), entryPath(to.parent, to.name)));
    });
  }

  openAt(pathFlags: PathFlags, path: string, open: OpenFlags, flags: DescriptorFlags): Descriptor {
    const changes = open.create || open.truncate || flags.write || flags.mutateDirectory;
    if (this.#opened.isReadOnly && changes) throw fileError("read-only");
    if (open.directory && (open.create || open.exclusive || open.truncate)) throw fileError("invalid");
    this.#mustHaveRoom();
    return locate(this.#folder(), path, pathFlags.symlinkFollow === true, (place) => {
      const mustBeFolder = open.directory === true || place.mustBeFolder;
      if (open.create && place.mustBeFolder) throw fileError("is-directory");
      return this.#context.hold(new Descriptor(this.#context, this.#open(place, open, flags, mustBeFolder)));
    });
  }

  readlinkAt(path: string): string {
    const link = locate(this.#folder(), path, false, ({ parent, name }) => system(() => readlinkSync(entryPath(parent, name))));
    // Where an absolute link points is none of the guest's business, and it could not follow it.
    if (link.startsWith("/")) throw fileError("not-permitted");
    return link;
  }

  removeDirectoryAt(path: string): void {
    this.#change(path, ({ parent, name }) => rmdirSync(entryPath(parent, name)));
  }

  renameAt(path: string, target: Descriptor, newPath: string): void {
    this.#change(path, (from) => {
      target.#change(newPath, (to) => {
        // Moved elsewhere, a relative link would point to another place.
        if (typeOf(statsOf(from)) === "symbolic-link") throw fileError("not-permitted");
        renameSync(entryPath(from.parent, from.name), entryPath(to.parent, to.name));
      });
    });
  }

  symlinkAt(_target: string, _path: string): void {
    throw fileError(this.#opened.isReadOnly ? "read-only" : "not-permitted");
  }

  unlinkFileAt(path: string): void {
    this.#change(path, (place) => {
      if (typeOf(statsOf(place)) === "directory") throw fileError("is-directory");
      if (place.mustBeFolder) throw fileError("not-directory");
      unlinkSync(entryPath(place.parent, place.name));
    });
  }

  isSameObject(other: Descriptor): boolean {
    const [one, two] = [this.#stats(), other.#stats()];
    return one.dev === two.dev && one.ino === two.ino;
  }

  metadataHash(): { readonly lower: bigint; readonly upper: bigint } {
    return metadataHash(this.#stats());
  }

  metadataHashAt(flags: PathFlags, path: string): { readonly lower: bigint; readonly upper: bigint } {
    return metadataHash(this.#statsAt(flags, path));
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#opened.descriptor);
    this.#context.release(this);
  }

  #open(place: Place, open: OpenFlags, flags: DescriptorFlags, mustBeFolder: boolean): Opened {
    const path = entryPath(place.parent, place.name);
    const existing = system(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }));
    if (open.create && open.exclusive && existing !== undefined) throw fileError("exist");
    const isFolder = mustBeFolder || existing?.isDirectory() === true;
    if (isFolder && (open.truncate || flags.write)) throw fileError("is-directory");
    // A link in the last place is here only where following was not asked for; a device or a pipe could hold the thread.
    if (existing !== undefined && !existing.isDirectory() && !existing.isFile())
      throw fileError(existing.isSymbolicLink() ? "loop" : "not-permitted");
    const descriptor = system(() => openSync(path, isFolder ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW : openingMode(open, flags), 0o666));
    const type = typeOf(fstatSync(descriptor, { bigint: true }));
    if (type !== "directory" && type !== "regular-file") {
      closeSync(descriptor);
      throw fileError("not-permitted");
    }
    return {
      descriptor,
      path: `${place.parent.path}/${place.name}`,
      type,
      flags: grantedFlags(flags),
      isReadOnly: this.#opened.isReadOnly,
    };
  }

  /** Runs what changes the entry that a path names; the path's last link is never followed. */
  #change(path: string, change: (place: Place) => void): void {
    if (this.#opened.isReadOnly) throw fileError("read-only");
    locate(this.#folder(), path, false, (place) => {
      if (place.name === ".") throw fileError("invalid");
      system(() => change(place));
    });
  }

  #touch(path: string, now: BigIntStats, access: NewTimestamp, modification: NewTimestamp, set: typeof utimesSync): void {
    const time = (wanted: NewTimestamp, held: bigint): number => {
      if (wanted.tag === "now") return Number(this.#context.options.clock.wall()) / 1e9;
      return wanted.tag === "timestamp" ? Number(wanted.val.seconds) + wanted.val.nanoseconds / 1e9 : Number(held) / 1e9;
    };
    system(() => set(path, time(access, now.atimeNs), time(modification, now.mtimeNs)));
  }

  #writing(write: (bytes: Uint8Array) => void): OutputStream {
    return new OutputStream(this.#context, {
      room: () => 64 * 1024,
      write: (bytes) => {
        streaming(() => {
          if (!this.#context.charge("writtenFileBytes", bytes.length)) throw fileError("quota");
          write(bytes);
        });
      },
      flush: () => undefined,
      readiness: { kind: "always" },
      close: () => undefined,
    });
  }

  #file(): number {
    if (this.#isClosed) throw fileError("bad-descriptor");
    return this.#opened.descriptor;
  }

  #folder(): Folder {
    if (this.#opened.type !== "directory") throw fileError("not-directory");
    return { descriptor: this.#file(), path: this.#opened.path };
  }

  #mustRead(): void {
    if (this.#opened.type === "directory") throw fileError("is-directory");
    if (this.#opened.flags.read !== true) throw fileError("bad-descriptor");
  }

  #mustWrite(): void {
    if (this.#opened.type === "directory") throw fileError("is-directory");
    if (this.#opened.isReadOnly) throw fileError("read-only");
    if (this.#opened.flags.write !== true) throw fileError("bad-descriptor");
  }

  #mustHaveRoom(): void {
    const open = this.#context.countOpen(Descriptor) + this.#context.countOpen(DirectoryEntryStream);
    if (open >= this.#context.options.budgets.openFiles) throw fileError("quota");
  }

  #stats(): BigIntStats {
    return system(() => fstatSync(this.#file(), { bigint: true }));
  }

  #statsAt(flags: PathFlags, path: string): BigIntStats {
    return locate(this.#folder(), path, flags.symlinkFollow === true, (place) => {
      const stats = statsOf(place);
      if (place.mustBeFolder && !stats.isDirectory()) throw fileError("not-directory");
      return stats;
    });
  }
}

const openingMode = (open: OpenFlags, flags: DescriptorFlags): number => {
  let mode = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  mode |= flags.write ? (flags.read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (open.create) mode |= O_CREAT;
  if (open.exclusive) mode |= O_EXCL;
  if (open.truncate) mode |= O_TRUNC;
  return mode;
};

const grantedFlags = (flags: DescriptorFlags): DescriptorFlags => ({
  read: flags.read === true,
  write: flags.write === true,
  mutateDirectory: flags.mutateDirectory === true,
});

const statsOf = ({ parent, name }: Place): BigIntStats => system(() => lstatSync(entryPath(parent, name), { bigint: true }));

/** Offsets past what the system's file sizes can be. */
const positionOf = (offset: bigint): bigint => {
  if (offset > 2n ** 63n - 1n) throw fileError("invalid");
  return offset;
};

const writeAll = (descriptor: number, bytes: Uint8Array, offset: bigint): void => {
  let done = 0;
  while (done < bytes.length) {
    done += writeSync(descriptor, bytes, done, bytes.length - done, Number(positionOf(offset + BigInt(done))));
  }
};

/** As `system`, for a stream: its failures are `IoError`s. */
const streaming = <T>(work: () => T): T => {
  try {
    return system(work);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    throw new IoError(`the file operation failed: ${error.payload}`, { kind: "filesystem", code: error.payload });
  }
};
