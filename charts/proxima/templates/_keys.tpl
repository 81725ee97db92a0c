{{/* The account that makes or renews the keys (list ROOT PART ANNOTATIONS). It may change one Secret; to
create cannot be restricted to a name. */}}
{{- define "proxima.keysAccount" -}}
{{- $root := index . 0 }}
{{- $metadata := include "proxima.metadata" (list $root (index . 1)) | fromYaml }}
{{- with index . 2 }}
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
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [{{ include "proxima.secret" $root }}]
    verbs: [get, update, patch]
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

{{/* The pod that makes or renews the keys (list ROOT PART). */}}
{{- define "proxima.keysPod" -}}
{{- $root := index . 0 }}
{{- $proxy := include "proxima.merged" (list $root.Values.proxy $root.Values.cache.proxy) | fromYaml }}
{{- $pod := pick $proxy.pod "labels" "nodeSelector" "tolerations" -}}
metadata:
  {{- include "proxima.podMetadata" (list $root (index . 1) $pod) | nindent 2 }}
spec:
  {{- include "proxima.placement" (list $root $pod) | nindent 2 }}
  restartPolicy: OnFailure
  serviceAccountName: {{ include "proxima.name" . }}
  automountServiceAccountToken: true
  containers:
    - name: keys
      {{- include "proxima.image" (list $root $root.Values.image) | nindent 6 }}
      args: [fleet, keys, --secret, {{ include "proxima.secret" $root }}]
      resources:
        requests: {cpu: 10m, memory: 64Mi}
        limits: {memory: 64Mi}
      securityContext:
        {{- include "proxima.restricted" . | nindent 8 }}
{{- end }}
