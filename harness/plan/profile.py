"""What a device can do: a few figures, from a TOML file."""

import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import PlanError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROFILES = Path(__file__).with_name("profiles")
"""Those that come with the harness."""


class Profile(BaseModel):
    """One kind of device, and how it reaches others of its kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str
    flops: float = Field(gt=0)
    """FLOP/s that training reaches in matrix products, which is less than the data sheet says."""

    memory: float = Field(gt=0)
    """GiB of a device."""

    node_devices: int = Field(gt=0)
    """Devices that are joined by ``node_bandwidth``."""

    node_bandwidth: float = Field(gt=0)
    """Byte/s that a device sends to others of its node while it receives as much."""

    network_bandwidth: float = Field(gt=0)
    """Byte/s, the same, to devices of other nodes."""

    latency: float = Field(ge=0)
    """Seconds until the first byte of a message arrives."""

    @classmethod
    def read(cls, name: str | Path) -> "Profile":
        """Reads a profile.

        Args:
            name: one of those that come along, or a TOML file.

        Raises:
            PlanError: there is none, or a figure is missing, unknown, or not positive.
        """
        path = Path(name) if Path(name).suffix else PROFILES / f"{name}.toml"
        known = ", ".join(sorted(each.stem for each in PROFILES.glob("*.toml")))
        try:
            return cls.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            reason = f"can't be read: {error.strerror}; name a TOML file or one of {known}"
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            reason = f"is no TOML: {error}"
        except ValidationError as error:
            first = error.errors()[0]
            figure = ".".join(str(part) for part in first["loc"])
            reason = f"{figure}: {first['msg']} (found {first['input']!r}); figures are {', '.join(cls.model_fields)}"
            if first["type"] == "missing":
                reason = f"lacks {figure}; figures are {', '.join(cls.model_fields)}"
        raise PlanError(f"hardware profile {str(name)!r} {reason}") from None
