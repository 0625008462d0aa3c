"""What is known and done: PixivFlow's services and its command line."""
