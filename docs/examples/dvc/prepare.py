"""The stage `prepare` of dvc.yaml: points of a line."""
import csv, random

random.seed(0)
with open("data.csv", "w", newline="") as file:
    writer = csv.writer(file)
    for _ in range(256):
        x = random.random()
        writer.writerow([x, 3 * x + 1])
