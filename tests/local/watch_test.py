#!/usr/bin/python3
"""`trainer local run --watch`: an edit begins the job again, also after it has failed or is Complete, and an interrupt ends the command."""
import bed
from watching import Watched

SH = ("--runtime", "torch-distributed", "--", "sh", "train.sh")


def watched(local, script, *words):
    code = local.folder / "code"
    code.mkdir()
    (code / "train.sh").write_text(script)
    (code / ".gitignore").write_text("*.log\n")
    return Watched(local.command("run", "--watch", "--name", "w", "--code", code, *words, *SH), code, env=local.env, cwd=local.folder)


def test_an_edit_begins_the_job_again(local):
    run = watched(local, "echo version one; exec sleep 1000")
    run.wait_for("[node-0] version one")
    first = local.job("w")["metadata"]["uid"]
    run.edit(train__sh="echo version two; exec sleep 1000")
    print(f"ran from the edit to the first line in {run.wait_for('[node-0] version two'):.1f} s")
    assert "-- code: 1 file changed (train.sh); starting again" in run.said(), run.said()
    assert local.job("w")["metadata"]["uid"] != first
    # Ignored files, and those that editors write, are no edit; a new file is one.
    run.edit(out__log="x")
    (run.code / ".train.sh.swp").write_text("x")
    run.edit(model__sh="x", train__sh="echo version three; exec sleep 1000")
    run.wait_for("[node-0] version three")
    assert "-- code: 2 files changed (model.sh, train.sh)" in run.said() and run.said().count("-- code:") == 2, run.said()
    assert run.interrupt() == 1
    assert "Suspended" in run.said() and local.phase("w") == "Suspended", run.said()


def test_a_folder_that_is_made_again_is_watched_again(local):
    run = watched(local, "echo version one; exec sleep 1000")
    run.wait_for("[node-0] version one")
    run.code.rename(local.folder / "away")
    run.wait_for("there is no such folder")
    run.code.mkdir()
    run.edit(train__sh="echo version two; exec sleep 1000")
    run.wait_for("[node-0] version two")
    run.edit(train__sh="echo version three; exec sleep 1000")
    run.wait_for("[node-0] version three")
    assert run.said().count("there is no such folder") == 1 and run.interrupt() == 1, run.said()


def test_a_failed_job_waits_for_an_edit(local):
    run = watched(local, "echo broken; exit 7")
    run.wait_for("-- waiting for an edit; Ctrl-C ends")
    assert "[node-0] broken" in run.said() and "Failed" in run.said(), run.said()
    run.edit(train__sh="echo repaired")
    run.wait_for("[node-0] repaired", "TrainJob default/w: Complete")
    bed.wait_until("it waits again", lambda: run.said().count("-- waiting for an edit") == 2, seconds=60)
    run.edit(train__sh="exit 9")
    bed.wait_until("it waits a third time", lambda: run.said().count("-- waiting for an edit") == 3, seconds=60)
    assert run.interrupt() == 9, run.said()


def test_wrong_words(local):
    for words, wanted in ((("--watch", "--", "true"), "--watch needs --code"), (("--watch", "x.yaml"), "--watch is for a command behind --"),
                          (("--watch", "-d", "--code", ".", "--", "true"), "--watch and --detach exclude each other"),
                          (("--watch", "--dry-run", "--code", ".", "--", "true"), "--watch and --dry-run exclude each other")):
        done = local.run("run", *words, code=2)
        assert wanted in done.stderr and done.stderr.count("\n") == 1, done.stderr


if __name__ == "__main__":
    bed.main()
