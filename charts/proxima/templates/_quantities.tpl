{{/* A size of Proxima's or Kubernetes' (`256MiB`, `1Gi`, `10k`, `4096`), in MiB, rounded up. */}}
{{- define "proxima.mebibytes" -}}
{{- $text := kindIs "string" . | ternary . (printf "%.0f" (float64 .)) }}
{{- $factors := dict "" 1 "k" 1000 "m" 1000000 "g" 1000000000 "ki" 1024 "mi" 1048576 "gi" 1073741824 }}
{{- $factor := regexReplaceAll "^[0-9.]+" $text "" | lower | trimSuffix "b" | get $factors }}
{{- if or (empty $factor) (not (regexMatch "^[0-9]+([.][0-9]+)?[a-zA-Z]*$" $text)) }}
{{- fail (printf "%s is no size: write a number and a unit, as in 256MiB" $text) }}
{{- end }}
{{- divf (mulf (regexFind "^[0-9.]+" $text | float64) $factor) 1048576 | ceil | int64 }}
{{- end }}

{{/* A duration (`5s`, `500ms`, `1m`) in seconds, rounded up. */}}
{{- define "proxima.seconds" -}}
{{- $factors := dict "us" 0.000001 "ms" 0.001 "s" 1 "m" 60 "h" 3600 "d" 86400 }}
{{- $factor := regexReplaceAll "^[0-9.]+" (toString .) "" | get $factors }}
{{- if empty $factor }}
{{- fail (printf "%v is no duration: write a number and a unit, as in 5s" .) }}
{{- end }}
{{- mulf (regexFind "^[0-9.]+" . | float64) $factor | ceil | int64 }}
{{- end }}

{{/* Resources with a limit of so many MiB where RESOURCES say none (list RESOURCES MIB LEAST NAME). */}}
{{- define "proxima.resources" -}}
{{- $resources := deepCopy (index . 0) }}
{{- $memory := printf "%vMi" (index . 1) }}
{{- $limits := merge (dict) ($resources.limits | default dict) (dict "memory" $memory) }}
{{- if lt (include "proxima.mebibytes" $limits.memory | int64) (index . 2 | int64) }}
{{- fail (printf
    "%s.resources.limits.memory: %s is less than the %vMi that it is configured to use"
    (index . 3) $limits.memory (index . 2)) }}
{{- end }}
{{- if hasKey $limits "cpu" }}
{{- fail (printf (print
    "%s.resources.limits.cpu: there must be no limit on CPU: a throttled proxy or server slows every "
    "writer") (index . 3)) }}
{{- end }}
{{- $requests := merge (dict) ($resources.requests | default dict) (dict "memory" $limits.memory) }}
{{- merge (dict "limits" $limits "requests" $requests) $resources | toYaml }}
{{- end }}
