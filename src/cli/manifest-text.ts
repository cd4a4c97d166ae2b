import { Document, type Node, visit } from "yaml";
import type { ToolGrant } from "../api/generated/toolgrant.ts";

const longestPlain = 100;

/** Long texts of a YAML node in one line each, as they are: folded and escaped nobody could compare them in a diff. */
export const unfolded = (node: unknown): unknown => {
  visit(node as Node, {
    Scalar: (key, scalar) => {
      if (key !== "key" && typeof scalar.value === "string" && scalar.value.length > longestPlain) scalar.type = "BLOCK_LITERAL";
    },
  });
  return node;
};

/** What kubectl keeps of an object that it applied, for itself. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** A grant of a cluster as a manifest to commit: without what the API server adds, and without status. */
export const grantManifest = ({ metadata, spec }: ToolGrant): string => {
  const { name, namespace, labels = {} } = metadata;
  const { [lastApplied]: _, ...annotations } = metadata.annotations ?? {};
  const document = new Document(
    {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "ToolGrant",
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(Object.keys(labels).length > 0 ? { labels } : {}),
        ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      },
      spec,
    },
    { compat: "yaml-1.1" },
  );
  unfolded(document.contents);
  return document.toString({ lineWidth: 120 });
};
