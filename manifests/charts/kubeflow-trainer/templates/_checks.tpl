{{- /* Values that can have no effect here: each is refused by its name, with what to write instead. What upstream's chart has as
its default is accepted, but for the image of another program. */}}
{{- define "trainer.checks" -}}
{{- $v := .Values }}
{{- if eq $v.image.repository "kubeflow/trainer/trainer-controller-manager" }}
{{- fail "image.repository: kubeflow/trainer/trainer-controller-manager is the image of another program: leave image.registry and image.repository out, or name your copy of this controller's image" }}
{{- end }}
{{- if not (has $v.jobset.fullnameOverride (list "" "jobset")) }}
{{- fail "jobset.fullnameOverride: no JobSet release is part of this chart, the controller expands JobSets by itself: leave it out" }}
{{- end }}
{{- if not (has $v.dataCache.lws.fullnameOverride (list "" "lws")) }}
{{- fail "dataCache.lws.fullnameOverride: the data cache needs no LeaderWorkerSet, and none is installed: leave it out" }}
{{- end }}
{{- with $v.runtimes.installer.image }}
{{- if or (not (has (.registry | default "docker.io") (list "docker.io"))) (ne (.repository | default "alpine") "alpine") (ne (.tag | default "3.21" | toString) "3.21") }}
{{- fail "runtimes.installer.image: runtimes are applied by the controller's own image: write image.registry, image.repository and image.tag" }}
{{- end }}
{{- end }}
{{- $health := $v.manager.config.health }}
{{- if ne ($health.readinessEndpointName | default "readyz" | trimPrefix "/") "readyz" }}
{{- fail "manager.config.health.readinessEndpointName: the endpoint is /readyz, and the Deployment's probe asks for that: leave it out" }}
{{- end }}
{{- if ne ($health.livenessEndpointName | default "healthz" | trimPrefix "/") "healthz" }}
{{- fail "manager.config.health.livenessEndpointName: the endpoint is /healthz, and the Deployment's probe asks for that: leave it out" }}
{{- end }}
{{- $counts := $v.manager.config.controller.groupKindConcurrency }}
{{- range $name := list "trainingRuntime" "clusterTrainingRuntime" }}
{{- if gt (int (get $counts $name)) 1 }}
{{- fail (printf "manager.config.controller.groupKindConcurrency.%s: runtimes are read when a job needs them, and not reconciled: leave it out" $name) }}
{{- end }}
{{- end }}
{{- if $v.manager.config.namespaced }}
{{- fail "manager.config.namespaced: this chart has objects of the whole cluster: apply manifests/overlays/namespaced instead" }}
{{- end }}
{{- if and $v.certManager.enabled (not $v.certManager.issuerRef.name) }}
{{- fail "certManager.issuerRef.name: name the Issuer or ClusterIssuer that signs the certificate" }}
{{- end }}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.apiServerCIDRs) }}
{{- fail "networkPolicy.apiServerCIDRs: without where the API server's requests come from, such as [10.0.0.0/28], nobody could create TrainJobs" }}
{{- end }}
{{- $schemes := $v.v1.schemes }}
{{- if and $v.restrictController.enabled $v.v1.enabled (or (has "all" $schemes) (has "mpijob" $schemes)) }}
{{- fail "restrictController.enabled: its policy refuses the ConfigMaps of MPIJobs: leave mpijob out of v1.schemes (and write the other kinds instead of `all`), or leave restrictController out" }}
{{- end }}
{{- if and $v.restrictController.enabled $v.mpi.enabled }}
{{- fail "restrictController.enabled: its policy refuses the Jobs and Secrets of MPIJobs: leave mpi.enabled out, or leave restrictController out" }}
{{- end }}
{{- $name := include "trainer.fullname" . }}
{{- if gt (len $name) 36 }}
{{- fail (printf "fullnameOverride: names of objects begin with %q, and Kubernetes allows 63 characters: set a prefix of at most 36" $name) }}
{{- end }}
{{- include "trainer.checkCrds" . }}
{{- end }}

{{- /* A release of upstream's chart owns the CRDs: Helm would delete them, and every TrainJob, when it is upgraded to this chart,
unless the Job that applies them has marked them before. */}}
{{- define "trainer.checkCrds" -}}
{{- if and .Release.IsUpgrade (not .Values.crds.enabled) }}
{{- range $name := list "trainjobs" "trainingruntimes" "clustertrainingruntimes" "optimizationjobs" }}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (printf "%s.trainer.kubeflow.org" $name) }}
{{- $annotations := dig "metadata" "annotations" dict $crd }}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") $.Release.Name) (ne (get $annotations "helm.sh/resource-policy") "keep") }}
{{- fail (printf "crds.enabled: the release that you upgrade owns the CRD %s, and Helm would delete it with all its objects: leave crds.enabled at true, or run `kubectl annotate crd %s helm.sh/resource-policy=keep` first" $crd.metadata.name $crd.metadata.name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
