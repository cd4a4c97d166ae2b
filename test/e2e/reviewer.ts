import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import type { Ground } from "./ground.ts";
import { apply } from "./installed.ts";

const command = resolve(import.meta.dirname, "../../src/cli/kubectl.ts");

/** Somebody with some of Ambit's roles in the ground's namespace, and no other right, who has kubectl and its plugin. */
export interface Person {
  /** As the API server knows it. */
  readonly user: string;
  readonly kubeconfig: string;
  /** `kubectl` with these arguments, in that namespace. Rejects with what it said where it fails. */
  kubectl(args: readonly string[], input?: object): Promise<string>;
  /** `kubectl ambit` with these. */
  ambit(...args: string[]): Promise<string>;
}

/** Makes a ServiceAccount with these roles, named after them, and gives what its owner can do with a token of it. */
export const personWith = async (ground: Ground, ...roles: readonly ("author" | "reviewer" | "viewer")[]): Promise<Person> => {
  const { kubectl, cluster, namespace } = ground;
  const name = roles.join("-and-");
  await apply(kubectl, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } });
  for (const role of roles) {
    await apply(kubectl, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: `${name}-${role}`, namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: `ambit-${role}` },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    });
  }
  const token = (await kubectl(["--namespace", namespace, "create", "token", name, "--duration=1h"])).trim();
  const folder = await mkdtemp(join(tmpdir(), `ambit-${name}-`));
  ground.atTheEnd(() => rm(folder, { recursive: true, force: true }));
  const config = parse(await readFile(cluster.kubeconfig, "utf8"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, stringify({ ...config, users: [{ name: config.users[0].name, user: { token } }] }), { mode: 0o600 });
  // kubectl finds a plugin by its name on the PATH.
  await writeFile(join(folder, "kubectl-ambit"), `#!/bin/sh\nexec "${process.execPath}" "${command}" "$@"\n`, { mode: 0o755 });
  const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${folder}:${process.env.PATH ?? ""}` };
  const run = async (args: readonly string[], input?: object): Promise<string> => {
    const running = promisify(execFile)(cluster.kubectl, args, { env, maxBuffer: 16 * 1024 * 1024 });
    running.child.stdin?.on("error", () => {}).end(input === undefined ? "" : JSON.stringify(input));
    return (await running).stdout;
  };
  return {
    user: `system:serviceaccount:${namespace}:${name}`,
    kubeconfig,
    kubectl: (args, input) => run(["--namespace", namespace, ...args], input),
    ambit: (...args) => run(["ambit", ...args, "--namespace", namespace]),
  };
};

/** What most of these suites say of a tool: this account may call it, and it changes nothing. */
export const letsRead = (namespace: string, account = "triage"): string[] => [
  "--read-only",
  "--subject",
  `ServiceAccount:${namespace}/${account}`,
];
