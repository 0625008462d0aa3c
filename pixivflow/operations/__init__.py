"""What people and programs order and ask, on a ledger: used by the control socket and by the command line alike."""
