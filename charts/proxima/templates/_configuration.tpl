{{/* The address of a port on which a proxy listens (list ROOT PORT). With the network of the node, the
command line has the node's address in place of those of the listener and the admin port. */}}
{{- define "proxima.address" -}}
{{- printf "%s:%v" ((index . 0).Values.dualStack | ternary "[::]" "0.0.0.0") (index . 1) }}
{{- end }}

{{/* What the chart knows of the configuration of any proxy (list ROOT PROXY). */}}
{{- define "proxima.known" -}}
{{- $root := index . 0 }}
{{- $proxy := index . 1 -}}
admin: {{ include "proxima.address" (list $root $proxy.adminPort) | quote }}
{{- if $root.Values.agent.enabled }}
nodes: agent
{{- end }}
{{- end }}

{{/* What the chart knows beside that of the cache's proxies. */}}
{{- define "proxima.knownOfCache" -}}
{{- $root := . }}
{{- $cache := .Values.cache }}
{{- if eq $cache.mode "fleet" -}}
fleet:
  listen: {{ include "proxima.address" (list $root $cache.fleet.port) | quote }}
  peers:
    kubernetes: {{ printf "%s:%v" (include "proxima.name" (list $root "fleet")) $cache.fleet.port }}
  name: ${NODE_NAME}
  dir: /var/lib/proxima/fleet
  tls:
    certificate: /etc/proxima/tls/tls.crt
    key: /etc/proxima/tls/tls.key
    ca: /etc/proxima/tls/ca.crt
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
{{- $place := printf "proxies.%s.config" $name }}
{{- $known := include "proxima.known" (list $root $proxy) | fromYaml }}
{{- $listeners := $proxy.config.listeners | default list }}
{{- if eq $name "cache" }}
{{- $place = "cache.proxy.config" }}
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
{{- if and $proxy.hostNetwork (gt (len $listeners) 1) }}
{{- fail (printf
    "%s.hostNetwork: one listener alone can have the address of the node, and there are %d"
    $proxy.place (len $listeners)) }}
{{- end }}
{{- include "proxima.refuseContradictions" (list $known $proxy.config $place) }}
{{- $configuration := include "proxima.merged" (list $proxy.config $known) | fromYaml }}
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
