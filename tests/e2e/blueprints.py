"""Shipped blueprints as a test bed can run them: everything as it is, but the image, and what the image would bring."""
import json

from harness import run

IMAGE = "localhost/torch:1"

# An image for MPI has these, and the test bed's has not: a user, an sshd that it can run, and no questions about hosts.
MACHINE = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
              "mpiuser:x:1000:1000::/home/mpiuser:/bin/bash\n",
    "sshd_config": "Port 2222\nHostKey /home/mpiuser/.ssh/id_rsa\nStrictModes no\nPidFile none\n",
    "ssh_config": "Host *\nPort 2222\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n",
    "python": "#!/bin/sh\nexec python3 \"$@\"\n",
}
PLACES = {"passwd": "/etc/passwd", "sshd_config": "/home/mpiuser/.sshd_config",
          "ssh_config": "/etc/ssh/ssh_config.d/mpi.conf", "python": "/usr/local/bin/python"}


def mpi_runtime(cluster, name, image=IMAGE):
    """Makes the blueprint a TrainingRuntime of that name in the cluster's namespace."""
    blueprint = json.loads(run("kubectl", "get", "clustertrainingruntime", name, "-o", "json").stdout)
    for job in blueprint["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        pod["volumes"] += [{"name": "machine", "configMap": {"name": "machine", "defaultMode": 0o755}},
                           {"name": "home", "emptyDir": {}}]
        node, = pod["containers"]
        node["image"] = image
        node["env"].append({"name": "HOME", "value": "/home/mpiuser"})
        node["volumeMounts"].append({"name": "home", "mountPath": "/home/mpiuser"})
        # The SDK shows steps by their pods, and a worker's goes with the end of the job: time to see it.
        node["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
        node["volumeMounts"] += [{"name": "machine", "mountPath": path, "subPath": key} for key, path in PLACES.items()
                                 if key != "python" or image == IMAGE]   # other images have one
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "machine"}, "data": MACHINE},
                  {"apiVersion": blueprint["apiVersion"], "kind": "TrainingRuntime", "spec": blueprint["spec"],
                   "metadata": {"name": name, "labels": blueprint["metadata"]["labels"]}})
