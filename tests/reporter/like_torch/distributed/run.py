"""A program in the place of torchrun: it runs a command once for each rank, and waits."""
import os
import subprocess
import sys

if __name__ == "__main__":
    count = int(sys.argv[1])
    ranks = [subprocess.Popen(sys.argv[2:], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count)))
             for rank in range(count)]
    sys.exit(max(abs(rank.wait()) for rank in ranks))
