"""``python -m pixivflow`` does what ``pixivflow`` does."""

from pixivflow.cli import main

if __name__ == "__main__":
    main()
