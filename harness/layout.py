"""How ranks are arranged: data × tensor × pipeline parallel, and optimizer sharding over data parallel."""

from dataclasses import dataclass
from typing import Any

from harness.errors import ScenarioError


@dataclass(frozen=True)
class Layout:
    """The rank grid of a run.

    Ranks are numbered with tensor parallel fastest and pipeline slowest, so that the ranks that talk
    most are neighbours: ``rank = (stage · dp + replica) · tp + shard``.
    """

    dp: int = 1
    """Data-parallel replicas, each training on its own share of the batch."""

    tp: int = 1
    """Tensor-parallel shards of every layer."""

    pp: int = 1
    """Pipeline stages."""

    optimizer_sharding: bool = False
    """Whether each data-parallel rank keeps only its share of the optimizer states."""

    def __post_init__(self) -> None:
        for name in ("dp", "tp", "pp"):
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ScenarioError(f"layout.{name} must be a whole number of at least 1, not {size!r}")
        if self.optimizer_sharding and self.dp == 1:
            raise ScenarioError("layout.optimizer_sharding and layout.dp=1 disagree: there is nothing to shard over")

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.dp * self.tp * self.pp

    def position(self, rank: int) -> tuple[int, int, int]:
        """The (stage, replica, shard) of ``rank``.

        Raises:
            ScenarioError: ``rank`` is outside the grid.
        """
        if not 0 <= rank < self.world_size:
            raise ScenarioError(f"rank {rank} is outside a layout of {self.world_size} ranks")
        return rank // (self.dp * self.tp), rank // self.tp % self.dp, rank % self.tp

    def rank(self, stage: int, replica: int, shard: int) -> int:
        """The rank at a position; what ``position`` takes apart."""
        return (stage * self.dp + replica) * self.tp + shard

    def groups(self, kind: str) -> list[list[int]]:
        """The groups of ranks that communicate along one axis.

        Args:
            kind: ``"dp"``, ``"tp"`` or ``"pp"``.

        Returns:
            Disjoint lists that together hold every rank once, each sorted.
        """
        axis = {"pp": 0, "dp": 1, "tp": 2}[kind]
        found: dict[tuple[int, ...], list[int]] = {}
        for rank in range(self.world_size):
            position = self.position(rank)
            found.setdefault(position[:axis] + position[axis + 1 :], []).append(rank)
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one a field."""
        return {"dp": self.dp, "tp": self.tp, "pp": self.pp, "optimizer_sharding": self.optimizer_sharding}
