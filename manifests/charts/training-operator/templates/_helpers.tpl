{{- define "operator.name" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "operator.secret.name" -}}
{{ include "operator.name" . }}-webhook-cert
{{- end }}

{{- define "operator.labels" -}}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" .Chart.Name
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/part-of" "kubeflow"
  "app" "training-operator" }}
{{- mergeOverwrite $labels (deepCopy .Values.commonLabels) | toYaml }}
{{- end }}

{{- /* As in manifests/v1/controller, so that the chart can take that installation over. */}}
{{- define "operator.selectorLabels" -}}
control-plane: kubeflow-training-operator
{{- end }}

{{- /* A tag of digits in a file of values is a float64. */}}
{{- define "operator.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ if kindIs "float64" $tag }}{{ int64 $tag }}{{ else }}{{ $tag }}{{ end }}{{ end }}
{{- end }}
