{{/* The container of a memcached: in a fleet at a Unix socket, else at a port. */}}
{{- define "proxima.memcached" -}}
{{- $memcached := .Values.cache.memcached }}
{{- $size := include "proxima.mebibytes" .Values.cache.size | int64 }}
{{- $where := list "-p" (toString $memcached.port) }}
{{- if eq .Values.cache.mode "fleet" }}
{{- $where = list "-s" "/run/memcached/memcached.sock" "-a" "0770" }}
{{- end }}
{{- $sizes := list "-m" (toString $size) "-c" (toString $memcached.connections) }}
{{- $memory := add (divf (mulf $size 9) 8 | ceil | int64) 128 -}}
- name: memcached
  {{- include "proxima.image" (list . $memcached.image) | nindent 2 }}
  args: {{ concat $where $sizes $memcached.args | toJson }}
  {{- if eq .Values.cache.mode "fleet" }}
  # It begins before the proxy and ends after it: a peer that drains still serves from it.
  restartPolicy: Always
  {{- end }}
  {{- with $memcached.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .Values.cache.mode "copies" }}
  ports:
    - {name: memcached, containerPort: {{ $memcached.port }}}
  # There is no readiness probe: a memcached that was left out for a while would come back with old values.
  # The liveness probe restarts it instead, and then it is empty.
  startupProbe:
    tcpSocket: {port: memcached}
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    tcpSocket: {port: memcached}
    periodSeconds: 5
    failureThreshold: 3
  # It serves until the proxies have heard that it ends, and send nothing there any more.
  lifecycle:
    preStop:
      sleep: {seconds: 3}
  {{- end }}
  resources:
    {{- include "proxima.resources" (list $memcached.resources $memory $size "cache.memcached") | nindent 4 }}
  securityContext:
    runAsUser: 11211
    runAsGroup: 65532
    {{- include "proxima.restricted" . | nindent 4 }}
  {{- if or $memcached.volumeMounts (eq .Values.cache.mode "fleet") }}
  volumeMounts:
    {{- if eq .Values.cache.mode "fleet" }}
    - {name: socket, mountPath: /run/memcached}
    {{- end }}
    {{- with $memcached.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
