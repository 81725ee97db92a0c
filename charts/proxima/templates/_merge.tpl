{{/* What is left of BASE when OVER says otherwise (list BASE OVER). Unlike sprig's function it knows `false`,
0 and empty lists as words, too. */}}
{{- define "proxima.merged" -}}
{{- $merged := deepCopy (index . 0) }}
{{- range $key, $value := index . 1 }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $merged $key)) }}
{{- $value = include "proxima.merged" (list (get $merged $key) $value) | fromYaml }}
{{- end }}
{{- $_ := set $merged $key $value }}
{{- end }}
{{- toYaml $merged }}
{{- end }}

{{/* Fails where SAID has another value than OWN at the same place (list OWN SAID PLACE): what the chart
writes into a configuration must fit its Services, ports, volumes and probes. */}}
{{- define "proxima.refuseContradictions" -}}
{{- $place := index . 2 }}
{{- $said := index . 1 }}
{{- range $key, $own := index . 0 }}
{{- if hasKey $said $key }}
{{- $value := get $said $key }}
{{- if and (kindIs "map" $own) (kindIs "map" $value) }}
{{- include "proxima.refuseContradictions" (list $own $value (printf "%s.%s" $place $key)) }}
{{- else if ne (toJson $own) (toJson $value) }}
{{- fail (printf
    "%s.%s: %s contradicts the chart, which writes %s: leave it out"
    $place $key (toJson $value) (toJson $own)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
