"""Where the rows of relations are, and in which forms."""
