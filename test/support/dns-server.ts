import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIP } from "node:net";

/** What the server says of a name: addresses of both families, or how it fails. `silent` never answers. */
export type Zone = Record<string, { readonly addresses: readonly string[]; readonly ttl: number } | "SERVFAIL" | "silent">;

export interface DnsServer extends AsyncDisposable {
  /** As `Resolver.setServers` takes it. */
  readonly address: string;
  /** May be changed at any time; a name that is not in it does not exist. */
  readonly zone: Zone;
  /** Names that were asked for, in order, with the type: `A api.test`. */
  readonly asked: string[];
}

const types: Readonly<Record<number, string>> = { 1: "A", 28: "AAAA" };

/** An authoritative name server on loopback over UDP (RFC 1035), as much of one as a resolver's test needs. */
export const startDnsServer = async (zone: Zone = {}): Promise<DnsServer> => {
  const asked: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const { name, type, questionEnd } = questionOf(query);
    asked.push(`${types[type] ?? type} ${name}`);
    const known = zone[name];
    if (known === "silent") return;
    const family = { 1: 4, 28: 6 }[type];
    const found = typeof known === "object" ? known.addresses.filter((address) => isIP(address) === family) : [];
    const rcode = known === "SERVFAIL" ? 2 : known === undefined ? 3 : 0;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    // An answer, authoritative, recursion desired and available.
    header.writeUInt16BE(0x8580 | rcode, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(found.length, 6);
    const records = found.map((address) => record(type, address, typeof known === "object" ? known.ttl : 0));
    socket.send(Buffer.concat([header, query.subarray(12, questionEnd), ...records]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    zone,
    asked,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, "close");
    },
  };
};

const questionOf = (query: Buffer): { readonly name: string; readonly type: number; readonly questionEnd: number } => {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), questionEnd: at + 5 };
};

const record = (type: number, address: string, ttl: number): Buffer => {
  const value = isIP(address) === 4 ? Buffer.from(address.split(".").map(Number)) : ipv6Bytes(address);
  const head = Buffer.alloc(12);
  // The name is the question's, by pointer.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(value.length, 10);
  return Buffer.concat([head, value]);
};

const ipv6Bytes = (address: string): Buffer => {
  const [before = "", after] = address.split("::");
  const groups = (text: string | undefined): string[] => (text ? text.split(":") : []);
  const missing = 8 - groups(before).length - groups(after).length;
  const all = [...groups(before), ...Array.from({ length: after === undefined ? 0 : missing }, () => "0"), ...groups(after)];
  return Buffer.concat(all.map((group) => Buffer.from(group.padStart(4, "0"), "hex")));
};
