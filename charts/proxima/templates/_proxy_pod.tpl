{{/* The pod of a proxy, in a fleet with its memcached (list ROOT NAME PROXY). */}}
{{- define "proxima.proxyPod" -}}
{{- $root := index . 0 }}
{{- $proxy := index . 2 }}
{{- $drain := $proxy.configuration.drain | default dict }}
{{- $delay := include "proxima.seconds" ($drain.delay | default "0s") }}
{{- $limit := include "proxima.seconds" ($drain.limit | default "20s") }}
{{- $written := include "proxima.proxyLabels" $proxy | fromYaml }}
{{- $object := include "proxima.name" (list $root $proxy.part) -}}
metadata:
  {{- include "proxima.podMetadata" (list $root $proxy.part $written) | nindent 2 }}
spec:
  {{- include "proxima.placement" (list $root $proxy.pod) | nindent 2 }}
  serviceAccountName: {{ include "proxima.name" (list $root "") }}
  automountServiceAccountToken: {{ $proxy.asksApi | not | not }}
  # The drain ends before the kubelet's patience does, and a peer says goodbye after it.
  terminationGracePeriodSeconds: {{ add $delay $limit 10 }}
  {{- if $proxy.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  securityContext:
    # Both containers use the socket, and the proxy reads the Secret.
    fsGroup: 65532
  {{- if or (eq $proxy.folder.type "hostPath") $proxy.hasCopy }}
  initContainers:
    {{- if $proxy.hasCopy }}
    {{- include "proxima.memcached" $root | nindent 4 }}
    {{- end }}
    {{- if eq $proxy.folder.type "hostPath" }}
    # The kubelet makes a folder of root; the program is not root.
    - name: folder
      {{- include "proxima.image" (list $root $root.Values.image) | nindent 6 }}
      args: [fleet, own, /var/lib/proxima, --user, "65532:65532"]
      resources:
        requests: {cpu: 10m, memory: 64Mi}
        limits: {memory: 64Mi}
      securityContext:
        runAsUser: 0
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL], add: [CHOWN]}
        seccompProfile: {type: RuntimeDefault}
      volumeMounts:
        - {name: folder, mountPath: /var/lib/proxima}
    {{- end }}
  {{- end }}
  containers:
    {{- if $proxy.hasCopy }}
    {{- with $root.Values.cache.memcached.containers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    - name: proxima
      {{- include "proxima.image" (list $root $root.Values.image) | nindent 6 }}
      {{- $args := list "run" "--config" "/etc/proxima/config/proxima.yaml" }}
      {{- if $proxy.hostNetwork }}
      {{- $args = append $args (printf "--admin=$(HOST_IP):%v" $proxy.adminPort) }}
      {{- range $proxy.ports }}{{ $args = append $args (printf "--listen=$(HOST_IP):%v" .port) }}{{ end }}
      {{- end }}
      args: {{ concat $args $proxy.args | toJson }}
      env:
        # The name of the peer, and which servers are on this node.
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        {{- if $proxy.hostNetwork }}
        - name: HOST_IP
          valueFrom: {fieldRef: {fieldPath: status.hostIP}}
        {{- end }}
        {{- with $proxy.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- range $proxy.ports }}
        - name: {{ .name }}
          containerPort: {{ .port }}
          {{- if or $proxy.hostPort $proxy.hostNetwork }}
          hostPort: {{ .port }}
          {{- end }}
        {{- end }}
        {{- range $port, $number := include "proxima.innerPorts" (list $root $proxy) | fromYaml }}
        - name: {{ $port }}
          containerPort: {{ $number }}
          {{- if $proxy.hostNetwork }}
          hostPort: {{ $number }}
          {{- end }}
        {{- end }}
      startupProbe:
        httpGet: {port: admin, path: /live}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet: {port: admin, path: /live}
        periodSeconds: 5
        failureThreshold: 3
      # A peer is ready when it has a lease, and a copy, its own or a neighbour's, may be read. A witness has
      # neither.
      readinessProbe:
        httpGet: {port: admin, path: {{ $proxy.isWitness | ternary "/live" "/ready" }}}
        periodSeconds: 2
        failureThreshold: 1
      resources:
        {{- toYaml $proxy.resources | nindent 8 }}
      securityContext:
        {{- include "proxima.restricted" . | nindent 8 }}
      volumeMounts:
        # Folders are mounted, and not files alone (subPath), which would never change.
        - {name: configuration, mountPath: /etc/proxima/config, readOnly: true}
        - {name: folder, mountPath: /var/lib/proxima}
        {{- if include "proxima.tokenSecret" $root }}
        - {name: token, mountPath: /etc/proxima/admin, readOnly: true}
        {{- end }}
        {{- if $proxy.isPeer }}
        - {name: keys, mountPath: /etc/proxima/tls, readOnly: true}
        {{- end }}
        {{- if $proxy.hasCopy }}
        - {name: socket, mountPath: /run/memcached}
        {{- end }}
        {{- if $root.Values.agent.enabled }}
        - {name: agent, mountPath: /run/proxima-agent, readOnly: true}
        {{- end }}
        {{- with $proxy.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $proxy.containers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: configuration
      configMap: {name: {{ $object }}}
    - name: folder
      {{- if eq $proxy.folder.type "hostPath" }}
      hostPath:
        path: {{ printf "%s/%s/%s" (trimSuffix "/" $proxy.folder.path) $root.Release.Namespace $object }}
        type: DirectoryOrCreate
      {{- else }}
      emptyDir: {sizeLimit: 64Mi}
      {{- end }}
    {{- with include "proxima.tokenSecret" $root }}
    - name: token
      secret:
        secretName: {{ . }}
        defaultMode: 0440
        items: [{key: token, path: token}]
    {{- end }}
    {{- if $proxy.isPeer }}
    - name: keys
      secret:
        secretName: {{ include "proxima.secret" $root }}
        defaultMode: 0440
        # The authority's own key is no proxy's business.
        items:
          - {key: ca.crt, path: ca.crt}
          - {key: tls.crt, path: tls.crt}
          - {key: tls.key, path: tls.key}
    {{- end }}
    {{- if $proxy.hasCopy }}
    - name: socket
      emptyDir: {medium: Memory, sizeLimit: 1Mi}
    {{- end }}
    {{- if $root.Values.agent.enabled }}
    - name: agent
      hostPath: {path: /run/proxima-agent, type: DirectoryOrCreate}
    {{- end }}
    {{- with $proxy.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Ports of a proxy beside those of clients (list ROOT PROXY). */}}
{{- define "proxima.innerPorts" -}}
{{- $proxy := index . 1 -}}
admin: {{ $proxy.adminPort }}
{{- if $proxy.isPeer }}
fleet: {{ (index . 0).Values.cache.fleet.port }}
{{- end }}
{{- end }}

{{/* What is written on a proxy's pod: the user's labels and annotations, the labels by which peers and the
Service of admin ports select it, and a digest of what the program reads at its start only, so that a change
of it restarts it. The alerts would take a witness for a peer that never has a lease. */}}
{{- define "proxima.proxyLabels" -}}
{{- $start := pick .configuration "workers" "admin" "embedded" "state" "fleet" | toJson | sha256sum }}
{{- $own := dict }}
{{- if not .isWitness }}{{ $_ := set $own "proxima.io/admin" "true" }}{{ end }}
{{- if .isPeer }}{{ $_ := set $own "proxima.io/peer" "true" }}{{ end }}
{{- $labels := merge $own .pod.labels }}
{{- $annotations := merge (dict "proxima.io/read-at-start" (trunc 16 $start)) .pod.annotations }}
{{- dict "labels" $labels "annotations" $annotations | toYaml }}
{{- end }}
