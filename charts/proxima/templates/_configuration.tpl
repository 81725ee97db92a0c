{{/* The address of a port on which a proxy listens (list ROOT PORT). With the network of the node, the
command line has the node's address in place of those of the listener and the admin port. */}}
{{- define "proxima.address" -}}
{{- printf "%s:%v" ((index . 0).Values.dualStack | ternary "[::]" "0.0.0.0") (index . 1) }}
{{- end }}

{{/* What the chart knows of the configuration of any proxy (list ROOT PROXY). */}}
{{- define "proxima.known" -}}
{{- $root := index . 0 }}
{{- $proxy := index . 1 -}}
admin:
  address: {{ include "proxima.address" (list $root $proxy.adminPort) | quote }}
  {{- if include "proxima.tokenSecret" $root }}
  token_file: /etc/proxima/admin/token
  {{- end }}
{{- if $root.Values.agent.enabled }}
nodes: agent
{{- end }}
{{- end }}

{{/* What the chart knows beside that of peers. */}}
{{- define "proxima.knownOfPeers" -}}
{{- $port := .Values.cache.fleet.port -}}
fleet:
  listen: {{ include "proxima.address" (list . $port) | quote }}
  peers:
    kubernetes: {{ printf "%s:%v" (include "proxima.name" (list . "fleet")) $port }}
  name: ${NODE_NAME}
  dir: /var/lib/proxima/fleet
  tls:
    certificate: /etc/proxima/tls/tls.crt
    key: /etc/proxima/tls/tls.key
    ca: /etc/proxima/tls/ca.crt
{{- end }}

{{/* What the chart knows beside that of the witness. Nobody connects to its listener, which there must be. */}}
{{- define "proxima.knownOfWitness" -}}
fleet:
  name: witness
  role: witness
listeners:
  - address: unix:/var/lib/proxima/nobody.sock
    route: "null"
{{- end }}

{{/* What the chart knows beside that of the cache's proxies. */}}
{{- define "proxima.knownOfCache" -}}
{{- $root := . }}
{{- $cache := .Values.cache }}
{{- if eq $cache.mode "fleet" -}}
pools:
  cache:
    own: unix:/run/memcached/memcached.sock
    replicated:
      enabled: true
{{- else -}}
state: /var/lib/proxima/copies.json
pools:
  cache:
    kubernetes: {{ printf "%s:%v" (include "proxima.name" (list $root "memcached")) $cache.memcached.port }}
    replicated:
      enabled: true
{{- end }}
{{- end }}

{{/* The whole configuration of a proxy (list ROOT NAME PROXY). */}}
{{- define "proxima.configuration" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $proxy := index . 2 }}
{{- $place := printf "%s.config" $proxy.place }}
{{- $known := include "proxima.known" (list $root $proxy) | fromYaml }}
{{- if $proxy.isPeer }}
{{- $known = merge (include "proxima.knownOfPeers" $root | fromYaml) $known }}
{{- end }}
{{- $listeners := $proxy.config.listeners | default list }}
{{- if eq $name "cache" }}
{{- $cache := $root.Values.cache }}
{{- $known = merge $known (include "proxima.knownOfCache" $root | fromYaml) }}
{{- $address := dict "address" (include "proxima.address" (list $root $cache.port)) }}
{{- include "proxima.refuseContradictions" (list $address $cache.listener "cache.listener") }}
{{- $listeners = prepend $listeners (include "proxima.merged" (list $cache.listener $address) | fromYaml) }}
{{- range list "servers" "file" "dns" "elasticache" "kubernetes" "own" "source" }}
{{- if and (hasKey (dig "pools" "cache" (dict) $proxy.config) .) (not (hasKey $known.pools.cache .)) }}
{{- fail (printf
    "%s.pools.cache.%s: the chart says which servers the pool `cache` has; name another pool"
    $place .) }}
{{- end }}
{{- end }}
{{- else if $proxy.isWitness }}
{{- $known = mergeOverwrite $known (include "proxima.knownOfWitness" $root | fromYaml) }}
{{- $listeners = $known.listeners }}
{{- else if hasKey $proxy.config "fleet" }}
{{- fail (printf
    "%s.fleet: only the cache's proxies are peers of the fleet: two peers of one name would be refused"
    $place) }}
{{- end }}
{{- if empty $listeners }}
{{- fail (printf
    "%s.listeners: say where its clients connect, and which route their requests enter"
    $place) }}
{{- end }}
{{- /* The address alone is the short form of the same. */}}
{{- $said := deepCopy $proxy.config }}
{{- if kindIs "string" $said.admin }}
{{- $_ := set $said "admin" (dict "address" $said.admin) }}
{{- end }}
{{- if dig "admin" "tls" "" $said }}
{{- fail (printf "%s.admin.tls: the kubelet and Prometheus ask the admin port without TLS" $place) }}
{{- end }}
{{- if and $proxy.hostNetwork (gt (len $listeners) 1) }}
{{- fail (printf
    "%s.hostNetwork: one listener alone can have the address of the node, and there are %d"
    $proxy.place (len $listeners)) }}
{{- end }}
{{- include "proxima.refuseContradictions" (list $known $said $place) }}
{{- $configuration := include "proxima.merged" (list $said $known) | fromYaml }}
{{- set $configuration "listeners" $listeners | toYaml }}
{{- end }}

{{/* The ports of a proxy's clients (list ROOT PROXY), as a map with the list `ports`. Listeners on Unix
sockets and on addresses of the loopback interface have none. */}}
{{- define "proxima.clientPorts" -}}
{{- $proxy := index . 1 }}
{{- $ports := list }}
{{- $taken := dict }}
{{- range include "proxima.innerPorts" . | fromYaml }}
{{- $_ := set $taken (toString .) true }}
{{- end }}
{{- range $proxy.configuration.listeners }}
{{- if not (regexMatch "^(unix:|127[.]|localhost:|\\[::1\\])" .address) }}
{{- $port := regexFind "[0-9]+$" .address }}
{{- if hasKey $taken $port }}
{{- fail (printf
    "%s: port %s is that of another listener, of `adminPort` or of the fleet"
    $proxy.place $port) }}
{{- end }}
{{- $_ := set $taken $port true }}
{{- $portName := printf "%s-%s" (.protocol | default "memcached") $port }}
{{- $ports = append $ports (dict "name" $portName "port" (int $port)) }}
{{- end }}
{{- end }}
{{- dict "ports" $ports | toYaml }}
{{- end }}

{{/* Whether one of the pools follows a Service at the API server, or the peers do. */}}
{{- define "proxima.asksApi" -}}
{{- $asks := dig "fleet" "peers" "kubernetes" "" . | not | not }}
{{- range .pools }}
{{- if kindIs "map" . }}
{{- $asks = or $asks (hasKey . "kubernetes") (hasKey (.source | default dict) "kubernetes") }}
{{- end }}
{{- end }}
{{- $asks | ternary "yes" "" }}
{{- end }}
