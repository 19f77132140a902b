{{- define "tollgate.name" -}}
{{- printf "%s" (ternary .Release.Name (printf "%s-tollgate" .Release.Name) (contains "tollgate" .Release.Name)) | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tollgate.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "tollgate.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end }}

{{- /* Mistakes that a schema cannot see, with what would be right. */}}
{{- define "tollgate.check" -}}
{{- if and (eq .Values.mode "gateway") (not .Values.upstream) (not .Values.routes) }}
{{- fail "mode: gateway needs upstream: http://HOST:PORT, or routes" }}{{ end }}
{{- if and (eq .Values.store.url "memory") (or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled) }}
{{- fail "store.url: memory is for one node: set replicas: 1, or a store that all nodes share, such as store.url: redis://HOST:6379" }}{{ end }}
{{- if and (hasPrefix "sqlite" .Values.database.url) (or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled) }}
{{- fail "database.url: sqlite is for one node: set replicas: 1, or database.url: postgres://…" }}{{ end }}
{{- if and (eq .Values.mode "service") (not .Values.access.anonymous) (not .Values.access.tokenSecret.name) }}
{{- fail "who may ask? set access.tokenSecret.name to a Secret with one token per line, or access.anonymous: true" }}{{ end }}
{{- end }}
