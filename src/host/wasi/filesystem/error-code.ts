import { GuestError } from "../guest-error.ts";
import { IoError } from "../streams.ts";

/** `error-code` of `wasi:filesystem/types`, as far as it is given to guests. */
export type FileErrorCode =
  | "access"
  | "bad-descriptor"
  | "busy"
  | "cross-device"
  | "exist"
  | "file-too-large"
  | "insufficient-space"
  | "invalid"
  | "io"
  | "is-directory"
  | "loop"
  | "name-too-long"
  | "no-entry"
  | "not-directory"
  | "not-empty"
  | "not-permitted"
  | "quota"
  | "read-only"
  | "text-file-busy"
  | "too-many-links";

const bySystemCode: Readonly<Record<string, FileErrorCode>> = {
  EACCES: "access",
  ERR_ACCESS_DENIED: "access",
  EBADF: "bad-descriptor",
  EBUSY: "busy",
  EXDEV: "cross-device",
  EEXIST: "exist",
  EFBIG: "file-too-large",
  ENOSPC: "insufficient-space",
  EINVAL: "invalid",
  ERR_OUT_OF_RANGE: "invalid",
  ERR_INVALID_ARG_VALUE: "invalid",
  EISDIR: "is-directory",
  ELOOP: "loop",
  ENAMETOOLONG: "name-too-long",
  ENOENT: "no-entry",
  ENOTDIR: "not-directory",
  ENOTEMPTY: "not-empty",
  EPERM: "not-permitted",
  ENXIO: "not-permitted",
  EDQUOT: "quota",
  EMFILE: "quota",
  ENFILE: "quota",
  EROFS: "read-only",
  ETXTBSY: "text-file-busy",
  EMLINK: "too-many-links",
};

export const fileError = (code: FileErrorCode): GuestError<FileErrorCode> => new GuestError(code);

export const fileErrorCodeOf = (error: unknown): FileErrorCode => {
  if (typeof error !== "object" || error === null || !("code" in error)) return "io";
  return (typeof error.code === "string" ? bySystemCode[error.code] : undefined) ?? "io";
};

/** Runs a system call and gives the guest its error code. Messages, which name paths of this machine, stay here. */
export const system = <T>(work: () => T): T => {
  try {
    return work();
  } catch (error) {
    throw error instanceof GuestError ? error : fileError(fileErrorCodeOf(error));
  }
};

export const filesystemErrorCode = (error: IoError): FileErrorCode | undefined => {
  const code = IoError.codeOf(error);
  return code?.kind === "filesystem" ? code.code : undefined;
};
