"""The events of one run, from its seed alone: which jobs there are, how their pods end, and which faults come when."""
import dataclasses
import random

JOBS = 10
JOBS_BEGIN = 15     # seconds over which jobs are created
FAULTS_END = 26     # seconds after which no fault is left


@dataclasses.dataclass
class Job:
    name: str
    script: str            # complete, fail, restart, suspend, delete
    created: float
    pod_seconds: float     # how long each pod runs
    acted: float = 0       # when a user suspends or deletes it
    resumed: float = 0

    def pod_fails(self, attempt):
        return self.script == "fail" or (self.script == "restart" and attempt == 0)


@dataclasses.dataclass
class Fault:
    kind: str
    begin: float
    seconds: float
    target: int = 0        # which controller
    rate: float = 0        # of errors
    code: int = 0

    def __str__(self):
        return f"{self.begin:5.1f} s {self.kind} for {self.seconds:.1f} s, controller {self.target}, rate {self.rate:.2f}, code {self.code}"


# Kind -> how long it lasts at most. A stalled controller loses its Lease after 15 s, so some stalls are longer.
FAULTS = {"kill": 3, "stall": 20, "api-stall": 8, "api-kill": 3, "etcd-stall": 6, "etcd-kill": 3, "etcd-full": 8, "rights": 8,
          "write-errors": 10, "read-errors": 10, "cut-writes": 10, "cut-streams": 10, "clock": 10, "runtime-crd": 6, "secret": 1}


def make(seed):
    """(jobs, faults) of a run."""
    chance = random.Random(seed)
    jobs = []
    for number in range(JOBS):
        created = chance.uniform(0, JOBS_BEGIN)
        acted = created + chance.uniform(0, 6)
        script = chance.choice(["complete", "complete", "fail", "restart", "suspend", "delete"])
        jobs.append(Job(f"{script}-{number}", script, created, chance.uniform(0.5, 5), acted, acted + chance.uniform(1, 6)))
    faults = []
    kinds = []   # one of a component: two of them would undo each other
    for kind in chance.sample(sorted(FAULTS), len(FAULTS)):
        if len(kinds) < 4 and not any(kind.partition("-")[0] == other.partition("-")[0] for other in kinds):
            kinds.append(kind)
    for kind in kinds:
        begin = chance.uniform(1, JOBS_BEGIN + 3)
        seconds = min(chance.uniform(0.3, 1) * FAULTS[kind], FAULTS_END - begin)
        faults.append(Fault(kind, begin, seconds, chance.randrange(2), chance.uniform(0.2, 0.6), chance.choice([409, 429, 500, 503])))
    return jobs, sorted(faults, key=lambda fault: fault.begin)
