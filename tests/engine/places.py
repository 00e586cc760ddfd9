"""Where tests of the public interface run their programs: on the local executor, or on Spark in one of two ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import emberlog


@dataclass
class Place:
    """The arguments of an engine, and the placement of its runs."""

    executor: str
    placement: str
    session: Any
    open: list[emberlog.Engine] = field(default_factory=list)

    def engine(self, sources: Mapping[str, object] | None = None, **options: Any) -> emberlog.Engine:
        """An engine with these sources; the test need not close it."""
        made = emberlog.Engine(self.session, self.executor, **options)
        self.open.append(made)
        for name, source in (sources or {}).items():
            made.register(name, source)
        return made

    def run(
        self, text: str, sources: Mapping[str, object] | None = None, params: Mapping[str, Any] | None = None
    ) -> emberlog.Result:
        return self.engine(sources).run(text, params, placement=self.placement)

    def close(self) -> None:
        for engine in self.open:
            engine.close()
