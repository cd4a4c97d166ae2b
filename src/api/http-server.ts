import type { ComponentInterface } from "./wit.ts";

/** The export by which a component serves HTTP; null where it has none that is spoken here. */
export const incomingHandlerExport = ({ exports }: Pick<ComponentInterface, "exports">): string | null =>
  exports.find(({ id, kind }) => kind === "instance" && /^wasi:http\/incoming-handler@0\.2\.\d+$/.test(id))?.id ?? null;

/** What is said of a component that is named as an MCP server and does not serve; one sentence without a full stop. */
export const servesNoHttp = {
  code: "ServesNoHttp",
  message:
    "it is named as an MCP server, and does not export wasi:http/incoming-handler@0.2: name another component, or take it out of mcpServers",
} as const;
