"""The base of what operations return."""

from pydantic import BaseModel, ConfigDict


class Result(BaseModel):
    """One object with typed fields; `summary` is the short text that a host shows beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def summary(self) -> str:
        """Return the text content: by default the whole result as compact JSON."""
        return self.model_dump_json(exclude_none=True)
