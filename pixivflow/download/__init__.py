"""From a work to verified files on disk."""
