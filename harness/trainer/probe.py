"""Tells whether a MindSpore back end loads and computes: ``python -m harness.trainer.probe cpu``."""

import json
import sys


def probe(hardware: str) -> dict[str, object]:
    """``works``, and ``why`` not, in one line."""
    try:
        import mindspore as ms

        from harness.trainer.__main__ import DEVICE_TARGETS

        ms.set_device(DEVICE_TARGETS[hardware])
        total = ms.ops.add(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])).asnumpy().tolist()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(("-", "="))]
        return {"works": False, "why": lines[0].partition(". ")[0] if lines else type(error).__name__}
    return {"works": total == [4.0, 6.0], "why": f"1 + 3, 2 + 4 gave {total}"}


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1])))
