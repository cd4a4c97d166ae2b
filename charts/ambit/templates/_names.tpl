{{/* Labels of all objects of the chart. */}}
{{- define "ambit.labels" -}}
app.kubernetes.io/name: ambit
app.kubernetes.io/part-of: ambit
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* What selects the pods of one part: (dict "root" $ "part" "operator"). */}}
{{- define "ambit.selector" -}}
app.kubernetes.io/name: ambit
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "ambit.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What satisfies the Pod Security Standard "restricted", and more: nothing can be written but what is mounted to be. */}}
{{- define "ambit.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "ambit.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "ambit.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* On the plain port, so that a probe needs no certificate, and a replica that waits for one is alive and not ready. */}}
{{- define "ambit.probes" -}}
readinessProbe:
  httpGet: {path: /readyz, port: telemetry}
  periodSeconds: 2
  timeoutSeconds: 2
livenessProbe:
  httpGet: {path: /healthz, port: telemetry}
  initialDelaySeconds: 10
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* Who may scrape: a rule of a NetworkPolicy, or nothing. */}}
{{- define "ambit.scraping" -}}
{{- with .Values.telemetry.scrapers }}
- from: {{- toYaml . | nindent 2 }}
  ports:
  - {port: {{ $.Values.telemetry.port }}, protocol: TCP}
{{- end }}
{{- end }}
