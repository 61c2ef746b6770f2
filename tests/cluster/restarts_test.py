#!/usr/bin/python3
"""Restarts and limits that a job asks for, or its runtime for it: what is shown of them, what outlives a restart, and whose word
counts. Needs a control plane without node: the test ends the pods.
"""
import json

import harness
from clients_test import runtime, served, trainjob
from harness import Failed, TRAINER, run, wait_until

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


def loading_runtime(name, run_policy=None):
    """A node that waits until a dataset is loaded."""
    made = runtime(name, run_policy=run_policy)
    jobs = made["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["dependsOn"] = [{"name": "dataset", "status": "Complete"}]
    jobs.insert(0, json.loads(json.dumps(jobs[0]).replace('"trainer"', '"dataset-initializer"').replace('"node"', '"dataset-initializer"')))
    jobs[0]["name"] = "dataset"
    del jobs[0]["dependsOn"]
    for each in jobs:
        each["template"]["spec"]["backoffLimit"] = 0
    return made


def job_of(name, runtime_name, **spec):
    return trainjob(name, **{"runtimeRef": {"name": runtime_name, "kind": "TrainingRuntime"}, **spec})


def end(cluster, job, phase, attempt="0"):
    """Ends the pod of a Job's attempt, like a kubelet."""
    def pod():
        return next((p["metadata"]["name"] for p in cluster.list("pods", "-l", f"job-name={job},{ATTEMPT}={attempt}")
                     if p["status"]["phase"] == "Pending" and "deletionTimestamp" not in p["metadata"]), None)
    name = wait_until(f"the pod of {job}", pod)
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"phase": phase}}))


def restarts(cluster, name):
    """The column RESTARTS of kubectl get."""
    header, row = cluster.kubectl("get", "trainjob", name).splitlines()
    return row[header.index("RESTARTS"):header.index("PROGRESS")].strip()


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen} instead of {wanted}")


def test_a_restart_is_shown_and_keeps_what_an_initializer_has_loaded(cluster):
    with served(cluster):
        cluster.apply(loading_runtime("loading"))
        cluster.apply(job_of("again", "loading", failurePolicy={"maxRestarts": 1, "maxDisruptionRestarts": 2}), job_of("once", "loading"))
        jobset = wait_until("the JobSet", lambda: cluster.get("jobset", "again"))
        expect("its failure policy", jobset["spec"]["failurePolicy"], {"maxRestarts": 1, "restartStrategy": "Recreate"})
        expect("its annotations", jobset["metadata"]["annotations"],
               {"trainer.kubeflow.org/kept-on-restart": "dataset", "trainer.kubeflow.org/max-disruption-restarts": "2"})
        wait_until("RESTARTS 0/1+0/2", lambda: restarts(cluster, "again") == "0/1+0/2")
        for name in ("again", "once"):
            end(cluster, f"{name}-dataset-0", "Succeeded")
            end(cluster, f"{name}-node-0", "Failed")
        loaded = cluster.get("job", "again-dataset-0")["metadata"]["uid"]
        wait_until("RESTARTS 1/1+0/2", lambda: restarts(cluster, "again") == "1/1+0/2")
        end(cluster, "again-node-0", "Failed", "1")
        wait_until("the end", lambda: cluster.condition("trainjob", "again", "Failed"))
        kept = cluster.get("job", "again-dataset-0")["metadata"]
        expect("the dataset's Job", (kept["uid"], kept["labels"][ATTEMPT]), (loaded, "1"))
        report = run(TRAINER, "why", "again", "-n", cluster.namespace, check=False).stdout  # exits with 1: it failed
        expect("what `trainer why` says", "restarts: 1/1 of failurePolicy.maxRestarts, 0/2 of maxDisruptionRestarts" in report, True)

        # One that asks for nothing ends at once and is shown as before.
        wait_until("the end", lambda: cluster.condition("trainjob", "once", "Failed"))
        expect("RESTARTS", restarts(cluster, "once") or "0", "0")
        jobset = cluster.get("jobset", "once")
        expect("its JobSet", (jobset["spec"].get("failurePolicy"), jobset["metadata"].get("annotations")), (None, None))
        if cluster.get("trainjob", "once")["status"].get("restartBudget"):
            raise Failed("it has a budget")


def test_a_failure_policy_cannot_change(cluster):
    with served(cluster):
        asking = job_of("fixed", "plain", suspend=True, failurePolicy={"maxRestarts": 1})
        cluster.apply(asking, job_of("without", "plain", suspend=True))
        for made, text in ((job_of("fixed", "plain", suspend=True, failurePolicy={"maxRestarts": 2}), "field is immutable"),
                           (job_of("fixed", "plain", suspend=True), "neither added nor removed"),
                           (job_of("without", "plain", suspend=True, failurePolicy={"maxRestarts": 1}), "neither added nor removed")):
            said = cluster.refusal(made)
            expect(f"{said} says {text}", text in said, True)
        said = cluster.kubectl("patch", "trainjob", "fixed", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        expect("a resume", "patched" in said, True)


def test_a_run_policy_is_the_default_and_the_job_goes_first(cluster):
    with served(cluster):
        cluster.apply(loading_runtime("limited", {"activeDeadlineSeconds": 8, "ttlSecondsAfterFinished": 10, "failurePolicy": {"maxRestarts": 5}}))
        cluster.apply(job_of("default", "limited"),
                      job_of("own", "limited", activeDeadlineSeconds=600, ttlSecondsAfterFinished=600, failurePolicy={"maxRestarts": 0}))
        wait_until("RESTARTS by default", lambda: restarts(cluster, "default") == "0/5")
        wait_until("RESTARTS of the job", lambda: restarts(cluster, "own") == "0/0")
        wait_until("the deadline", lambda: (cluster.condition("trainjob", "default", "Failed") or {}).get("reason") == "DeadlineExceeded")
        wait_until("the time to live", lambda: not cluster.get("trainjob", "default"))
        end(cluster, "own-dataset-0", "Failed")
        wait_until("the end", lambda: cluster.condition("trainjob", "own", "Failed"))
        expect("its reason", cluster.condition("trainjob", "own", "Failed")["reason"], "ReachedMaxRestarts")
        status = cluster.get("trainjob", "own")["status"]
        expect("what its runtime says", (status["activeDeadlineSeconds"], status["ttlSecondsAfterFinished"]), (8, 10))


if __name__ == "__main__":
    harness.main(__file__)
