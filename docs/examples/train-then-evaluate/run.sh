#!/bin/bash
# Trains a model, and evaluates it in a second job once the first one is Complete.
#
#   docs/examples/train-then-evaluate/run.sh        # with your kubeconfig; in local mode: eval "$(trainer local env)" before
#
# A TrainJob cannot name another one that must end first: `dependsOn` orders the Jobs within one TrainJob. So this script waits.
# It ends with the first job that fails, and says why. Both jobs stay until it is started again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
kubectl delete trainjobs train evaluate --ignore-not-found
for job in train evaluate; do
  kubectl apply -f $job.yaml
  trainer logs -f $job || { trainer why $job; exit 1; }      # ends with the job; the exit status is 1 if it has failed
done
