import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { Request } from "../cluster/request.ts";

interface ChartObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const plurals: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: "validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding: "validatingadmissionpolicybindings",
  ClusterRole: "clusterroles",
};

/** Applies objects without a namespace of a chart's template that takes no value but the namespace of the release, so that no Helm is needed. */
export const applyTemplate = async (request: Request, template: string, namespace = "ambit-system"): Promise<void> => {
  const source = readFileSync(new URL(`../../charts/ambit/templates/${template}`, import.meta.url), "utf8");
  const text = source.replaceAll("{{ .Release.Namespace }}", namespace);
  for (const document of parseAllDocuments(text)) {
    const object: ChartObject = document.toJS();
    const path = `/apis/${object.apiVersion}/${plurals[object.kind]}/${object.metadata.name}?fieldManager=ambit-test&force=true&fieldValidation=Strict`;
    const { status, body } = await request("PATCH", path, object, "application/apply-patch+yaml");
    if (status >= 300) throw new Error(`the API server refuses ${object.kind} ${object.metadata.name} with ${status}: ${body}`);
  }
};
