{{- /* The names of the built-in runtimes by the paths of their values; the value `enabled` below each. */}}
{{- define "trainer.runtimes.names" -}}
runtimes.torchDistributed: torch-distributed
runtimes.deepspeedDistributed: deepspeed-distributed
runtimes.mlxDistributed: mlx-distributed
runtimes.jaxDistributed: jax-distributed
runtimes.xgboostDistributed: xgboost-distributed
runtimes.fluxDistributed: flux-distributed
runtimes.torchtuneDistributed.llama3_2_1B: torchtune-llama3.2-1b
runtimes.torchtuneDistributed.llama3_2_3B: torchtune-llama3.2-3b
runtimes.torchtuneDistributed.qwen2_5_1_5B: torchtune-qwen2.5-1.5b
runtimes.trl: trl
dataCache.runtimes.torchDistributedWithCache: torch-distributed-with-cache
{{- end }}

{{- /* Images that values may replace: the path of the value, and the image that the program has. */}}
{{- define "trainer.runtimes.images" -}}
runtimes.deepspeedDistributed.image: ghcr.io/kubeflow/trainer/deepspeed-runtime
runtimes.mlxDistributed.image: ghcr.io/kubeflow/trainer/mlx-runtime
runtimes.xgboostDistributed.image: ghcr.io/kubeflow/trainer/xgboost-runtime
runtimes.torchtuneDistributed.image: ghcr.io/kubeflow/trainer/torchtune-trainer
dataCache.cacheImage: ghcr.io/kubeflow/trainer/data-cache
{{- end }}

{{- /* The value at a path of names; takes (list ROOT PATH). */}}
{{- define "trainer.valueAt" -}}
{{- $value := (first .).Values }}
{{- range $name := splitList "." (last .) }}{{ $value = get $value $name }}{{ end }}
{{- toYaml $value }}
{{- end }}

{{- /* The command that applies the runtimes which are switched on, and removes the others; a list as YAML. */}}
{{- define "trainer.runtimes.command" -}}
{{- $names := list }}
{{- range $path, $name := include "trainer.runtimes.names" . | fromYaml }}
{{- if or $.Values.runtimes.defaultEnabled (include "trainer.valueAt" (list $ $path) | fromYaml).enabled }}
{{- $names = append $names $name }}
{{- end }}
{{- end }}
{{- $command := list "trainer" "runtimes" "--remove-unused" }}
{{- if $names }}
{{- $command = append $command "--apply" }}
{{- range $key, $value := .Values.runtimes.commonLabels }}
{{- $command = append $command (printf "--label=%s=%v" $key $value) }}
{{- end }}
{{- range $path, $image := include "trainer.runtimes.images" . | fromYaml }}
{{- $wanted := include "trainer.imageOf" (include "trainer.valueAt" (list $ $path) | fromYaml) }}
{{- if ne $wanted $image }}
{{- $command = append $command (printf "--image=%s=%s" $image $wanted) }}
{{- end }}
{{- end }}
{{- end }}
{{- concat $command (sortAlpha $names) | toYaml }}
{{- end }}
