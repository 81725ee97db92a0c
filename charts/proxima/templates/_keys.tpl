{{/* What the Job makes before an install or upgrade: `keys` and `token`, the names of its Secrets. */}}
{{- define "proxima.jobMakes" -}}
{{- $cache := .Values.cache }}
{{- $made := dict }}
{{- if and (eq $cache.mode "fleet") (eq $cache.fleet.keys.from "job") }}
{{- $_ := set $made "keys" (include "proxima.secret" .) }}
{{- end }}
{{- if and (eq .Values.admin.token.from "job") (or (ne $cache.mode "none") .Values.proxies) }}
{{- $_ := set $made "token" (include "proxima.tokenSecret" .) }}
{{- end }}
{{- toYaml $made }}
{{- end }}

{{/* The account that makes or renews Secrets (list ROOT PART MADE ANNOTATIONS). It may change the one with
the keys, and look at the one with the token; to create cannot be restricted to a name. */}}
{{- define "proxima.keysAccount" -}}
{{- $root := index . 0 }}
{{- $made := index . 2 }}
{{- $metadata := include "proxima.metadata" (list $root (index . 1)) | fromYaml }}
{{- with index . 3 }}
{{- $_ := set $metadata "annotations" . }}
{{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- toYaml $metadata | nindent 2 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
  {{- with $made.keys }}
  - {apiGroups: [""], resources: [secrets], resourceNames: [{{ . }}], verbs: [get, update, patch]}
  {{- end }}
  {{- with $made.token }}
  - {apiGroups: [""], resources: [secrets], resourceNames: [{{ . }}], verbs: [get]}
  {{- end }}
  - {apiGroups: [""], resources: [secrets], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $metadata.name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $metadata.name }}, namespace: {{ $root.Release.Namespace }}}
{{- end }}

{{/* The pod that makes or renews Secrets (list ROOT PART MADE). */}}
{{- define "proxima.keysPod" -}}
{{- $root := index . 0 }}
{{- $made := index . 2 }}
{{- $proxy := include "proxima.merged" (list $root.Values.proxy $root.Values.cache.proxy) | fromYaml }}
{{- $pod := pick $proxy.pod "labels" "nodeSelector" "tolerations" }}
{{- $args := list "fleet" "keys" }}
{{- with $made.keys }}{{ $args = concat $args (list "--secret" .) }}{{ end }}
{{- with $made.token }}{{ $args = concat $args (list "--token-secret" .) }}{{ end -}}
metadata:
  {{- include "proxima.podMetadata" (list $root (index . 1) $pod) | nindent 2 }}
spec:
  {{- include "proxima.placement" (list $root $pod) | nindent 2 }}
  restartPolicy: OnFailure
  serviceAccountName: {{ include "proxima.name" (list $root (index . 1)) }}
  automountServiceAccountToken: true
  containers:
    - name: keys
      {{- include "proxima.image" (list $root $root.Values.image) | nindent 6 }}
      args: {{ toJson $args }}
      resources:
        requests: {cpu: 10m, memory: 64Mi}
        limits: {memory: 64Mi}
      securityContext:
        {{- include "proxima.restricted" . | nindent 8 }}
{{- end }}
