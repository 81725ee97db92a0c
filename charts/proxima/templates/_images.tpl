{{/* Name and pull policy of an image (list ROOT IMAGE). */}}
{{- define "proxima.image" -}}
{{- $root := index . 0 }}
{{- $image := index . 1 }}
{{- $name := $image.repository }}
{{- with $root.Values.global.imageRegistry | default $image.registry }}
{{- $name = printf "%s/%s" . $name }}
{{- end }}
{{- if $image.digest }}
{{- $name = printf "%s@%s" $name $image.digest }}
{{- else }}
{{- $name = printf "%s:%s" $name ($image.tag | default $root.Chart.AppVersion) }}
{{- end -}}
image: {{ $name | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* The logins of registries of a pod. */}}
{{- define "proxima.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets -}}
imagePullSecrets:
{{- range . }}
  - {{ kindIs "map" . | ternary . (dict "name" .) | toJson }}
{{- end }}
{{- end }}
{{- end }}
