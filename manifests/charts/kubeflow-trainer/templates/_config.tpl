{{- /* The controller's configuration file as YAML: manager.config without what is at the program's default by being empty. */}}
{{- define "trainer.config" -}}
{{- $config := deepCopy .Values.manager.config }}
{{- $_ := set $config "apiVersion" "config.trainer.kubeflow.org/v1alpha1" }}
{{- $_ := set $config "kind" "Configuration" }}
{{- range $path := list "webhook.host" "leaderElection.resourceNamespace" "clientConnection.qps" "clientConnection.burst" "statusServer.qps" "statusServer.burst" }}
{{- $part := first (splitList "." $path) }}
{{- $name := last (splitList "." $path) }}
{{- if not (get (get $config $part) $name) }}
{{- $_ := unset (get $config $part) $name }}
{{- end }}
{{- end }}
{{- $_ := unset $config.health "readinessEndpointName" }}
{{- $_ := unset $config.health "livenessEndpointName" }}
{{- $certificates := $config.certManagement }}
{{- $_ := set $certificates "webhookServiceName" (include "trainer.service.name" .) }}
{{- $_ := set $certificates "webhookSecretName" (include "trainer.secret.name" .) }}
{{- if .Values.certManager.enabled }}
{{- $_ := set $certificates "enable" false }}
{{- end }}
{{- $counts := get $config.controller "groupKindConcurrency" }}
{{- $concurrency := dict }}
{{- with $counts.trainJob }}{{ $_ := set $concurrency "TrainJob.trainer.kubeflow.org" . }}{{ end }}
{{- with $counts.jobSet }}{{ $_ := set $concurrency "JobSet.jobset.x-k8s.io" . }}{{ end }}
{{- $_ := set $config "controller" (dict "groupKindConcurrency" $concurrency) }}
{{- if .Values.v1.enabled }}
{{- $_ := set $config "trainingOperator" (mergeOverwrite (dict "schemes" .Values.v1.schemes) (get $config "trainingOperator" | default dict)) }}
{{- end }}
{{- if .Values.mpi.enabled }}
{{- $_ := set $config "mpiOperator" (mergeOverwrite (dict "enabled" true) (get $config "mpiOperator" | default dict)) }}
{{- end }}
{{- if not $concurrency }}{{ $_ := unset $config "controller" }}{{ end }}
{{- range $part := list "clientConnection" "featureGates" }}
{{- if not (get $config $part) }}{{ $_ := unset $config $part }}{{ end }}
{{- end }}
{{- toYaml $config }}
{{- end }}
