import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from harness.errors import ResultsError
from harness.readers.place import read
from tests.gate.builders import make_run


def events(folder, curves, suffix=""):
    writer = EventFileWriter(str(folder), filename_suffix=suffix)
    for tag, curve in curves.items():
        for step, value in curve.items():
            writer.add_event(Event(step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
    writer.close()
    return folder


def test_scalars_of_tensorboard(tmp_path):
    found = read(events(tmp_path / "tb", {"train/loss": {1: 2.5, 3: 2.0}, "grad-norm": {1: 0.5}, "lm loss": {5: 1.5}}))
    assert found.curves == {"loss": {1: 2.5, 3: 2.0, 5: 1.5}, "grad_norm": {1: 0.5}}
    (file,) = (tmp_path / "tb").iterdir()
    assert read(file).curves == found.curves


def test_of_several_event_files_the_later_counts(tmp_path):
    events(tmp_path / "tb", {"loss": {1: 2.5, 2: 2.0}}, ".a")
    events(tmp_path / "tb", {"loss": {2: 2.25, 3: 1.0}}, ".b")
    found = read(tmp_path / "tb")
    assert found.curves == {"loss": {1: 2.5, 2: 2.25, 3: 1.0}}
    assert found.repeated == [2]


@pytest.mark.parametrize("kept", [0.4, 0.8])
def test_event_files_that_are_cut_give_what_is_whole(tmp_path, kept):
    (file,) = events(tmp_path / "tb", {"loss": dict.fromkeys(range(1, 50), 1.0)}).iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: int(kept * len(whole))])
    steps = list(read(tmp_path / "tb").curves["loss"])
    assert steps == list(range(1, len(steps) + 1))
    assert 10 < len(steps) < 49


def test_event_files_without_a_scalar_say_so(tmp_path):
    events(tmp_path / "tb", {})
    with pytest.raises(ResultsError, match="tb: none of 1 events is a scalar"):
        read(tmp_path / "tb")
    (tmp_path / "x.tfevents.1").write_bytes(b"no events at all, but more than a header")
    with pytest.raises(ResultsError, match=r"x\.tfevents\.1"):
        read(tmp_path / "x.tfevents.1")


def test_a_run_of_others_keeps_its_steps(tmp_path):
    run = make_run(curves={"loss": [2.0, 1.0]})
    run.steps = {"loss": [10, 20]}
    (tmp_path / "run.json").write_text(run.model_dump_json())
    found = read(tmp_path).curves
    assert found == {"loss": {10: 2.0, 20: 1.0}, "step_time": {1: 1.0, 2: 1.0, 3: 1.0}}
