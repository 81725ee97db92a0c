{{/* All proxies of the release by name, each with its settings over those of all, `part` (of its
objects' names), `configuration`, `ports` (of clients) and `asksApi`. The cache's is `cache`. */}}
{{- define "proxima.proxies" -}}
{{- $proxies := dict }}
{{- $said := deepCopy .Values.proxies }}
{{- $parts := list "cache" "fleet" "witness" "keys" "renewal" "token" "memcached" "admin" "agent" }}
{{- $parts = concat $parts (list "operator" "versions") }}
{{- range keys $said }}{{ $parts = append $parts (printf "%s-admin" .) }}{{ end }}
{{- range $parts }}
{{- if hasKey $said . }}
{{- fail (printf "proxies.%s: the chart has objects of this name: choose another" .) }}
{{- end }}
{{- end }}
{{- if ne .Values.cache.mode "none" }}
{{- $_ := set $said "cache" .Values.cache.proxy }}
{{- end }}
{{- $places := dict "cache" "cache.proxy" "witness" "cache.fleet.witness" }}
{{- $isFleet := eq .Values.cache.mode "fleet" }}
{{- if and $isFleet .Values.cache.fleet.witness.enabled }}
{{- $_ := set $said "witness" (include "proxima.witness" . | fromYaml) }}
{{- end }}
{{- range $name, $own := $said }}
{{- $proxy := include "proxima.merged" (list $.Values.proxy $own) | fromYaml }}
{{- $_ := set $proxy "place" (get $places $name | default (printf "proxies.%s" $name)) }}
{{- $_ := set $proxy "part" (eq $name "cache" | ternary "" $name) }}
{{- $_ := set $proxy "isWitness" (eq $name "witness") }}
{{- $_ := set $proxy "hasCopy" (and (eq $name "cache") $isFleet) }}
{{- $_ := set $proxy "isPeer" (or $proxy.hasCopy $proxy.isWitness) }}
{{- include "proxima.refuseNeighbours" (list $ $proxy) }}
{{- $configuration := include "proxima.configuration" (list $ $name $proxy) | fromYaml }}
{{- $_ := set $proxy "configuration" $configuration }}
{{- $_ := set $proxy "ports" (include "proxima.clientPorts" (list $ $proxy) | fromYaml).ports }}
{{- $_ := set $proxy "asksApi" (include "proxima.asksApi" $configuration) }}
{{- $buffers := dig "limits" "total_bytes" "1GiB" $configuration | include "proxima.mebibytes" }}
{{- range $store := list "embedded" "near" }}
{{- $buffers = add $buffers (dig $store "memory" 0 $configuration | include "proxima.mebibytes") }}
{{- end }}
{{- $sizes := list $proxy.resources (add $buffers 256) $buffers $proxy.place }}
{{- $_ := set $proxy "resources" (include "proxima.resources" $sizes | fromYaml) }}
{{- $_ := set $proxies $name $proxy }}
{{- end }}
{{- include "proxima.refuseSharedPorts" (list $ $proxies) }}
{{- toYaml $proxies }}
{{- end }}

{{/* The witness of the fleet: what differs from `proxy`. It has no clients, and the network, the folder and the
settings of its fleet are those of the peers, whose nodes it avoids. */}}
{{- define "proxima.witness" -}}
{{- $peers := .Values.cache.proxy }}
{{- $own := pick $peers "adminPort" "hostNetwork" "folder" }}
{{- $_ := set $own "config" (pick ($peers.config | default dict) "fleet") }}
{{- $fixed := dict "kind" "Deployment" "replicas" 1 "hostPort" false "service" (dict "enabled" false) }}
{{- $selector := include "proxima.selector" (list . "") | fromYaml }}
{{- $apart := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $selector) }}
{{- /* It may not be required: a node that has the witness already would then get no pod of the cache. */}}
{{- $preferred := list (dict "weight" 100 "podAffinityTerm" $apart) }}
{{- $affinity := dict "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" $preferred) }}
{{- $_ := set $fixed "pod" (dict "affinity" $affinity) }}
{{- $own = merge $fixed $own }}
{{- include "proxima.merged" (list $own (omit .Values.cache.fleet.witness "enabled")) }}
{{- end }}

{{/* Fails where two pods of a proxy on one node would be in each other's way (list ROOT PROXY). */}}
{{- define "proxima.refuseNeighbours" -}}
{{- $proxy := index . 1 }}
{{- $place := $proxy.place }}
{{- if and $proxy.hostNetwork (index . 0).Values.dualStack }}
{{- fail (printf (print
    "%s.hostNetwork: a pod with the network of the node listens on its one address `status.hostIP`, and"
    " dualStack asks for two: use hostPort") $place) }}
{{- end }}
{{- if and (eq $proxy.kind "Deployment") (eq $proxy.folder.type "hostPath") (not $proxy.isWitness) }}
{{- fail (printf (print
    "%s.folder.type: two pods of a Deployment may be on one node, where they would share the folder: "
    "use emptyDir, or kind DaemonSet") $place) }}
{{- end }}
{{- if and $proxy.isPeer (ne (toString $proxy.update.maxUnavailable) "1") }}
{{- fail (printf
    "%s.update.maxUnavailable: peers are replaced one by one, or the fleet could lose its voters"
    $place) }}
{{- end }}
{{- if eq (toString $proxy.update.maxSurge) "0" | not }}
{{- if $proxy.isPeer }}
{{- fail (printf (print
    "%s.update.maxSurge: the new pod would be a second peer of one name beside the old one: use "
    "maxUnavailable") $place) }}
{{- else if or $proxy.hostPort $proxy.hostNetwork }}
{{- fail (printf (print
    "%s.update.maxSurge: beside a host port the new pod finds the port taken by the old one: use "
    "maxUnavailable") $place) }}
{{- else if eq $proxy.folder.type "hostPath" }}
{{- fail (printf
    "%s.update.maxSurge: the new pod would share the old one's folder on the node: use maxUnavailable"
    $place) }}
{{- end }}
{{- else if eq (toString $proxy.update.maxUnavailable) "0" }}
{{- fail (printf "%s.update: with maxUnavailable 0 and maxSurge 0 no pod could ever be replaced" $place) }}
{{- end }}
{{- end }}

{{/* Fails where two proxies of this release want one port of the node (list ROOT PROXIES). The witness is on a
node of its own. */}}
{{- define "proxima.refuseSharedPorts" -}}
{{- $taken := dict }}
{{- range $name, $proxy := omit (index . 1) "witness" }}
{{- $ports := list }}
{{- if or $proxy.hostPort $proxy.hostNetwork }}
{{- range $proxy.ports }}{{ $ports = append $ports (toString .port) }}{{ end }}
{{- end }}
{{- if $proxy.hostNetwork }}
{{- $ports = append $ports (toString $proxy.adminPort) }}
{{- if $proxy.isPeer }}{{ $ports = append $ports (toString (index $ 0).Values.cache.fleet.port) }}{{ end }}
{{- end }}
{{- range $ports }}
{{- if hasKey $taken . }}
{{- fail (printf "%s: port %s of the node is taken by %s" $proxy.place . (get $taken .)) }}
{{- end }}
{{- $_ := set $taken . $proxy.place }}
{{- end }}
{{- end }}
{{- end }}
