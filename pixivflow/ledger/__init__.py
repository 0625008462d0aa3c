"""The embedded SQLite ledger: the one place where SQL stands."""
