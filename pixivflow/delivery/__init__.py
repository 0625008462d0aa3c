"""Routes: how a work is frozen into a message, sent, and what the answer means."""
