"""The operator evicts nobody while a backup runs."""

import pytest

from harness.lab.backup import backup
from harness.lab.galera import SPACE

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def test_a_roll_begins_when_the_backup_has_ended(lab, galera_pods, smart_update):
    before = {pod["metadata"]["uid"] for pod in galera_pods.ready()}
    job = backup(lab)
    lab.apply(job)
    try:
        lab.ready("app=backup", 1, SPACE)
        smart_update.wait_for("BackupRunning")
        revision = galera_pods.template_changed(turn="backup")
        said = smart_update.wait_for("Reconciling", "BackupRuns")
        assert "backup" in said["message"]
        assert {pod["metadata"]["uid"] for pod in galera_pods.ready()} == before
    finally:
        lab.delete(job)
    smart_update.wait_for_roll(revision)
    assert not before & {pod["metadata"]["uid"] for pod in galera_pods.ready()}
