"""The reporter beside the PyTorch of this machine: what it counts, and a collective that one rank leaves out."""
import os
import subprocess
import unittest

import harness
from harness import PYTHON, Program, environment
from server import Server

TORCH = os.environ.get("TORCH_PATH", "")   # where PyTorch is, if it is not where Python looks for it
TRAIN = """
    import os, sys
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 1000000
        def __getitem__(self, i):
            if rank == 1 and i >= 8 * 20 and sys.argv[1] == "loader":
                read_shard()
            return torch.ones(16)

    def read_shard():
        os.read(os.pipe()[0], 1)

    def skip():
        dist.barrier()

    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for step, batch in enumerate(torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1 if sys.argv[1] == "loader" else 0)):
        if sys.argv[1] == "skip" and step == 20 and rank == 1:
            skip()
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if sys.argv[1] == "end" and step == 20:
            optimizer.load_state_dict(optimizer.state_dict())
        if sys.argv[1] == "end" and step == 30:
            break
    print("done", rank, flush=True)
"""


def path():
    return ":".join([str(harness.REPORTER)] + ([TORCH] if TORCH else []))


def has_torch():
    done = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, cwd="/",
                          env=dict(os.environ, PYTHONPATH=TORCH))
    if done.returncode == 0:
        print("ran PyTorch", done.stdout.strip(), flush=True)
    return done.returncode == 0


@unittest.skipUnless(has_torch(), "there is no PyTorch; tools/torch installs it")
class Torch(unittest.TestCase):
    def ranks(self, server, case):
        env = dict(LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29600 + os.getpid() % 3000), PYTHONPATH=path(), OMP_NUM_THREADS="1",
                   LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH"))
        return [Program(TRAIN, dict(environment(server, rank, **env), LOCAL_RANK=str(rank)), arguments=(case,)) for rank in (0, 1)]

    def stop(self, programs):
        for program in programs:
            program.__exit__()

    def test_a_run_to_its_end(self):
        with Server(certificate=harness.certificate()) as server:
            programs = self.ranks(server, "end")
            try:
                for program in programs:
                    status, output, _ = program.end(120)
                    self.assertEqual((status, output[:5]), (0, "done "))
                for rank in (0, 1):   # a process that ends waits for two seconds at most, and its message may come later
                    message = server.wait_for(lambda m: m["rank"] == rank and m["bye"])
                    self.assertEqual((message["steps"], message["batches"]), (31, 31))
                    self.assertEqual((message["saved"], message["loaded"]), (21, 21))
                    self.assertGreaterEqual(message["gap"], 0)
            finally:
                self.stop(programs)

    def hang(self, case):
        """The last heartbeats with stacks of both ranks."""
        with Server(certificate=harness.certificate()) as server:
            programs = self.ranks(server, case)
            try:
                for rank in (0, 1):
                    server.wait_for(lambda m: m["rank"] == rank and m["steps"] > 10 and m["idle"] > 2, 120)
                server.answer = lambda m: {"dump": "a"}
                return programs, [server.wait_for(lambda m: m["rank"] == rank and "dump" in m) for rank in (0, 1)]
            finally:
                self.stop(programs)

    def test_a_collective_that_one_rank_leaves_out(self):
        programs, (first, second) = self.hang("skip")
        self.assertEqual((first["steps"], second["steps"]), (20, 20))
        self.assertTrue(second["top"].endswith(" skip"), second["top"])
        self.assertTrue(first["top"].startswith(str(programs[0].path)), first["top"])
        self.assertNotEqual(first["seq"], -1)

    def test_a_loader_process_that_hangs(self):
        _, (first, second) = self.hang("loader")
        self.assertTrue(any("in read_shard" in child["text"] for child in second["dump"]["children"]))
        self.assertFalse(any("in read_shard" in child["text"] for child in first["dump"]["children"]))
        self.assertIn("torch/utils/data/dataloader.py", " ".join(second["dump"]["threads"][0]["frames"]))


if __name__ == "__main__":
    harness.main()
