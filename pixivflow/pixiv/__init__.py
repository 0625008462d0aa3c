"""Pixiv's App API: accounts, endpoints, models, typed errors."""
