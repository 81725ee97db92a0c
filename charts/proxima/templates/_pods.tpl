{{/* What every container of the chart may do: what Pod Security calls `restricted`. */}}
{{- define "proxima.restricted" -}}
runAsNonRoot: true
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* Labels and annotations of a pod (list ROOT PART POD). */}}
{{- define "proxima.podMetadata" -}}
{{- $pod := index . 2 -}}
labels:
  {{- include "proxima.selector" . | nindent 2 }}
  {{- with $pod.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $pod.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where a pod runs (list ROOT POD). */}}
{{- define "proxima.placement" -}}
{{- $pod := index . 1 -}}
enableServiceLinks: false
{{- with include "proxima.pullSecrets" (index . 0) }}
{{ . }}
{{- end }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $pod $key }}
{{ dict $key . | toYaml }}
{{- end }}
{{- end }}
{{- end }}
