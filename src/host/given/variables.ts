import type { HostSecretFolder } from "../../api/host.ts";

/** One file of a folder whose files become variables; null where it has more bytes than are read, or is no plain file. */
export interface GivenFile {
  readonly name: string;
  readonly bytes: Uint8Array | null;
}

/** The files of one folder, sorted by name. */
export interface GivenFolder extends Pick<HostSecretFolder, "name" | "as"> {
  readonly files: readonly GivenFile[];
}

export interface GivenVariables {
  readonly variables: Readonly<Record<string, string>>;
  /** What no variable was made of, and why: the names of folders and files, never what is in them. */
  readonly leftOut: readonly string[];
}

/** Bounds on what one host is given in folders: files and their bytes in all of them together, and the bytes of one file. */
export const givenBounds = { files: 256, bytes: 1024 * 1024, ofVariable: 64 * 1024, ofHeader: 8 * 1024 } as const;

/** As the schema of `environment.config` has it. */
const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** `token` of RFC 9110, section 5.6.2. */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

/** `field-value` of RFC 9110, section 5.5: no control characters but the tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const notInHeader = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** Headers that the bridge or HTTP itself sets: another value would be another protocol, or pass for the host's own credential. */
const ownHeaders: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "upgrade",
  "http2-settings",
  "expect",
  "content-type",
  "accept",
  "mcp-session-id",
  "mcp-protocol-version",
  "mcp-method",
  "mcp-name",
  "ambit-hop",
  "last-event-id",
]);

/**
 * The variables that a guest gets of its folders: `environment` makes one of each file, by its name; `headers` makes `MCP_HEADER_<n>` with the line of a header, which is how the bridge to
 * an MCP server takes them. A file of a later folder takes the place of one before; names of headers are alike whatever their case.
 */
export const givenVariables = (folders: readonly GivenFolder[]): GivenVariables => {
  const variables = new Map<string, string>();
  const headers = new Map<string, string>();
  const leftOut: string[] = [];
  let files = 0;
  let bytes = 0;
  for (const { name: folder, as, files: given } of folders) {
    for (const { name, bytes: content } of given) {
      const leave = (why: string): void => void leftOut.push(`${JSON.stringify(name)} of ${folder} ${why}`);
      if (++files > givenBounds.files) {
        leave(`and what follows are beyond the ${givenBounds.files} files that are read`);
        return { variables: joined(variables, headers), leftOut };
      }
      const most = as === "headers" ? givenBounds.ofHeader : givenBounds.ofVariable;
      if (content === null || content.length > most) leave(`is no plain file of at most ${most} bytes`);
      else if (bytes + content.length > givenBounds.bytes) leave(`is beyond the ${givenBounds.bytes} bytes that are read in all`);
      else {
        bytes += content.length;
        const value = textOf(content);
        if (value === null) leave("is not UTF-8, or has a NUL byte");
        else if (as === "headers") takeHeader(headers, name, value, leave);
        else if (variableName.test(name)) variables.set(name, value);
        else leave("has no name of an environment variable");
      }
    }
  }
  return { variables: joined(variables, headers), leftOut };
};

const takeHeader = (headers: Map<string, string>, name: string, text: string, leave: (why: string) => void): void => {
  const value = text.replace(/\r?\n$/, "");
  if (!headerName.test(name)) leave("has no name of a header");
  else if (ownHeaders.has(name.toLowerCase())) leave("is a header that the bridge sets itself");
  else if (notInHeader.test(value)) leave("has a line break or a control character, which no header may");
  else headers.set(name.toLowerCase(), `${name}: ${value}`);
};

const joined = (variables: ReadonlyMap<string, string>, headers: ReadonlyMap<string, string>): Readonly<Record<string, string>> =>
  Object.fromEntries([...variables, ...[...headers.values()].map((line, at): [string, string] => [`MCP_HEADER_${at + 1}`, line])]);

const textOf = (bytes: Uint8Array): string | null => {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // The reason has the bytes in it in no form, but says nothing more either.
    return null;
  }
};
