"""The rows of relations in this process: how many, in which forms, and each form made once from the one that is there.

Rows come as a table of Arrow, as what loops computed (encoded), or as a table of the SQL engine. A statement that reads
a relation finds it as a table: what is in Arrow's memory is attached without a copy; what is encoded is handed to a
statement piece by piece if that is its only reader, and stored if it is read again. Nothing is converted before
somebody reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from emberlog.data.arrow import field_names
from emberlog.plan.logical import scans
from emberlog.plan.origins import Heavy
from emberlog.plan.strata import Stratum, plans
from emberlog.store.forms import Encoded, Stream, Tables
from emberlog.thresholds import SHARED_ROWS, SMALL_ROWS

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Stored:
    """The rows of one relation. One of `arrow`, `encoded` and a table of the engine is there from the start; the others
    are made of it. `engine` says how the SQL engine has the rows."""

    rows: int | None  # None: not counted yet
    arrow: pa.Table | None = None
    encoded: Encoded | None = None
    engine: Literal["no", "attached", "streamed", "table"] = "no"


class Store:
    """The relations of one run. `table_of` gives the SQL engine's name of a relation."""

    def __init__(self, tables: Tables, table_of: Callable[[str], str]) -> None:
        self.heavy: dict[str, Heavy] = {}  # relations with many rows
        self._tables = tables
        self._table_of = table_of
        self._stored: dict[str, Stored] = {}
        self._streamed: list[str] = []  # what statements of the stratum at hand read once
        self._reader: Stratum | None = None
        self._times: Counter[str] | None = None  # how often the stratum reads each relation
        self._has_room = False

    # --- rows come -----------------------------------------------------------------------------------------------

    def put(self, relation: str, table: pa.Table) -> None:
        """Rows in Arrow's memory. They stay there."""
        self.forget(relation)
        self._weigh(relation, Heavy(table.num_rows, (table.num_rows,) * table.num_columns))
        self._stored[relation] = Stored(table.num_rows, table.rename_columns(field_names(table.num_columns)))

    def put_encoded(self, relation: str, encoded: Encoded) -> None:
        """Rows that loops computed."""
        self.forget(relation)
        self._weigh(relation, encoded.heavy())
        self._stored[relation] = Stored(encoded.count(), encoded=encoded)

    def put_table(self, relation: str, width: int, rows: int | None = None, most: int | None = None) -> None:
        """Rows that a statement made a table of: so many, or at most so many where that is all that is known."""
        self._stored[relation] = Stored(rows, engine="table")
        bound = rows if most is None else most
        if bound is not None:
            self._weigh(relation, Heavy(bound, (bound,) * width))

    def forget(self, relation: str) -> None:
        """Lets go of the rows of a relation."""
        stored = self._stored.pop(relation, None)
        self.heavy.pop(relation, None)
        if stored is not None and stored.engine in ("attached", "streamed"):
            self._tables.detach(self._table_of(relation))

    def _weigh(self, relation: str, heavy: Heavy) -> None:
        if heavy.rows > SHARED_ROWS:
            self.heavy[relation] = heavy

    # --- rows are read -------------------------------------------------------------------------------------------

    def __contains__(self, relation: object) -> bool:
        return relation in self._stored

    def count(self, relation: str) -> int:
        stored = self._stored[relation]
        if stored.rows is None:
            stored.rows = self._tables.count(self._table_of(relation))
        return stored.rows

    def known_count(self, relation: str) -> int | None:
        """The number of rows, if it is known without a statement."""
        return self._stored[relation].rows

    def in_arrow(self, relation: str) -> bool:
        """True if the rows were given as a table of Arrow, whose columns others may read where they are."""
        stored = self._stored.get(relation)
        return stored is not None and stored.arrow is not None and stored.encoded is None and stored.engine != "table"

    def is_to_be_made(self, relation: str) -> bool:
        """True if a table of Arrow is yet to be made of rows that are encoded, or many."""
        stored = self._stored[relation]
        return stored.arrow is None and (stored.encoded is not None or relation in self.heavy)

    def encoded(self, relation: str) -> Encoded | None:
        """The rows as loops left them, where these computed them."""
        return self._stored[relation].encoded if relation in self._stored else None

    def fetch(self, relation: str) -> pa.Table:
        """The rows as a table of Arrow."""
        stored = self._stored[relation]
        if stored.arrow is not None:
            return stored.arrow
        found = self._tables.fetch(self._table_of(relation)) if stored.encoded is None else stored.encoded.table()
        found = found.rename_columns(field_names(found.num_columns))
        stored.rows = found.num_rows
        if found.num_rows <= SMALL_ROWS:
            stored.arrow = found
        return found

    def reader(self, relation: str) -> pa.RecordBatchReader:
        """The rows piece by piece."""
        stored = self._stored[relation]
        if stored.encoded is not None:
            return stored.encoded.reader()
        return self._tables.reader(self._table_of(relation)) if stored.arrow is None else stored.arrow.to_reader()

    # --- statements read -----------------------------------------------------------------------------------------

    @contextmanager
    def reading(self, stratum: Stratum | None) -> Iterator[None]:
        """While statements of a stratum, or one that stands for itself, read relations."""
        self._reader, self._times, self._has_room = stratum, None, False
        try:
            yield
        finally:
            self._reader = None
            for name in self._streamed:
                stored = self._stored.get(name)
                if stored is not None and stored.engine == "streamed":
                    self._tables.detach(self._table_of(name))
                    stored.engine = "no"
            self._streamed.clear()

    def provide(self, relations: Iterable[str]) -> None:
        """Sees to it that the SQL engine has these relations, those of them that are stored here."""
        if not self._has_room:
            self._tables.take_what_is_left()
            self._has_room = True
        for relation in relations:
            stored = self._stored.get(relation)
            if stored is not None and stored.engine == "no":
                self._provide(relation, stored)

    def _provide(self, relation: str, stored: Stored) -> None:
        table = self._table_of(relation)
        if stored.encoded is None:
            assert stored.arrow is not None
            self._tables.attach(table, stored.arrow)
            stored.engine = "attached"
        elif self._is_read_once(relation):
            self._tables.attach(table, Stream(stored.encoded.reader))
            stored.engine = "streamed"
            self._streamed.append(relation)
        else:
            self._store_encoded(relation, stored, stored.encoded)

    def _store_encoded(self, relation: str, stored: Stored, encoded: Encoded) -> None:
        self._tables.load_stream(self._table_of(relation), encoded.reader, encoded.count())
        stored.engine = "table"
        if relation in self.heavy:
            self.heavy[relation] = replace(self.heavy[relation], streamed=False)

    def _is_read_once(self, relation: str) -> bool:
        """True if one statement alone reads the rows, or if they are too many to be stored for it."""
        if self._reader is None:
            return True
        if self._times is None:
            self._times = reads_of(self._reader)
        return self._reader.evaluation == "once" and (self._times[relation] == 1 or relation in self.heavy)

    def tabulate(self, relations: Iterable[str]) -> None:
        """Makes tables of the engine's own of rows that loops computed, and of many rows of Arrow: when statements look
        up a few rows again and again, reading such a table takes a hundredth of the time."""
        for relation in relations:
            stored = self._stored.get(relation)
            if stored is None or stored.engine == "table":
                continue
            if stored.encoded is not None:
                self._store_encoded(relation, stored, stored.encoded)
            elif stored.arrow is not None and stored.arrow.num_rows > SMALL_ROWS:
                table = self._table_of(relation)
                if stored.engine == "attached":
                    self._tables.detach(table)
                self._tables.load_stream(table, stored.arrow.to_reader, stored.arrow.num_rows)
                stored.engine = "table"

    def settle(self, relations: Iterable[str], bags: Callable[[str], bool]) -> None:
        """Makes tables of the engine's own of those that were only attached: rounds read them again and again. Of
        `bags` sets are made."""
        for relation in relations:
            stored = self._stored.get(relation)
            if stored is None or stored.encoded is not None or stored.engine == "table":
                continue
            assert stored.arrow is not None
            table = self._table_of(relation)
            if stored.engine == "attached":
                self._tables.detach(table)
            self._tables.load(table, stored.arrow)
            if bags(relation):
                self._tables.make_set(table)
                stored.rows = stored.arrow = None
            stored.engine = "table"


def reads_of(stratum: Stratum) -> Counter[str]:
    """How often the plans of a stratum read each relation."""
    return Counter(scan.relation for relation in stratum.relations for plan in plans(relation) for scan in scans(plan))
