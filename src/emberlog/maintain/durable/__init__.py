"""Views that outlive their process: a folder with a snapshot of the state and a log of the changes since then."""
