"""Where the numbers of a table stand.

A table is four arrays: `rows` (64-bit words, a row after the other), `arena` (32-bit numbers: all indexes), `log` (rows
as they were before the change, with their slots) and `meta` (this page). A row has the words of its columns, then its
flags; a fact goes on with its rank, its rule and the words of its support. Floats are held by their bits.
"""

from __future__ import annotations

# --- the header of `meta` --------------------------------------------------------------------------------------------
WIDTH = 0  # columns of a row
USED = 1  # slots that were ever used
FREE = 2  # the first free slot below that and one more, or 0; the next one stands in its first word
COUNT = 3  # rows that are there
LOGGED = 4  # entries of the log
INDEXES = 5
OUTSIDE = 6  # the key that a dense index had no place for
FIRST = 8  # where the first index is described: that of the key, in which every row has its own

# --- the description of an index, from its base on -------------------------------------------------------------------
KEYS = 0  # columns of the key
COLUMNS = 1  # which ones, up to
MOST_COLUMNS = 16
HEADS = 17  # where in the arena: for each hash or, in a dense index, each key the first entry and one more
HEAD_ROOM = 18
DENSE = 19
LOW = 20  # the least key of a dense index
NEXT = 21  # where in the arena: the next entry with the same hash and one more
# An entry of the first index is a slot. One of another index is a key, with a block of the pool that has its slots.
BLOCKS = 22  # where in the arena: start, length and size class of each block
KEY_ROOM = 23
KEYS_USED = 24
KEYS_FREE = 25
POOL = 26  # where in the arena
POOL_ROOM = 27
POOL_USED = 28
PLACES = 29  # where in the arena: the place of each slot in its block
LISTS = 30  # for each size class the first free block and one more
CLASSES = 32
INDEX = LISTS + CLASSES  # words of a description

# --- flags of a row --------------------------------------------------------------------------------------------------
NEW, OLD, IN_LOG, WAITING = 1, 2, 4, 8  # there now; there before the change; copied to the log; to be taken up

# --- what follows the flags of a fact --------------------------------------------------------------------------------
RANK, RULE, SUPPORT = 1, 2, 3

# --- what a loop ends with -------------------------------------------------------------------------------------------
DONE, MISSING, NAN, CYCLE, DEEP, PAUSE = range(6)
NO_BUFFER, NO_HEAP, NO_FALLEN = 10, 11, 12
NO_ROOM = 100  # and the number of the table

# --- the state of a run over changes ---------------------------------------------------------------------------------
PHASE, STAGE, AT, HEAPED, FALLEN, TOP, LIMIT, MOST, FAIL, TOUCHED, WORK, EDIT, STOP, MODE = range(14)
CONTROL = 16  # words
STARTING, EDITING, LOSING, RETRACTING, DERIVING, GAINING, SPREADING, COMMITTING = range(8)
ONE_CHANGE, EACH = range(2)  # modes: the tables have the rows of one change; a sequence of changes

# --- what becomes of a value -----------------------------------------------------------------------------------------
SET, LEAST, MOST_OF, LEAST_FLOAT, MOST_FLOAT = range(5)
