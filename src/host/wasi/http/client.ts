/** Loaded by the first who needs it: a tool without granted hosts does not pay for the client's memory. */
export const httpClient = (): typeof import("node:http") => process.getBuiltinModule("node:http");
