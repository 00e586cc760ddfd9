"""Where one way of evaluating gives way to another: every bound that a choice depends on, with what it bounds.

Measured on a machine with two cores and 23 GB, by `emberlog bench` where nothing else is said. Sizes of blocks and
buffers, which change the speed of one way but not the choice of it, stand where they are used.
"""

from __future__ import annotations

# --- which evaluator -------------------------------------------------------------------------------------------------

# To load the compiler takes 0.25 s, to compile the loops of a rule 0.5 s and more (`emberlog bench kernels --cold`).
# What the interpreter does in that time, it does.
PART_ROWS = 500_000  # input rows of a linear component that workers share out, over columns: a compiler takes longer
SMALL_ROWS = 50_000  # input rows that are read in this process without an engine, or given to the interpreter
SMALL_BINDINGS = 2_000_000  # bindings after which the interpreter leaves it to compiled loops
SMALL_SECONDS = 0.25  # seconds of the processor after which it does
NO_SECONDS = 0.02  # seconds of the interpreter that are not held against it in later runs: loops take as long
MOST_BINDINGS = 100_000_000  # where the interpreter was asked for
BINDING_BYTES = 100  # what a binding of the interpreter takes, about
SMALL_ROOM = 1 << 28  # bytes: the interpreter does not look at what it uses, so it needs room for all it may do

MAINTAINED_ROWS = 50_000  # input rows from which compiled loops over columns maintain a recursion, not sets of tuples

# An iteration whose loops would have to be compiled is tried by SQL first, within this time and space.
SHORT_SECONDS = 0.3
SHORT_FACTS = 200_000

LOOPED_ROWS = 10_000_000  # rows of kernels that a stratum without recursion joins: loops are compiled sooner
JOINED_ROWS = 200_000  # rows of a join over Arrow's columns; DuckDB joins more faster than it is started
SHARED_ROWS = 1 << 20  # rows: statements over more may outgrow the memory, so that they are computed in pieces
SORTED_ROWS = 20_000_000  # rows of a result that are sorted before they are written: more take longer than all the rest

# --- which loops -----------------------------------------------------------------------------------------------------

FEW_ROWS = 2000  # input rows below which rows of sets do not pay: loops over facts are compiled sooner
MATRIX_BYTES = 1 << 30  # a matrix of values, for each pair of ids one
SET_IDS = 1 << 16  # ids of a domain up to which facts of wider relations are kept as rows of sets over it
SLOTS_A_ROW = 8  # slots of a dense table for each input row: those that no key uses cost memory
SLOTS_ANYWAY = 1 << 22  # slots of a dense table in any case
IDS_A_ROW = 4  # numbers between the least and the largest of a column, for each row, so that they are ids as they are
IDS_ANYWAY = 1 << 16  # and so many in any case
MOST_LOOPS = 14  # loops inside one another: Python nests 20 blocks, and those over rounds and tables are some of them
MOST_STEPS = 1000  # loops and conditions of a component: to compile one takes 50 ms and more
ORDER_STEPS = 4  # derivations of a block of pivots, for each row of the indexes, up to which ids are in a good order
MASK_PIVOTS = 6  # pivots of a block that a slot must have in the mean for masks to pay

# --- how many workers ------------------------------------------------------------------------------------------------

ROWS_AN_OWNER = 1 << 17  # rows of an index for each owner: fewer are gone through sooner than threads meet
REPLICATED_ROWS = 256  # of a static that every worker has whole, though it could be divided
CHECKPOINT_SECONDS = 10.0  # between two checkpoints of workers that coordinate
ROWS_A_THREAD = 1 << 18  # rows that are encoded or sorted: threads do not pay for fewer

# --- where -----------------------------------------------------------------------------------------------------------

SMALL_SOURCE = 100_000  # rows of a source that is fetched into the driver in any case
SMALL_RESULT = 10_000_000  # rows of results with which a stratum leaves the driver
JOB_SECONDS = 2.5  # a barrier job with Python workers, and what it wrote is read
FETCHED_BYTES = 60e6  # a second, from Spark to the driver
SHUFFLED_BYTES = 12e6  # a second, that a task encodes, sends and reads
FETCHED_COPIES = 6  # of what is fetched, in the memory of the driver: Arrow's, encoded, sorted, tables
MOST_NAMES = 20_000_000  # values of a dictionary that goes through the driver
FEW_RETURNED = 100_000  # rows that the driver reads from the workers' files itself
KEPT_SHARE = 0.25  # of the budget of a run: what is kept of sources for the next one

# --- how long to look for a reason -----------------------------------------------------------------------------------

MOST_TO_LOOK_AT = 2_000_000  # input rows of a recursion without end: from more its cycle would not be found in time
