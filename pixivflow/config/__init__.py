"""The configuration file: decoded, checked as a whole, resolved into specs."""
