/** One aspect of an object's state, as Kubernetes writes them (`metav1.Condition`). `reason` is a stable word, `message` is for a person. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}
