"""A local look-alike of Pixiv and of a receiver, over real HTTP."""
