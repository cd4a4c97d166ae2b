import { execFile, spawn } from "node:child_process";
import { createPublicKey, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { newCertificateKey } from "../../src/identity/certificate.ts";
import { certifyHost, newAuthority } from "../../src/identity/host-identity.ts";
import type { Ground, Pod } from "./ground.ts";

/** Somebody who answers at a pod's address instead of it, under its hardware address, in its host's very name, which an authority of his own has certified. */
export interface Impostor extends AsyncDisposable {
  /** What came to him: `handshake failed` for who hung up on his certificate, and the head line of each request that he could read. */
  readonly heard: readonly string[];
}

/** Says yes to everything. */
const server = `
  const { createServer } = require("node:https");
  const { key, cert } = JSON.parse(process.env.IDENTITY);
  createServer({ key, cert }, (request, response) => {
    console.log(request.method + " " + request.url);
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end('{"outcome":"ok","text":"believe me"}'));
  }).on("tlsClientError", () => console.log("handshake failed")).listen(8443, () => console.log("listening"));`;

const run = promisify(execFile);

/** Takes a pod's cable out of the node's bridge and puts in another one, with the pod's addresses; at the end it is as before. */
export const takeOver = async ({ node, namespace }: Ground, pod: Pod, boot: string): Promise<Impostor> => {
  const inNode = ([file, ...before]: readonly [string, ...string[]], ...args: string[]) => run(file, [...before, "ip", ...args]);
  const there = await node.commandInPod(namespace, pod.metadata.name);
  const [link] = JSON.parse((await inNode(there, "--json", "link", "show", "eth0")).stdout);
  const links: readonly { ifindex: number; ifname: string }[] = JSON.parse((await inNode(node.command, "--json", "link")).stdout);
  const cable = links.find(({ ifindex }) => ifindex === link.link_index)?.ifname ?? "";
  const own = `ambit-${randomBytes(4).toString("hex")}`;

  const authority = newAuthority("an impostor's", Date.now());
  const key = newCertificateKey();
  const cert = certifyHost(authority, { podUid: pod.metadata.uid, boot }, createPublicKey(key), Date.now());
  const identity = JSON.stringify({ key: key.export({ type: "pkcs8", format: "pem" }), cert });

  await run("ip", ["netns", "add", own]);
  // Its name is at most 15 characters long.
  const plug = own.slice(-12);
  await inNode(node.command, "link", "add", plug, "type", "veth", "peer", "name", "eth0", "netns", `/run/netns/${own}`);
  const inOwn = ["nsenter", `--net=/run/netns/${own}`, "--"] as const;
  await inNode(inOwn, "link", "set", "eth0", "address", link.address);
  await inNode(inOwn, "addr", "add", `${pod.status.podIP}/24`, "dev", "eth0");
  await inNode(node.command, "link", "set", cable, "down");
  await inNode(node.command, "link", "set", plug, "master", "pods0", "up");
  await inNode(inOwn, "link", "set", "lo", "up");
  await inNode(inOwn, "link", "set", "eth0", "up");

  const child = spawn(inOwn[0], [...inOwn.slice(1), process.execPath, "-e", server], {
    env: { ...process.env, IDENTITY: identity },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const heard: string[] = [];
  const lines = createInterface(child.stdout);
  await once(lines, "line");
  lines.on("line", (line) => heard.push(line));
  return {
    heard,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
      await run("ip", ["netns", "delete", own]);
      await inNode(node.command, "link", "set", cable, "up");
    },
  };
};
