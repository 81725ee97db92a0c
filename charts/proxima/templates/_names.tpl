{{/* The name of the object PART of this release (list ROOT PART); the part "" is the cache. It has at most 52
characters, as a CronJob's must, and a longer one ends with a digest, so that two long names stay apart. */}}
{{- define "proxima.name" -}}
{{- $root := index . 0 }}
{{- $part := index . 1 }}
{{- $chart := $root.Values.nameOverride | default $root.Chart.Name }}
{{- $release := $root.Release.Name }}
{{- $base := contains $chart $release | ternary $release (printf "%s-%s" $release $chart) }}
{{- $base = $root.Values.fullnameOverride | default $base }}
{{- $name := $part | empty | ternary $base (printf "%s-%s" $base $part) }}
{{- if gt (len $name) 52 }}
{{- $name = printf "%s-%s" (trunc 43 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}
{{- end }}
{{- $name }}
{{- end }}

{{/* The labels that select the pods of a part (list ROOT PART). */}}
{{- define "proxima.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Values.nameOverride | default $root.Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 | default "cache" }}
{{- end }}

{{/* The labels that select all pods of the release that have this label as well (list ROOT LABEL). */}}
{{- define "proxima.selectorOfAll" -}}
{{- omit (include "proxima.selector" (list (index . 0) "") | fromYaml) "app.kubernetes.io/component" | toYaml }}
{{ index . 1 }}: "true"
{{- end }}

{{/* Name, namespace and labels of an object (list ROOT PART). */}}
{{- define "proxima.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "proxima.name" . | quote }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "proxima.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ $root.Release.Service }}
  {{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
  helm.sh/chart: {{ $chart | trunc 63 | trimSuffix "-" }}
  {{- with $root.Values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The name of the Secret with the keys of the fleet. */}}
{{- define "proxima.secret" -}}
{{- .Values.cache.fleet.keys.secret | default (include "proxima.name" (list . "keys")) }}
{{- end }}

{{/* The name of the Secret with the token of admin ports, if they have one. */}}
{{- define "proxima.tokenSecret" -}}
{{- if ne .Values.admin.token.from "none" }}
{{- .Values.admin.token.secret | default (include "proxima.name" (list . "token")) }}
{{- end }}
{{- end }}
