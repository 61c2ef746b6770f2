#!/usr/bin/python3
"""The number of nodes of a job of local mode changes while it runs (docs/users/elastic.md)."""
import bed
from bed import wait_until
from elastic import check_resized, check_steps, job, runtime, sizes
from hangs_test import begin, printed, why

JOB = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/elastic"


def scale(local, nodes):
    local.patch(JOB + "/scale", {"spec": {"replicas": nodes}})


def wait_for_size(local, size):
    wait_until(f"{size} ranks train", lambda: sizes(printed(local, "elastic"))[-1:] == [size], 120,
               shown=lambda: why(local, "elastic") + printed(local, "elastic"))


def refusal_of(call):
    try:
        call()
    except bed.Failed as refused:
        return str(refused)
    return ""


def test_a_job_is_scaled_and_loses_a_pod(local):
    begin(local, None)
    local.request("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes", runtime(), "POST")
    local.create(job("elastic", folder="."))
    wait_for_size(local, 3)
    scale(local, 4)
    wait_for_size(local, 4)
    status = wait_until("the steps begin again", lambda: (found := local.job("elastic")["status"]).get("goodput", {}).get("step") and found, 60,
                        shown=lambda: why(local, "elastic") + str(local.job("elastic")))
    check_resized(status)
    first = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in local.pods("elastic")}
    shown = local.request(JOB + "/scale")
    assert shown["spec"]["replicas"] == shown["status"]["replicas"] == 4, shown
    assert "replicatedjob-name=node" in shown["status"]["selector"], shown
    for nodes in (1, 5):
        assert "must stay between" in refusal_of(lambda n=nodes: scale(local, n))
    assert "field is immutable" in refusal_of(lambda: local.patch(JOB, {"spec": {"trainer": {"image": "another"}}}))

    lost = next(pod for pod in first if "-0-2-" in pod)
    local.request(f"/api/v1/namespaces/default/pods/{lost}", {}, "DELETE")
    wait_until("another pod has the index", lambda: any("-0-2-" in pod["metadata"]["name"] and pod["metadata"]["uid"] not in first.values()
                                                        and pod["status"]["phase"] == "Running" for pod in local.pods("elastic")), 90)
    wait_until("four ranks train again", lambda: sizes(printed(local, "elastic")).count(4) >= 2, 120,
               shown=lambda: why(local, "elastic") + printed(local, "elastic"))
    kept = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in local.pods("elastic")}
    assert all(kept.get(name) == uid for name, uid in first.items() if name != lost), (first, kept)
    # The last two nodes are lost, and the others come to the end of the training before there are new ones.
    for pod in kept:
        if "-0-2-" in pod or "-0-3-" in pod:
            local.request(f"/api/v1/namespaces/default/pods/{pod}", {}, "DELETE")
    wait_until("the job is complete", lambda: local.phase("elastic") == "Complete", 120,
               shown=lambda: why(local, "elastic") + printed(local, "elastic"))
    status = local.job("elastic")["status"]
    assert status["restarts"] == 0 and "elastic" not in status and status["nodes"]["total"] == 4, status
    check_steps(printed(local, "elastic"))
    assert "field is immutable" in refusal_of(lambda: scale(local, 3))


if __name__ == "__main__":
    bed.main()
