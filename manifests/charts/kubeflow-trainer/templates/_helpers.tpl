{{- define "trainer.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The release's name where it contains the chart's, else RELEASE-CHART: as upstream's chart. */}}
{{- define "trainer.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "trainer.manager.name" -}}
{{ include "trainer.fullname" . }}-controller-manager
{{- end }}

{{- define "trainer.service.name" -}}
{{ .Values.manager.config.certManagement.webhookServiceName | default (include "trainer.manager.name" .) }}
{{- end }}

{{- define "trainer.secret.name" -}}
{{ .Values.manager.config.certManagement.webhookSecretName | default (printf "%s-webhook-cert" (include "trainer.name" .)) }}
{{- end }}

{{- define "trainer.lease.name" -}}
{{ .Values.manager.config.leaderElection.resourceName | default "trainer.kubeflow.org" }}
{{- end }}

{{- /* By what a Deployment finds its pods: never changes in the life of a release. */}}
{{- define "trainer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trainer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: kubeflow
app.kubernetes.io/component: manager
{{- with .Values.manager.selectorLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Of every object. Takes (list ROOT COMPONENT). */}}
{{- define "trainer.labels" -}}
{{- $root := first . }}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/name" (include "trainer.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/part-of" "kubeflow"
  "app.kubernetes.io/component" (last .) }}
{{- if eq (last .) "manager" }}
{{- $labels = mergeOverwrite $labels (deepCopy $root.Values.manager.labels) }}
{{- end }}
{{- mergeOverwrite $labels (deepCopy $root.Values.commonLabels) | toYaml }}
{{- end }}

{{- /* REGISTRY/REPOSITORY[:TAG]; takes a dict of these. A tag of digits in a file of values is a float64. */}}
{{- define "trainer.imageOf" -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}{{ with .digest }}@{{ . }}{{ else }}{{ with .tag }}:{{ if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ end }}{{ end }}
{{- end }}

{{- define "trainer.image" -}}
{{- include "trainer.imageOf" (merge (dict "tag" (.Values.image.tag | default .Chart.AppVersion)) .Values.image) }}
{{- end }}

{{- /* The port of "HOST:PORT" or ":PORT". */}}
{{- define "trainer.port" -}}
{{ regexFind "[0-9]+$" . }}
{{- end }}


{{- /* A pod of a hook: the controller's image, a command, an account. Takes (list ROOT NAME ACCOUNT COMMAND). */}}
{{- define "trainer.hookPod" -}}
{{- $root := index . 0 }}
{{- $installer := $root.Values.runtimes.installer }}
metadata:
  labels:
    {{- include "trainer.labels" (list $root "runtimes-installer") | nindent 4 }}
  # A sidecar would not end with the Job.
  annotations: {sidecar.istio.io/inject: "false"}
spec:
  restartPolicy: Never
  serviceAccountName: {{ index . 2 }}
  {{- with concat $root.Values.image.pullSecrets $installer.imagePullSecrets | uniq }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
  containers:
  - name: {{ index . 1 }}
    image: {{ include "trainer.image" $root }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command:
      {{- toYaml (index . 3) | nindent 6 }}
    {{- with $installer.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      readOnlyRootFilesystem: true
  {{- with $installer.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $installer.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $installer.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Name and labels; takes (list ROOT NAME COMPONENT). */}}
{{- define "trainer.metadata" -}}
name: {{ index . 1 }}
labels:
  {{- include "trainer.labels" (list (index . 0) (index . 2)) | nindent 2 }}
{{- end }}
