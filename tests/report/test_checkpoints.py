from typer.testing import CliRunner

from harness.checkpoints.store import FOLDER, Store
from harness.cli import app
from tests.checkpoints.making import save


def listed(folder):
    done = CliRunner().invoke(app, ["checkpoints", str(folder)], catch_exceptions=False)
    return done.exit_code, " ".join(done.output.split())


def test_checkpoints_are_listed_with_what_is_wrong(tmp_path):
    store = Store(tmp_path / FOLDER)
    with store.owned():
        save(store, 10, nll=20.0)
        save(store, 20, reason="alarm", finite=False)
        save(store, 30)
    (store.path(30) / "rank-0.json").write_text("")
    status, text = listed(tmp_path)
    assert status == 0
    assert "10 cadence 160 7.38906 0.0 whole" in text
    assert "20 alarm 320 0.0 whole, not finite" in text
    assert "step-00000030: rank-0.json has 0 bytes" in text
    assert listed(tmp_path / FOLDER) == (0, text)


def test_none_to_go_on_from_is_told_by_the_status(tmp_path):
    store = Store(tmp_path / FOLDER)
    with store.owned():
        save(store, 10, finite=False)
    assert listed(tmp_path)[0] == 1
    assert listed(tmp_path / "none")[0] == 1
